#include <cstddef>
#include <cstdint>

#include "json/writer.h"
#include "pickle/audit/audit.h"
#include "pickle/machine.h"
#include "pickle/writing/writer.h"
#include "report/pickle/json.h"
#include "report/pickle/text.h"

using namespace postflight;

// Reads a pickle, checks the machine's memory bound, and prints and writes the
// value.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  constexpr std::uint64_t kConstant = 1 << 20;
  Machine machine;
  const Result<Pickle> pickle =
      machine.load(std::as_bytes(std::span(data, size)));
  if (machine.memory_bytes() > 64 * size + kConstant)
    __builtin_trap();
  static_cast<void>(audit(machine));
  if (!pickle)
    return 0;
  if (pickle->size > size)
    __builtin_trap();

  std::uint64_t written = 0;
  Output out([&written](std::string_view piece) { written += piece.size(); });
  {
    JsonWriter json(out);
    write_pickle_json(pickle->root, json);
  }
  write_pickle_text(pickle->root, {.all = true}, out);

  // Round trip.
  for (const int protocol : {2, 4}) {
    const Result<std::string> again = write_pickle(
        pickle->root, {.protocol = protocol, .max_bytes = 1 << 20});
    Machine second;
    if (again && !second.load(as_bytes(*again)))
      __builtin_trap();
  }
  return 0;
}
