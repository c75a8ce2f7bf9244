#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include <sys/types.h>

#include "base/error.h"

namespace postflight {

// A range of another process's memory and where to copy it.
struct MemoryPiece {
  std::uint64_t address = 0;
  std::span<std::byte> to = {};
};

// Memory that can be read but not trusted: its owner writes to it meanwhile,
// and any address may be wrong. A seam, so that tests can provide bytes.
class Memory {
 public:
  virtual ~Memory() = default;

  // Fills the pieces in order, up to the first that is not wholly readable.
  // Returns how many were filled.
  virtual std::size_t read(std::span<const MemoryPiece> pieces) const = 0;

  bool read(std::uint64_t address, std::span<std::byte> to) const {
    const MemoryPiece piece = {address, to};
    return read(std::span(&piece, 1)) == 1;
  }

  template <class T>
  requires std::is_trivially_copyable_v<T> std::optional<T> load(
      std::uint64_t address)
  const {
    T value;
    if (!read(address, std::as_writable_bytes(std::span(&value, 1))))
      return std::nullopt;
    return value;
  }
};

// The memory of a process, which keeps running.
class ProcessMemory final : public Memory {
 public:
  explicit ProcessMemory(pid_t pid) : pid_(pid) {}

  using Memory::read;
  std::size_t read(std::span<const MemoryPiece> pieces) const override;

 private:
  pid_t pid_;
};

// Whether the memory of a process may be read; the error says what would help.
// `command` is what reads it: "profile".
Result<> check_permission(pid_t pid, std::string_view command = "profile");

}  // namespace postflight
