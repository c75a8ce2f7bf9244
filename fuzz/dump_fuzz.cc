// If the fast path of the dump reader reads anything, the slow path reads the
// same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "flight/dump_difference.h"
#include "flight/model/dump_reader.h"
#include "flight/model/dump_value.h"
#include "flight/model/recorder_dump.h"
#include "pickle/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace postflight;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  Machine machine;
  MemberLists lists;
  (void)read_dump(bytes, machine, Limits(), lists);
  const std::optional<Dump> direct = read_recorder_dump(bytes, lists);
  if (!direct)
    return 0;
  machine.reset();
  const Result<Pickle> pickle = machine.load(bytes);
  if (!pickle)
    std::abort();
  const Result<Dump> tree = dump_from_value(pickle->root, lists);
  if (!tree || !difference(*direct, *tree).empty())
    std::abort();
  return 0;
}
