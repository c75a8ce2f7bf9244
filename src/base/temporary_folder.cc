#include "base/temporary_folder.h"

#include "base/environment.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/stat.h>

namespace postflight {

TemporaryFolder::TemporaryFolder(std::filesystem::path path)
    : path_(std::move(path)), leftover_(path_) {}

Result<TemporaryFolder> TemporaryFolder::create(std::filesystem::path parent) {
  if (parent.empty())
    parent = process_environment()("TMPDIR").value_or("");
  if (parent.empty())
    parent = "/tmp";
  std::error_code failed;
  const std::filesystem::path absolute =
      std::filesystem::absolute(parent, failed);
  // Not mkdtemp: with a name chosen here, the folder is registered for removal
  // before it exists.
  TemporaryFolder folder(absolute / Leftovers::unique_name());
  if (failed || ::mkdir(folder.path_.c_str(), 0700) != 0) {
    const std::error_code reason =
        failed ? failed : std::error_code(errno, std::generic_category());
    folder.keep();
    return fail(ErrorKind::kIo,
                "cannot create a temporary folder in {}: {}; set TMPDIR to a "
                "writable folder",
                parent.string(), reason.message());
  }
  return folder;
}

}  // namespace postflight
