// Opens folders: several files, all of which are the fuzzer's. The input is a
// list of them, each with the length of its name in a byte, the name, the size
// of its contents in four bytes, and the contents; the last may be cut.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/temporary_folder.h"
#include "open_in_memory.h"

namespace {

using namespace postflight;  // NOLINT: a program of one file

// A name that stays in the folder.
std::string name_of(std::string_view given) {
  std::string name;
  for (const char c : given)
    name += c == '/' || c == '\0' ? '_' : c;
  return name == "." || name == ".." || name.empty() ? "x" : name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  constexpr std::size_t kMostFiles = 16;
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  if (!folder)
    __builtin_trap();
  Bytes rest = std::as_bytes(std::span(data, size));
  for (std::size_t i = 0; i < kMostFiles && !rest.empty(); ++i) {
    const std::size_t length = std::min<std::size_t>(
        static_cast<std::size_t>(rest.front()), rest.size() - 1);
    const std::string name = name_of(as_text(rest.subspan(1, length)));
    rest = rest.subspan(1 + length);
    if (rest.size() < 4)
      break;
    const std::size_t count = std::min<std::size_t>(
        load_little_endian<std::uint32_t>(rest.data()), rest.size() - 4);
    std::ofstream(folder->path() / name, std::ios::binary)
        << as_text(rest.subspan(4, count));
    rest = rest.subspan(4 + count);
  }
  inspect(Checkpoint::open(folder->path(), fuzz_options()));
  return 0;
}
