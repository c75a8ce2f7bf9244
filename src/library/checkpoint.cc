#include "library/checkpoint.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "api/checkpoint.h"
#include "api/stream.h"
#include "checkpoint/key_filter.h"
#include "checkpoint/model/data_file.h"
#include "checkpoint/model/value_repr.h"
#include "checkpoint/tensor/slice.h"
#include "checkpoint/verification/verification.h"
#include "library/boundary.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

// Enough for any value that people write into a checkpoint by hand.
constexpr std::size_t kLongestRepr = 100'000;

void set_value(const Value& value, std::deque<std::string>& texts,
               postflight_node& node) {
  switch (value.kind()) {
    case Kind::kNone:
      node.value_kind = POSTFLIGHT_NONE;
      return;
    case Kind::kBoolean:
      node.value_kind = POSTFLIGHT_BOOLEAN;
      node.integer = value.boolean() ? 1 : 0;
      return;
    case Kind::kInteger:
      node.value_kind = POSTFLIGHT_INTEGER;
      node.integer = value.integer();
      return;
    case Kind::kFloat:
      node.value_kind = POSTFLIGHT_FLOAT;
      node.floating = value.floating();
      return;
    case Kind::kBigInteger:
      node.value_kind = POSTFLIGHT_BIG_INTEGER;
      node.text = as_string(value.text());
      return;
    case Kind::kString:
      node.value_kind = POSTFLIGHT_STRING;
      node.text = as_string(value.text());
      return;
    case Kind::kLegacyString:
    case Kind::kBytes:
      node.value_kind = POSTFLIGHT_BYTES;
      node.text = as_string(value.text());
      return;
    case Kind::kByteArray:
      node.value_kind = POSTFLIGHT_BYTEARRAY;
      node.text = as_string(value.text());
      return;
    default:
      node.value_kind = POSTFLIGHT_OTHER;
      node.text =
          as_string(texts.emplace_back(value_repr(value, kLongestRepr)));
      node.type = as_string(texts.emplace_back(value_type(value)));
  }
}

postflight_node node_of(const Node& node, std::deque<std::string>& texts) {
  postflight_node made{.kind = static_cast<std::uint32_t>(node.kind),
                       .key_kind = static_cast<std::uint32_t>(node.key.kind),
                       .key = as_string(node.key.text),
                       .key_number = node.key.number,
                       .parent = node.parent,
                       .end = node.end,
                       .index = node.index,
                       .children = node.children,
                       .type = as_string(node.type),
                       .value_kind = POSTFLIGHT_NONE,
                       .reserved = 0,
                       .integer = 0,
                       .floating = 0,
                       .text = {nullptr, 0}};
  if (node.kind == NodeKind::kValue)
    set_value(node.value, texts, made);
  return made;
}

std::uint32_t flags_of(const Tensor& tensor) {
  std::uint32_t flags = 0;
  const auto set_if = [&flags](bool is_so, postflight_tensor_flag flag) {
    if (is_so)
      flags |= static_cast<std::uint32_t>(flag);
  };
  set_if(tensor.role == TensorRole::kParameter, POSTFLIGHT_PARAMETER);
  set_if(tensor.role == TensorRole::kBuffer, POSTFLIGHT_BUFFER);
  set_if(tensor.requires_grad, POSTFLIGHT_REQUIRES_GRAD);
  set_if(tensor.readable() && !tensor.has_parts(), POSTFLIGHT_READABLE);
  set_if(tensor.has_parts(), POSTFLIGHT_HAS_PARTS);
  set_if(is_contiguous(tensor), POSTFLIGHT_CONTIGUOUS);
  set_if(!tensor.shape_known, POSTFLIGHT_SHAPE_UNKNOWN);
  set_if(tensor.conjugated, POSTFLIGHT_CONJUGATED);
  set_if(tensor.negated, POSTFLIGHT_NEGATED);
  return flags;
}

postflight_tensor tensor_of(const Tensor& tensor) {
  // Before a tensor with a problem is counted, nothing has checked its sizes.
  const bool sound = tensor.problem.empty() && tensor.shape_known;
  return {.dtype = as_string(tensor.dtype.name),
          .device = as_string(tensor.device),
          .layout = as_string(tensor.layout),
          .type = as_string(tensor.type),
          .problem = as_string(tensor.problem),
          .shape = tensor.shape.data(),
          .stride = tensor.stride.data(),
          .dimensions = static_cast<std::uint32_t>(tensor.shape.size()),
          .flags = flags_of(tensor),
          .storage = tensor.storage,
          .item_size = tensor.dtype.size,
          .offset = tensor.offset,
          .elements = sound ? tensor.elements() : 0,
          .bytes = sound ? tensor.bytes() : 0};
}

