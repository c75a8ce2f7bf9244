#include "doctor/surroundings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/units.h"

namespace postflight {
namespace {

struct FileSystemName {
  long type;
  std::string_view name;
  bool local;
};
// Magic numbers of statfs(2).
constexpr std::array kFileSystems = {
    FileSystemName{0xef53, "ext4", true},
    FileSystemName{0x58465342, "xfs", true},
    FileSystemName{0x9123683e, "btrfs", true},
    FileSystemName{0x01021994, "tmpfs", true},
    FileSystemName{0x2fc12fc1, "zfs", true},
    FileSystemName{0x794c7630, "overlay", true},
    FileSystemName{0x6969, "nfs", false},
    FileSystemName{0x0bd00bd0, "lustre", false},
    FileSystemName{0x47504653, "gpfs", false},
    FileSystemName{0x19830326, "beegfs", false},
    FileSystemName{0x00c36400, "ceph", false},
    FileSystemName{0x65735546, "fuse", false},
    FileSystemName{0x01021997, "9p", false},
    FileSystemName{0xff534d42, "cifs", false}};

std::optional<std::int64_t> number_in_file(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return std::nullopt;
  const std::string_view text = trimmed(as_text(file->bytes()));
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc())
    return std::nullopt;
  return number;
}

// The effective capabilities of this process.
std::uint64_t capabilities() {
  const Result<MappedFile> file = MappedFile::open("/proc/self/status");
  if (!file)
    return 0;
  const std::string_view text = as_text(file->bytes());
  const std::size_t at = text.find("CapEff:");
  if (at == text.npos)
    return 0;
  const std::string_view rest = trimmed(text.substr(at + 7, 30));
  std::uint64_t bits = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), bits, 16);
  return bits;
}

Finding finding(std::string_view kind, Severity severity, std::string message,
                std::string where = {}) {
  return {std::string(kind), severity, std::move(message), std::move(where)};
}

}  // namespace

std::string ring_duration(const RingFacts& ring) {
  return human_duration(
      std::chrono::nanoseconds(static_cast<std::int64_t>(ring.seconds * 1e9)));
}

DumpFolder look_at_folder(const std::string& path, const std::string& root,
                          std::vector<Finding>& findings) {
  DumpFolder folder = {.path = path.empty() ? "/" : path};
  const std::string seen = root + folder.path;
  struct stat status;
  folder.exists = ::stat(seen.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  if (!folder.exists) {
    findings.push_back(
        finding("folder_missing", Severity::kError,
                fmt::format("the folder for dumps does not exist here: mkdir "
                            "-p {}, on every node, before the job starts",
                            shell_quoted(folder.path)),
                folder.path));
    return folder;
  }
  folder.writable =
      ::faccessat(AT_FDCWD, seen.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  if (!folder.writable)
    findings.push_back(finding(
        "folder_not_writable", Severity::kError,
        "dumps cannot be written to this folder by this user", folder.path));
  struct statfs system;
  if (::statfs(seen.c_str(), &system) != 0)
    return folder;
  const auto known = std::ranges::find(
      kFileSystems, static_cast<long>(system.f_type), &FileSystemName::type);
  if (known == kFileSystems.end())
    return folder;
  folder.file_system = known->name;
  folder.local = known->local;
  if (known->name == "overlay")
    findings.push_back(finding(
        "folder_is_lost", Severity::kWarning,
        "dumps here are lost with the container; use a folder mounted from "
        "outside",
        folder.path));
  else if (known->local)
    findings.push_back(finding(
        "folder_is_local", Severity::kNote,
        fmt::format("each node has its own ({}): collect the dumps of all "
                    "nodes before trace reads them, or use a shared folder",
                    known->name),
        folder.path));
  return folder;
}

std::string ProfilerFacts::attach() const {
  if (root || cap_sys_ptrace)
    return "every process";
  return ptrace_scope == 0   ? "processes of this user"
         : ptrace_scope == 1 ? "programs that postflight has started"
                             : "none";
}

std::string ProfilerFacts::launch() const {
  constexpr std::int64_t kMostForUsers = 2;
  const bool allowed =
      perf_event_paranoid &&
      (*perf_event_paranoid <= kMostForUsers || root || cap_perfmon);
  return allowed ? "perf events" : "timers";
}

ProfilerFacts look_at_profiler(std::vector<Finding>& findings) {
  constexpr int kSysPtrace = 19;
  constexpr int kPerfmon = 38;
  const std::uint64_t bits = capabilities();
  ProfilerFacts facts = {
      .perf_event_paranoid =
          number_in_file("/proc/sys/kernel/perf_event_paranoid"),
      .ptrace_scope =
          number_in_file("/proc/sys/kernel/yama/ptrace_scope").value_or(0),
      .root = ::geteuid() == 0,
      .cap_sys_ptrace = (bits >> kSysPtrace & 1) != 0,
      .cap_perfmon = (bits >> kPerfmon & 1) != 0};
  // In a container root may lack the capability.
  if (facts.root && !facts.cap_sys_ptrace)
    facts.root = false;
  if (facts.attach() == "none" ||
      facts.attach() == "programs that postflight has started")
    findings.push_back(
        finding("no_attach", Severity::kNote,
                fmt::format("stacks and profile --pid need root here "
                            "(kernel.yama.ptrace_scope={}); in a container, "
                            "--cap-add=SYS_PTRACE",
                            facts.ptrace_scope)));
  return facts;
}

std::optional<RingFacts> look_at_rings(const Job& job,
                                       std::vector<Finding>& findings) {
  std::optional<RingFacts> least;
  constexpr double kShort = 60;
  for (const RankDump& dump : job.ranks) {
    if (dump.entries.size() < 2)
      continue;
    std::int64_t first = INT64_MAX;
    std::int64_t last = 0;
    for (std::size_t i = 0; i < dump.entries.size(); ++i) {
      const std::int64_t created = dump.entries.created(i);
      if (created <= 0)
        continue;
      first = std::min(first, created);
      last = std::max(last, created);
    }
    if (last <= first)
      continue;
    RingFacts ring = {.ranks = job.ranks.size(),
                      .entries = dump.entries.size(),
                      .seconds = static_cast<double>(last - first) / 1e9,
                      .rank = dump.rank.value,
                      // Entries are numbered from 0.
                      .wrapped = dump.entries[0].record_id > 0};
    if (!least || (ring.wrapped && !least->wrapped) ||
        (ring.wrapped == least->wrapped && ring.seconds < least->seconds))
      least = ring;
  }
  if (least && least->wrapped && least->seconds < kShort) {
    const double wanted =
        static_cast<double>(least->entries) / least->seconds * kShort * 5;
    constexpr double kSensible = 100'000;
    std::string message = fmt::format(
        "the ring of rank {} holds only {}: what led to a hang is overwritten",
        least->rank, ring_duration(*least));
    if (wanted < kSensible)
      message +=
          fmt::format("; TORCH_FR_BUFFER_SIZE={} would hold 5 minutes",
                      (static_cast<std::uint64_t>(wanted) / 1000 + 1) * 1000);
    findings.push_back(
        finding("short_ring", Severity::kWarning, std::move(message)));
  }
  return least;
}

}  // namespace postflight
