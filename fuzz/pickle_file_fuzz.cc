#include <cstddef>
#include <cstdint>

#include "report/pickle/report.h"

using namespace postflight;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const Result<PickleFile> file = PickleFile::read(
      std::as_bytes(std::span(data, size)), {.max_inflated_bytes = 1 << 20});
  if (!file)
    return 0;
  Output out([](std::string_view) {});
  const Terminal terminal;
  write_pickle_report("fuzz", *file, {}, terminal, out);
  write_pickle_report_json("fuzz", *file, {}, out);
  write_disassembly("fuzz", *file, {}, terminal, out);
  return 0;
}