Result<OpenOptions> open_options(const postflight_open_options* given,
                                 const Context& context) {
  OpenOptions options{.context = context};
  if (given == nullptr)
    return options;
  if (given->size != sizeof(*given))
    return fail(ErrorKind::kUsage,
                "postflight_open_options has {} bytes instead of {}; begin "
                "with POSTFLIGHT_SIZED",
                given->size, sizeof(*given));
  if (given->has_rank != 0)
    options.rank = given->rank;
  if (given->plugin_count > 0) {
    const std::vector<std::string> plugins(
        given->plugins, given->plugins + given->plugin_count);
    options.extensions = TRY(stream_transforms(plugins));
  }
  if (given->key != nullptr)
    options.key.emplace(TRY(SecretKey::from_hex(given->key)));
  return options;
}

// Tensors are read from the files, but what describes them stays mapped, and
// another process may truncate a file at any time.
Result<> keep_descriptions(const Checkpoint& checkpoint) {
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::vector<std::uint64_t> begins(checkpoint.files().size(), kNone);
  std::vector<std::uint64_t> ends(checkpoint.files().size(), 0);
  for (const Storage& storage : checkpoint.storages()) {
    if (!storage.inside.empty() || storage.assembly != nullptr ||
        !storage.problem.empty() || storage.size == 0 ||
        storage.file >= begins.size())
      continue;
    Extent extent = storage.extent;
    if (storage.entry != nullptr)
      extent = TRY(checkpoint.files()[storage.file]->extent(*storage.entry));
    begins[storage.file] = std::min(begins[storage.file], extent.offset);
    ends[storage.file] =
        std::max(ends[storage.file], extent.offset + extent.size);
  }
  for (std::size_t i = 0; i < begins.size(); ++i)
    if (begins[i] != kNone)
      TRY(checkpoint.files()[i]->copy_edges(begins[i], ends[i]));
  return {};
}

std::unique_ptr<postflight_checkpoint> handle(
    std::shared_ptr<SharedContext> context, Checkpoint opened,
    std::string name) {
  return from_members<postflight_checkpoint>(
      std::make_shared<const SharedCheckpoint>(
          std::move(context), std::move(opened), std::move(name)));
}

std::vector<std::uint32_t> tensors_of(const Checkpoint& checkpoint) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t node = 0; node < checkpoint.nodes().size(); ++node)
    if (const Tensor* const tensor = checkpoint.tensor_at(node);
        tensor != nullptr && tensor->readable() && !tensor->has_parts())
      nodes.push_back(node);
  return nodes;
}

// As parse_slice() reads it.
Result<TensorSlice> sliced(const Tensor& tensor, const char* slice) {
  if (!tensor.problem.empty())
    return fail(ErrorKind::kCorrupt, "{}", tensor.problem);
  const std::vector<SliceRange> ranges = TRY(parse_slice(slice, tensor.shape));
  return slice_tensor(tensor, ranges);
}

}  // namespace

SharedCheckpoint::SharedCheckpoint(std::shared_ptr<SharedContext> with,
                                   Checkpoint opened, std::string path)
    : context(std::move(with)),
      checkpoint(std::move(opened)),
      name(std::move(path)),
      safety(safety_of(checkpoint, /*quickly=*/true)) {}

SharedCheckpoint::~SharedCheckpoint() {
  delete nodes_.load();
}

const std::vector<postflight_node>& SharedCheckpoint::nodes() const {
  const Nodes* known = nodes_.load();
  if (known != nullptr)
    return known->nodes;
  auto made = std::make_unique<Nodes>();
  made->nodes.reserve(checkpoint.nodes().size());
  for (const Node& node : checkpoint.nodes())
    made->nodes.push_back(node_of(node, made->texts));
  // Another thread may have made them meanwhile.
  if (nodes_.compare_exchange_strong(known, made.get()))
    known = made.release();
  return known->nodes;
}

