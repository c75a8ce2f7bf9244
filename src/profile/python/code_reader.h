#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "profile/process/memory.h"
#include "profile/python/locator.h"
#include "profile/python/stack.h"

namespace postflight {

// A Python str as UTF-8, truncated after `most` characters; nothing if there is
// no plausible str at that address. Lone surrogates become three bytes.
std::optional<std::string> read_python_text(const Memory& memory,
                                            const PythonLayout& layout,
                                            std::uint64_t address,
                                            std::size_t most);

// What a code object says about its function.
struct PythonCode {
  std::string name;  // qualified, where Python knows it
  std::string file;
  std::int32_t first_line = 0;
  std::vector<std::byte> line_table = {};

  bool operator==(const PythonCode&) const = default;
};

// A copied range of memory.
struct MemoryCopy {
  std::uint64_t address = 0;
  Bytes bytes = {};
};

// Reads code objects, once each. A code object can be freed and another created
// at its address, so a known one is used only while the object still has the
// same name, file and first line, or until the agent sends a copy of another.
class CodeReader {
 public:
  // `memory` and `runtime` must outlive it.
  CodeReader(const Memory& memory, const PythonRuntime& runtime,
             const Limits& limits);

  // Null if there is no code object at that address, or no longer.
  const PythonCode* find(std::uint64_t address);
  // For code that was found before: whether another has taken its place, which
  // counts as a change.
  void check(std::span<const std::uint64_t> addresses);
  // Takes a code object, the first of the copies, and what it refers to, copied
  // while it was alive.
  void learn(std::span<const MemoryCopy> copies);
  // Counts the code objects that took the place of another, so that what is
  // known by address can be forgotten.
  std::uint64_t changes() const { return changes_; }
  // Counts what find() did not find.
  std::uint64_t misses() const { return misses_; }
  // The current line of a frame of this code; the first line if it has none.
  std::int32_t line(const PythonCode& code, const RawFrame& frame) const;

 private:
  // What distinguishes one code object from another.
  struct Identity {
    std::uint64_t type = 0;
    std::uint64_t name = 0;
    std::uint64_t file = 0;
    std::uint64_t line_table = 0;
    std::int32_t first_line = 0;
    // Of the contents of name, file and line table: alike objects are often
    // made at the same addresses one after the other.
    std::uint64_t contents = 0;
    bool operator==(const Identity&) const = default;
  };
  struct Known {
    Identity identity;
    std::optional<PythonCode> code;
    bool copied = false;  // by the agent, so this is what ran
  };

  std::optional<Identity> identify(const Memory& memory,
                                   std::uint64_t address) const;
  const PythonCode* look_up(std::uint64_t address);
  Identity identity_in(Bytes code) const;
  void read_contents(std::span<Identity> identities) const;
  std::optional<PythonCode> read(const Memory& memory,
                                 const Identity& identity) const;
  std::optional<PythonCode> read_alive(std::uint64_t address,
                                       const Identity& identity) const;

  const Memory& memory_;
  const PythonRuntime& runtime_;
  const Limits limits_;
  std::unordered_map<std::uint64_t, Known> known_;
  std::uint64_t changes_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace postflight
