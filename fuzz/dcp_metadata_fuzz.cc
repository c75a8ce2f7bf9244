#include "checkpoint/dcp/metadata.h"
#include "checkpoint/dcp/tree.h"
#include "checkpoint/model/assembly.h"
#include "pickle/machine.h"

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace postflight;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  Machine machine;
  const Result<Pickle> pickle =
      machine.load(std::as_bytes(std::span(data, size)));
  if (!pickle)
    return 0;
  Arena arena;
  Result<DcpMetadata> metadata = read_dcp_metadata(pickle->root, arena);
  if (!metadata)
    return 0;
  Tree tree;
  std::size_t leaves = 0;
  DcpTree(metadata->entries)
      .write(tree, 0, {},
             [&](const DcpEntry& entry, std::uint32_t parent, const Key& key) {
               ++leaves;
               tree.add(parent, key, NodeKind::kValue);
               std::uint64_t elements = 1;
               for (const std::int64_t length : entry.size)
                 if (__builtin_mul_overflow(elements, length, &elements))
                   return;
               Assembly assembly;
               assembly.dtype = dtype_named("uint8");
               assembly.shape = entry.size;
               std::vector<AssemblyChunk> chunks;
               for (const DcpChunk& from : entry.chunks) {
                 AssemblyChunk& chunk = chunks.emplace_back();
                 chunk.offsets = from.offsets;
                 chunk.sizes = from.sizes;
               }
               assembly.chunks = chunks;
               (void)assembly.settle();
             });
  if (leaves != metadata->entries.size())
    __builtin_trap();
  return 0;
}
