#include "profile/process/memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "profile/process/map.h"

namespace postflight {
namespace {

// The most that the kernel accepts in one call (UIO_MAXIOV).
constexpr std::size_t kMostPieces = 1024;

// kernel.yama.ptrace_scope; '0' if there is no such setting.
char ptrace_scope() {
  const auto text = MappedFile::open("/proc/sys/kernel/yama/ptrace_scope");
  return text && !text->bytes().empty()
             ? static_cast<char>(text->bytes().front())
             : '0';
}

// From /proc/PID/stat: "4711 (name) Z 4700 ...".
tl::unexpected<Error> fail_without_memory(pid_t pid) {
  const auto file = MappedFile::open(fmt::format("/proc/{}/stat", pid));
  const std::string_view text = file ? as_text(file->bytes()) : "";
  const std::size_t name_end = text.rfind(") ");
  char state = ' ';
  pid_t parent = 0;
  if (name_end != text.npos && name_end + 4 < text.size()) {
    state = text[name_end + 2];
    std::from_chars(text.data() + name_end + 4, text.data() + text.size(),
                    parent);
  }
  constexpr pid_t kKernelThreads = 2;
  if (state == 'Z')
    return fail(ErrorKind::kUsage,
                "process {} has ended; its parent, process {}, has not "
                "collected it yet (a zombie): look at that one",
                pid, parent);
  if (pid == kKernelThreads || parent == kKernelThreads)
    return fail(ErrorKind::kUsage, "process {} is a kernel thread", pid);
  return fail(ErrorKind::kUsage, "process {} has ended", pid);
}

}  // namespace

std::size_t ProcessMemory::read(std::span<const MemoryPiece> pieces) const {
  std::array<iovec, kMostPieces> here;
  std::array<iovec, kMostPieces> there;
  std::size_t done = 0;
  while (done < pieces.size()) {
    const std::size_t count = std::min(pieces.size() - done, kMostPieces);
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const MemoryPiece& piece = pieces[done + i];
      here[i] = {piece.to.data(), piece.to.size()};
      there[i] = {reinterpret_cast<void*>(piece.address), piece.to.size()};
      wanted += piece.to.size();
    }
    const ssize_t got =
        process_vm_readv(pid_, here.data(), count, there.data(), count, 0);
    if (got == static_cast<ssize_t>(wanted)) {
      done += count;
      continue;
    }
    auto rest = got < 0 ? 0 : static_cast<std::size_t>(got);
    while (rest >= pieces[done].to.size()) {
      rest -= pieces[done].to.size();
      ++done;
    }
    return done;
  }
  return done;
}

Result<> check_permission(pid_t pid, std::string_view command) {
  struct stat owner;
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0)
    return fail(ErrorKind::kUsage, "there is no process {}", pid);
  const Result<std::vector<Mapping>> mappings = process_mappings(pid);
  if (mappings && mappings->empty())
    return fail_without_memory(pid);
  if (mappings) {
    std::array<std::byte, 1> byte;
    const iovec here = {byte.data(), byte.size()};
    const iovec there = {reinterpret_cast<void*>(mappings->front().start), 1};
    if (::process_vm_readv(pid, &here, 1, &there, 1, 0) == 1 || errno == EFAULT)
      return {};
  }
  if (owner.st_uid != ::geteuid())
    return fail(
        ErrorKind::kRefused,
        "no permission to read the memory of process {}, which belongs to "
        "another user; run as that user, or: sudo postflight {} --pid {}",
        pid, command, pid);
  if (const char scope = ptrace_scope(); scope != '0')
    return fail(
        ErrorKind::kRefused,
        "no permission to read the memory of process {}: "
        "kernel.yama.ptrace_scope is {}; run: sudo sysctl "
        "kernel.yama.ptrace_scope=0{}",
        pid, scope,
        command == "profile"
            ? ", or start the program with: postflight profile -- "
              "COMMAND"
            : fmt::format(", or: sudo postflight {} --pid {}", command, pid));
  return fail(ErrorKind::kRefused,
              "no permission to read the memory of process {}; in a container, "
              "start it "
              "with --cap-add=SYS_PTRACE, else run: sudo postflight {} --pid "
              "{}",
              pid, command, pid);
}

}  // namespace postflight
