#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace postflight {

// A function and the line in it that runs, or calls the next inner one.
struct SourcePlace {
  std::string function = {};  // mangled
  std::string file = {};      // empty: not known
  std::uint32_t line = 0;     // 0: not known
};

// Functions and lines according to the debug information (DWARF) of a program
// or library, read by elfutils. Opening it is slow, so that happens at first
// use.
class DebugInfo {
 public:
  // Null if there is no such file.
  static std::unique_ptr<DebugInfo> open(const std::string& path);
  // From bytes in memory, which must outlive it. elfutils modifies them where
  // sections are compressed.
  explicit DebugInfo(std::span<std::byte> file);
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;
  ~DebugInfo();

  // The functions inlined at an address (before relocation), the innermost
  // first, and then the function that contains them. Empty if nothing is known.
  std::vector<SourcePlace> places_at(std::uint64_t address);

 private:
  struct Handles;
  // A range of addresses of one compilation unit.
  struct Unit {
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t offset;  // of its DIE
  };

  void read();
  void list_units();

  std::span<std::byte> file_;
  bool mapped_ = false;               // by us
  std::unique_ptr<Handles> handles_;  // null: not read yet
  std::vector<Unit> units_;           // sorted by start
};

}  // namespace postflight
