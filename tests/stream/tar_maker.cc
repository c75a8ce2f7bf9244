#include "stream/tar_maker.h"

#include <fmt/format.h>

namespace postflight {

std::string tar_entry(const TarEntry& entry) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, std::string_view text) {
    header.replace(at, text.size(), text);
  };
  put(0, entry.path);
  put(100, "0000644");
  put(124, entry.size.empty() ? fmt::format("{:011o}", entry.contents.size())
                              : entry.size);
  put(148, "        ");
  header[156] = entry.type;
  put(257, entry.gnu ? std::string_view("ustar  ", 8)
                     : std::string_view("ustar\00000", 8));
  put(345, entry.prefix);
  unsigned sum = 0;
  for (const char c : header)
    sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  std::string out = header + entry.contents;
  out.resize((out.size() + 511) / 512 * 512);
  return out;
}

std::string pax_record(std::string_view key, std::string_view value) {
  std::size_t length = key.size() + value.size() + 3;
  while (fmt::formatted_size("{} {}={}\n", length, key, value) != length)
    ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

std::string tar_end() {
  return std::string(1024, '\0');
}

}  // namespace postflight
