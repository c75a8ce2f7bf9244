#pragma once

#include "base/bytes.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/limits.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace postflight {

struct WatchedMapping;

// What a command reads for an argument: `-` is standard input.
std::filesystem::path input_path(std::string_view argument);

// "permission denied: it belongs to root and has mode 0600; read it as root, or
// ..." if this user may not read a file, or not reach it; else nothing.
std::optional<std::string> permission_advice(const std::filesystem::path& path);
// That open() failed, from errno, with that advice.
[[gnu::cold]] tl::unexpected<Error> fail_to_open(
    const std::filesystem::path& path);

// A whole file as bytes, mapped read-only. What cannot be mapped (a pipe, a
// file of /proc) is read into memory instead, up to Limits::max_pipe_bytes;
// folders and devices are refused. If another process truncates the file
// while it is mapped, touching the missing part reads zeros under a
// TruncationGuard and makes shrank() true. Without a guard it raises SIGBUS, so
// then only large files are mapped, and copy_in() is for the parts of them that
// are used again and again.
class MappedFile {
 public:
  // Blocks until a named pipe has a writer, as cat does; when walking a folder,
  // skip everything that is not a regular file.
  static Result<MappedFile> open(const std::filesystem::path& path,
                                 const Limits& limits = {});

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Whether the file has been truncated since it was mapped, so that bytes
  // read from it may have been zeros.
  bool shrank() const;

  // Replaces a part of the mapping by a copy, at the same addresses. Fails if
  // the file has become too short. Nobody else may read the part meanwhile.
  Result<> copy_in(std::uint64_t offset, std::uint64_t size) const;

  // Valid while the MappedFile lives, also after it was moved.
  Bytes bytes() const {
    return {static_cast<const std::byte*>(address_), size_};
  }

 private:
  MappedFile() = default;
  Result<> read_all(int descriptor, const std::filesystem::path& path,
                    const Limits& limits);
  // Doubles the buffer; false if out of memory.
  bool grow();

  void* address_ = nullptr;
  std::size_t mapped_ = 0;
  std::size_t size_ = 0;
  // Set only if the file is mapped, not read into memory.
  WatchedMapping* watched_ = nullptr;
  std::filesystem::path path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace postflight