Result<const Tensor*> SharedCheckpoint::tensor(std::uint32_t index) const {
  if (index >= checkpoint.tensors().size())
    return fail(ErrorKind::kUsage, "there is no tensor {}: it has {}", index,
                checkpoint.tensors().size());
  return &checkpoint.tensors()[index];
}

Result<Bytes> SharedCheckpoint::view(std::uint32_t index) const {
  const std::optional<Bytes> found = reader(0).view(*TRY(tensor(index)));
  if (!found)
    return fail(ErrorKind::kUnsupported,
                "its bytes are not in the file as they are in memory; read it "
                "instead");
  return *found;
}

TensorReader SharedCheckpoint::reader(std::uint32_t flags) const {
  return TensorReader(
      checkpoint,
      {.crc = (flags & POSTFLIGHT_CHECK_CRC) != 0  ? CrcCheck::kAlways
              : (flags & POSTFLIGHT_SKIP_CRC) != 0 ? CrcCheck::kNever
                                                   : CrcCheck::kWhole});
}

}  // namespace postflight

using namespace postflight;

postflight_status postflight_checkpoint_open(
    postflight_context* context, const char* path,
    const postflight_open_options* options, postflight_checkpoint** checkpoint,
    postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const std::shared_ptr<SharedContext> shared = shared_context(context);
    return interruptible(*shared, [&]() -> Result<> {
      OpenOptions with = TRY(open_options(options, shared->context));
      Checkpoint opened = TRY(Checkpoint::open(path, std::move(with)));
      TRY(keep_descriptions(opened));
      hand_out(handle(shared, std::move(opened), path), checkpoint);
      return {};
    });
  });
}

postflight_status postflight_checkpoint_open_bytes(
    postflight_context* context, const void* data, size_t size,
    const char* name, const postflight_open_options* options,
    postflight_checkpoint** checkpoint, postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const std::shared_ptr<SharedContext> shared = shared_context(context);
    const Bytes bytes(static_cast<const std::byte*>(data), size);
    return interruptible(*shared, [&]() -> Result<> {
      OpenOptions with = TRY(open_options(options, shared->context));
      Checkpoint opened = TRY(Checkpoint::open(bytes, name, std::move(with)));
      hand_out(handle(shared, std::move(opened), name), checkpoint);
      return {};
    });
  });
}

void postflight_checkpoint_free(postflight_checkpoint* checkpoint) {
  delete checkpoint;
}

const char* postflight_checkpoint_format(
    const postflight_checkpoint* checkpoint) {
  return format_name(checkpoint->shared->checkpoint.format()).data();
}

postflight_status postflight_checkpoint_list(
    const postflight_checkpoint* checkpoint, int all, postflight_text** json,
    postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const SharedCheckpoint& shared = *checkpoint->shared;
    ListingOptions options{.all = all != 0, .safety = &shared.safety};
    options.nodes = TRY(list_nodes(
        shared.checkpoint,
        {.kinds = all != 0 ? NodeKinds::kAll : NodeKinds::kTensors}));
    hand_out(written([&](Output& out) {
               write_listing_json(shared.name, shared.checkpoint, options, out);
             }),
             json);
    return {};
  });
}

postflight_status postflight_checkpoint_verify(
    const postflight_checkpoint* checkpoint, postflight_text** json,
    postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const SharedCheckpoint& shared = *checkpoint->shared;
    return interruptible(*shared.context, [&]() -> Result<> {
      const Verification found = verify(shared.checkpoint);
      hand_out(written([&](Output& out) {
                 write_verification_json(shared.name, shared.checkpoint, found,
                                         out);
               }),
               json);
      return {};
    });
  });
}

postflight_status postflight_checkpoint_digest(
    const postflight_checkpoint* checkpoint, postflight_text** json,
    postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const SharedCheckpoint& shared = *checkpoint->shared;
    return interruptible(*shared.context, [&]() -> Result<> {
      Result<> done;
      std::string answer = written([&](Output& out) {
        DigestReport report(shared.name, shared.checkpoint, true, out);
        done = digest_tensors(
            shared.checkpoint, tensors_of(shared.checkpoint),
            [&report](std::uint32_t node, const Result<std::string>& digest) {
              report.add(node, digest);
            });
        report.finish(Terminal());
      });
      TRY(std::move(done));
      hand_out(std::move(answer), json);
      return {};
    });
  });
}

