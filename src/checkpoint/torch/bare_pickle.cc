// A pickle that is a file by itself. Tensors in it have no storages.

#include "checkpoint/torch/container_search.h"
#include "checkpoint/torch/sources.h"
#include "checkpoint/torch/tree_builder.h"

namespace postflight {

Result<> add_bare_pickle(std::uint32_t file, const SourceContext& context) {
  DataFile& data = *context.checkpoint.files[file];
  Result<Pickle> pickle = load_pickle(context.checkpoint, data, data.bytes());
  if (!pickle) {
    // If it is not a pickle at all, this says what it seems to be.
    Allowance allowance(data.size(), context.limits());
    TRY(find_pickle_streams(data.bytes(), context.limits(), allowance));
    return tl::unexpected(std::move(pickle.error()));
  }
  if (pickle->size < data.size())
    context.checkpoint.report(
        "trailing_bytes", Severity::kWarning,
        fmt::format("{} bytes follow the pickle", data.size() - pickle->size),
        data.path().filename().string());
  TreeBuilder builder(context.checkpoint.tree,
                      [](const Value&, StorageReference&) { return kNoIndex; });
  return place(builder, pickle->root, context);
}

}  // namespace postflight
