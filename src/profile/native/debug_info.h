#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace postflight {

// What the debug information (DWARF) of a program or library says about its
// functions, as elfutils reads it. That is slow to begin with, so it is not
// read before it is asked for.
class DebugInfo {
 public:
  // Null if there is no such file.
  static std::unique_ptr<DebugInfo> open(const std::string& path);
  // Of bytes in memory, which it changes: elfutils does, where sections are
  // compressed. They have to outlive it.
  explicit DebugInfo(std::span<std::byte> file);
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;
  ~DebugInfo();

  // The functions whose code compilers have put into another one, at an address
  // before relocation: the innermost first, as linkers name them. The function
  // that they were put into is not among them. Empty if nothing is known.
  std::vector<std::string> inlined_at(std::uint64_t address);

 private:
  struct Handles;
  // The addresses that one source file was compiled to; a part of them.
  struct Unit {
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t offset;  // of its entry
  };

  void read();
  void list_units();

  std::span<std::byte> file_;
  bool mapped_ = false;               // by us
  std::unique_ptr<Handles> handles_;  // null: not read yet
  std::vector<Unit> units_;           // by their start
};

}  // namespace postflight
