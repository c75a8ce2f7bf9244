#include <array>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "profile/engine/sampling_loop.h"
#include "profile/process/map.h"

namespace postflight {
namespace {

// kernel.yama.ptrace_scope; '0' where there is no such setting.
char ptrace_scope() {
  const auto text = MappedFile::open("/proc/sys/kernel/yama/ptrace_scope");
  return text && !text->bytes().empty()
             ? static_cast<char>(text->bytes().front())
             : '0';
}

}  // namespace

Result<> check_permission(pid_t pid) {
  struct stat owner;
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0)
    return fail(ErrorKind::kUsage, "there is no process {}", pid);
  const Result<std::vector<Mapping>> mappings = process_mappings(pid);
  if (mappings && mappings->empty())
    return fail(ErrorKind::kUsage, "process {} has ended or has no memory",
                pid);
  if (mappings) {
    std::array<std::byte, 1> byte;
    const iovec here = {byte.data(), byte.size()};
    const iovec there = {reinterpret_cast<void*>(mappings->front().start), 1};
    if (::process_vm_readv(pid, &here, 1, &there, 1, 0) == 1 || errno == EFAULT)
      return {};
  }
  if (owner.st_uid != ::geteuid())
    return fail(ErrorKind::kRefused,
                "may not read the memory of process {}, which belongs to "
                "another user; run as that user, or: sudo postflight profile "
                "--pid {}",
                pid, pid);
  if (const char scope = ptrace_scope(); scope != '0')
    return fail(ErrorKind::kRefused,
                "may not read the memory of process {}: "
                "kernel.yama.ptrace_scope is {}; run: sudo sysctl "
                "kernel.yama.ptrace_scope=0, or start the program with: "
                "postflight profile -- COMMAND",
                pid, scope);
  return fail(ErrorKind::kRefused,
              "may not read the memory of process {}; in a container, start it "
              "with --cap-add=SYS_PTRACE, else run: sudo postflight profile "
              "--pid {}",
              pid, pid);
}

}  // namespace postflight