postflight_status postflight_checkpoint_nodes(
    const postflight_checkpoint* checkpoint, const postflight_node** nodes,
    size_t* count, postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const std::vector<postflight_node>& all = checkpoint->shared->nodes();
    *nodes = all.data();
    *count = all.size();
    return {};
  });
}

postflight_status postflight_checkpoint_find(
    const postflight_checkpoint* checkpoint, const char* path, uint32_t* node,
    postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    *node = TRY(find_node(checkpoint->shared->checkpoint, path));
    return {};
  });
}

postflight_status postflight_checkpoint_path(
    const postflight_checkpoint* checkpoint, uint32_t node,
    postflight_text** path, postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const Checkpoint& opened = checkpoint->shared->checkpoint;
    if (node >= opened.nodes().size())
      return fail(ErrorKind::kUsage, "node {} does not exist: it has {}", node,
                  opened.nodes().size());
    hand_out(opened.path_of(node), path);
    return {};
  });
}

size_t postflight_checkpoint_tensor_count(
    const postflight_checkpoint* checkpoint) {
  return checkpoint->shared->checkpoint.tensors().size();
}

postflight_status postflight_checkpoint_tensor(
    const postflight_checkpoint* checkpoint, uint32_t index,
    postflight_tensor* tensor, postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    *tensor = tensor_of(*TRY(checkpoint->shared->tensor(index)));
    return {};
  });
}

postflight_status postflight_tensor_read(
    const postflight_checkpoint* checkpoint, uint32_t index, uint32_t flags,
    void* to, size_t size, postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const SharedCheckpoint& shared = *checkpoint->shared;
    const TensorTarget target = {TRY(shared.tensor(index)),
                                 {static_cast<std::byte*>(to), size}};
    return interruptible(*shared.context, [&] {
      return shared.reader(flags).read_all({&target, 1});
    });
  });
}

postflight_status postflight_tensors_read(
    const postflight_checkpoint* checkpoint, const postflight_target* targets,
    size_t count, uint32_t flags, postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const SharedCheckpoint& shared = *checkpoint->shared;
    std::vector<TensorTarget> all;
    all.reserve(count);
    for (const postflight_target& target : std::span(targets, count))
      all.push_back({TRY(shared.tensor(target.index)),
                     {static_cast<std::byte*>(target.to), target.size}});
    return interruptible(*shared.context,
                         [&] { return shared.reader(flags).read_all(all); });
  });
}

postflight_status postflight_tensor_read_slice(
    const postflight_checkpoint* checkpoint, uint32_t index, const char* slice,
    uint32_t flags, int64_t* shape, uint32_t* dimensions, void* to,
    size_t* size, postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const SharedCheckpoint& shared = *checkpoint->shared;
    const Tensor* const tensor = TRY(shared.tensor(index));
    const TensorSlice part = TRY(sliced(*tensor, slice));
    if (*dimensions < part.shape.size())
      return fail(ErrorKind::kUsage,
                  "the slice has {} dimensions, but there is room for {}",
                  part.shape.size(), *dimensions);
    if (to != nullptr) {
      const TensorTarget target = {&part.tensor,
                                   {static_cast<std::byte*>(to), *size}};
      TRY(interruptible(*shared.context, [&] {
        return shared.reader(flags).read_all({&target, 1});
      }));
    }
    std::ranges::copy(part.shape, shape);
    *dimensions = static_cast<uint32_t>(part.shape.size());
    *size = part.tensor.bytes();
    return {};
  });
}

postflight_status postflight_tensor_view(
    const postflight_checkpoint* checkpoint, uint32_t index, const void** data,
    size_t* size, postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const Bytes view = TRY(checkpoint->shared->view(index));
    *data = view.data();
    *size = view.size();
    return {};
  });
}

postflight_status postflight_tensor_place(
    const postflight_checkpoint* checkpoint, uint32_t index,
    postflight_text** path, uint64_t* offset, postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const SharedCheckpoint& shared = *checkpoint->shared;
    const Bytes view = TRY(shared.view(index));
    for (const DataFile* const file : shared.checkpoint.files()) {
      const Bytes all = file->mapped_bytes();
      if (view.data() < all.data() ||
          view.data() + view.size() > all.data() + all.size())
        continue;
      hand_out(file->path().native(), path);
      *offset = static_cast<uint64_t>(view.data() - all.data());
      return {};
    }
    return fail(ErrorKind::kUnsupported,
                "its bytes are not in a file that is mapped; read it instead");
  });
}
