#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/pointer_map.h"
#include "pickle/machine.h"
#include "pickle/parts.h"
#include "pickle/same_graph.h"
#include "pickle/writing/writer.h"

using namespace postflight;

namespace {

// Whether a value contains something that the protocol writes as a call, and
// that is therefore read back as a call.
bool becomes_a_call(const Value& value, int protocol) {
  if (value.is(Kind::kByteArray))
    return true;
  const bool newer =
      value.is(Kind::kBytes) || value.is(Kind::kSet) ||
      value.is(Kind::kFrozenSet) ||
      (value.is(Kind::kObject) && value.object().making == Making::kNewEx);
  return newer && protocol < 4;
}

bool has_calls_instead(const Value& root, int protocol) {
  PointerMap met;
  std::vector<Value> open{root};
  while (!open.empty()) {
    const Value value = open.back();
    open.pop_back();
    if (becomes_a_call(value, protocol))
      return true;
    if (value.identity() != nullptr && met[value.identity()]++ != 0)
      continue;
    for (std::size_t i = 0; i < part_count(value); ++i)
      open.push_back(part_at(value, i).value);
  }
  return false;
}

}  // namespace

// Reads a pickle, writes it and reads it again: both must be the same graph,
// and writing the second must produce the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  Machine machine;
  const Result<Pickle> pickle =
      machine.load(std::as_bytes(std::span(data, size)));
  if (!pickle)
    return 0;
  for (const int protocol : {2, 4}) {
    const WriteOptions options{.protocol = protocol, .max_bytes = 1 << 20};
    const Result<std::string> written = write_pickle(pickle->root, options);
    if (!written)
      continue;  // too long, or not expressible
    Machine second;
    const Result<Pickle> again = second.load(as_bytes(*written));
    if (!again || again->size != written->size())
      __builtin_trap();
    if (has_calls_instead(pickle->root, protocol))
      continue;
    if (!same_graph(pickle->root, again->root))
      __builtin_trap();
    const Result<std::string> twice = write_pickle(again->root, options);
    if (!twice || *twice != *written)
      __builtin_trap();
  }
  return 0;
}
