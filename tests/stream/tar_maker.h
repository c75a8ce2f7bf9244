#pragma once

#include <string>
#include <string_view>

namespace postflight {

struct TarEntry {
  std::string path;
  std::string contents = {};
  char type = '0';
  std::string prefix = {};
  bool gnu = false;       // the magic of GNU tar, not of POSIX
  std::string size = {};  // as it stands in the header; octal if empty
};

// One member with its header and padding.
std::string tar_entry(const TarEntry& entry);
// "<length> <key>=<value>\n"
std::string pax_record(std::string_view key, std::string_view value);
// The two blocks of zeros at the end.
std::string tar_end();

}  // namespace postflight
