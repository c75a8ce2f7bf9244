#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace postflight {

struct ElfSection {
  std::string_view name;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint32_t type = 0;
  std::uint32_t link = 0;
  Bytes bytes = {};  // empty if there are none in the file
};

struct ElfSegment {
  std::uint64_t address = 0;
  std::uint64_t offset = 0;
};

struct ElfFunction {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::string_view name;
};

// The parts of a 64-bit little-endian ELF file that a profiler needs. Views
// into the bytes it was parsed from, which must outlive it and are not trusted.
class ElfImage {
 public:
  static Result<ElfImage> parse(Bytes file);

  const ElfSection* section(std::string_view name) const;
  // The address of a symbol that is defined here, before relocation.
  std::optional<std::uint64_t> symbol(std::string_view name) const;
  // All functions of both symbol tables, sorted by address.
  std::vector<ElfFunction> functions() const;
  // The build id in hexadecimal; empty if there is none.
  std::string build_id() const;
  // The address of each segment by its offset in the file, both rounded down
  // to a page, as the kernel maps them.
  std::map<std::uint64_t, std::uint64_t> segment_pages() const;

 private:
  template <class Visit>
  void each_symbol(std::uint32_t table_type, Visit visit) const;

  std::vector<ElfSection> sections_;
  std::vector<ElfSegment> segments_;
};

}  // namespace postflight
