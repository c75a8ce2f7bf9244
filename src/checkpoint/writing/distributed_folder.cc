// Distributed checkpoints, as torch.distributed.checkpoint writes them: each
// part of a tensor and each value is an item, an archive of its own; a file of
// each rank has its items one after the other; .metadata comes last, as it says
// that the checkpoint is complete.

#include <algorithm>
#include <array>
#include <memory>

#include "checkpoint/tensor/slice.h"
#include "checkpoint/writing/tensor_stream.h"
#include "pickle/writing/writer.h"
#include "stream/sink.h"

namespace postflight {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::string_view kMetadataModule =
    "torch.distributed.checkpoint.metadata";
constexpr std::string_view kFilesystemModule =
    "torch.distributed.checkpoint.filesystem";

using Numbers = std::vector<std::int64_t>;

// Where an item is.
struct Place {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct TensorChunk {
  Numbers offsets;
  Numbers sizes;
  Place place;
};

struct TensorEntry {
  const WrittenTensor* tensor = nullptr;
  std::vector<TensorChunk> chunks;
};

struct ValueEntry {
  std::uint32_t node = 0;
  std::string name;
  std::vector<Key> path;
  Place place;
};

// The bytes that a chain of transforms gives.
class PlainSink : public Sink {
 public:
  explicit PlainSink(const ByteSink& to) : to_(to) {}
  Result<> write(Bytes bytes) override {
    at_ += bytes.size();
    return to_(bytes);
  }
  Result<> flush() override { return {}; }
  std::uint64_t tell() const override { return at_; }

 private:
  const ByteSink& to_;
  std::uint64_t at_ = 0;
};

// The pickle of .metadata.
class MetadataPickle {
 public:
  explicit MetadataPickle(std::vector<std::string> transforms)
      : transforms_(std::move(transforms)) {}

  Result<std::string> write(std::span<const TensorEntry> tensors,
                            std::span<const ValueEntry> values,
                            const std::string& id) {
    const Value entries = builder_.dict();
    const Value planner = builder_.dict();
    const Value places = builder_.dict();
    for (const ValueEntry& value : values) {
      set(entries, value.name, object(kMetadataModule, "BytesStorageMetadata"));
      set(planner, value.name, path(value.path));
      builder_.set_item(
          places,
          filled(kMetadataModule, "MetadataIndex",
                 {{"fqn", text(value.name)}, {"index", Builder::none()}}),
          stored(value.place));
    }
    for (const TensorEntry& entry : tensors) {
      const std::string& name = entry.tensor->output.name;
      const Value chunks = builder_.list();
      for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
        const TensorChunk& chunk = entry.chunks[i];
        builder_.append(chunks, filled(kMetadataModule, "ChunkStorageMetadata",
                                       {{"offsets", size(chunk.offsets)},
                                        {"sizes", size(chunk.sizes)}}));
        builder_.set_item(
            places,
            filled(kMetadataModule, "MetadataIndex",
                   {{"fqn", text(name)},
                    {"index", builder_.integer(static_cast<std::int64_t>(i))},
                    {"offset", size(chunk.offsets)}}),
            stored(chunk.place));
      }
      const Tensor& tensor = *entry.tensor->output.tensor;
      set(entries, name,
          filled(kMetadataModule, "TensorStorageMetadata",
                 {{"properties", properties(entry.tensor->output)},
                  {"size",
                   size(Numbers(tensor.shape.begin(), tensor.shape.end()))},
                  {"chunks", chunks}}));
      set(planner, name, path(entry.tensor->path));
    }
    const Value meta = filled(kMetadataModule, "StorageMeta",
                              {{"checkpoint_id", text(id)},
                               {"save_id", text(id)},
                               {"load_id", Builder::none()},
                               {"modules", builder_.list()}});
    return write_pickle(filled(kMetadataModule, "Metadata",
                               {{"state_dict_metadata", entries},
                                {"planner_data", planner},
                                {"storage_data", places},
                                {"storage_meta", meta},
                                {"version", text("1.0.0")}}),
                        {.protocol = 4});
  }

 private:
  using Attribute = std::pair<std::string_view, Value>;

  Value text(std::string_view from) { return builder_.interned(from); }
  void set(Value dict, std::string_view key, Value value) {
    builder_.set_item(dict, text(key), value);
  }

  Value object(std::string_view module, std::string_view name) {
    return builder_.new_object(builder_.global(module, name),
                               builder_.tuple({}));
  }

  Value filled(std::string_view module, std::string_view name,
               std::initializer_list<Attribute> attributes) {
    const Value made = object(module, name);
    const Value state = builder_.dict();
    for (const auto& [key, value] : attributes)
      set(state, key, value);
    builder_.add_state(made, state);
    return made;
  }

  Value size(const Numbers& numbers) {
    std::vector<Value> items;
    for (const std::int64_t number : numbers)
      items.push_back(builder_.integer(number));
    return builder_.reduce(builder_.global("torch", "Size"),
                           builder_.tuple({builder_.tuple(items)}));
  }

  Value path(std::span<const Key> keys) {
    std::vector<Value> items;
    for (const Key& key : keys)
      items.push_back(key.is_number() ? builder_.integer(key.number)
                                      : text(key.text));
    return builder_.tuple(items);
  }

  Value properties(const OutputTensor& output) {
    const Value made = object(kMetadataModule, "TensorProperties");
    const Value layout =
        builder_.reduce(builder_.global("torch.serialization", "_get_layout"),
                        builder_.tuple({text("torch.strided")}));
    const Value memory = builder_.reduce(
        builder_.global(kMetadataModule, "_MEM_FORMAT_ENCODING"),
        builder_.tuple({builder_.integer(0)}));
    builder_.add_state(
        made,
        builder_.tuple({builder_.global("torch", output.dtype.name), layout,
                        Builder::boolean(output.tensor->requires_grad), memory,
                        Builder::boolean(false)}));
    return made;
  }

  Value stored(const Place& place) {
    const Value made = filled(
        kFilesystemModule, "_StorageInfo",
        {{"relative_path", text(place.file)},
         {"offset", builder_.integer(static_cast<std::int64_t>(place.offset))},
         {"length",
          builder_.integer(static_cast<std::int64_t>(place.length))}});
    if (!transforms_.empty()) {
      std::vector<Value> names;
      for (const std::string& name : transforms_)
        names.push_back(text(name));
      set(made.object().state, "transform_descriptors", builder_.list(names));
    }
    return made;
  }

  Builder builder_;
  std::vector<std::string> transforms_;
};

// The file of one rank.
class RankWriter {
 public:
  RankWriter(std::string name, AtomicFile file,
             const TransformChain* transforms)
      : name_(std::move(name)),
        file_(std::move(file)),
        transforms_(transforms) {}

  Result<Place> add(const std::function<Result<>(const ByteSink&)>& write) {
    const std::uint64_t begin = at_;
    const ByteSink to_file = [this](Bytes bytes) {
      at_ += bytes.size();
      return file_.write(bytes);
    };
    if (transforms_ == nullptr) {
      TRY(write(to_file));
    } else {
      PlainSink plain(to_file);
      const std::unique_ptr<Sink> encoded =
          TRY(transforms_->transform_to(plain));
      TRY(write([&encoded](Bytes bytes) { return encoded->write(bytes); }));
      TRY(encoded->finish());
    }
    return Place{name_, begin, at_ - begin};
  }

  Result<OutputFile> commit() {
    TRY(file_.commit());
    return OutputFile{name_, at_};
  }

 private:
  std::string name_;
  AtomicFile file_;
  const TransformChain* transforms_;
  std::uint64_t at_ = 0;
};

Result<> write_item(std::string_view pickle, std::uint64_t bytes,
                    const TorchArchive::Write& write, const ByteSink& sink) {
  TorchArchive archive("archive", kAlignment, sink);
  TRY(archive.begin(pickle, "little"));
  TRY(archive.add("data/0", bytes, write));
  return archive.finish();
}

Result<> write_value_item(std::string_view pickle, const ByteSink& sink) {
  TorchArchive archive("archive", kAlignment, sink);
  TRY(archive.begin(pickle, "little"));
  return archive.finish();
}

// A tensor without the dimension stays whole.
std::vector<TensorChunk> divide(const Tensor& tensor, std::uint32_t parts,
                                std::uint32_t dimension) {
  const Numbers shape(tensor.shape.begin(), tensor.shape.end());
  std::vector<TensorChunk> chunks;
  if (parts == 1 || dimension >= shape.size() || shape[dimension] == 0)
    return {{Numbers(shape.size()), shape, {}}};
  for (std::uint32_t rank = 0; rank < parts; ++rank) {
    const SliceRange share = share_of(shape[dimension], rank, parts);
    if (share.count == 0)
      break;
    TensorChunk chunk{Numbers(shape.size()), shape, {}};
    chunk.offsets[dimension] = static_cast<std::int64_t>(share.start);
    chunk.sizes[dimension] = static_cast<std::int64_t>(share.count);
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

TensorSlice part_of(const Tensor& tensor, const TensorChunk& chunk) {
  std::vector<SliceRange> ranges;
  for (std::size_t i = 0; i < chunk.sizes.size(); ++i)
    ranges.push_back({static_cast<std::uint64_t>(chunk.offsets[i]),
                      static_cast<std::uint64_t>(chunk.sizes[i]), 1, false});
  return slice_tensor(tensor, ranges);
}

// A name that is the same for the same contents.
std::string id_of(std::span<const TensorEntry> tensors,
                  const std::string& name) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  const auto add = [&sum](std::string_view text) {
    for (const char c : text)
      sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  };
  add(name);
  for (const TensorEntry& entry : tensors)
    add(entry.tensor->output.name);
  return fmt::format("{}-{:016x}", name, sum);
}

}  // namespace

Result<std::vector<OutputFile>> write_distributed(
    const Checkpoint& checkpoint, const OutputPlan& plan,
    const std::filesystem::path& folder, const std::string& name,
    TensorStream& stream) {
  std::vector<TensorEntry> tensors;
  for (const WrittenTensor& tensor : plan.tensors)
    tensors.push_back(
        {&tensor, divide(*tensor.output.tensor, plan.request.ranks,
                         plan.request.dimension)});
  std::vector<ValueEntry> values;
  for (const WrittenValue& value : plan.written_values)
    values.push_back({value.node, value.name, value.path, {}});

  std::vector<OutputFile> files;
  for (std::uint32_t rank = 0; rank < plan.request.ranks; ++rank) {
    const std::string file = fmt::format("__{}_0.distcp", rank);
    RankWriter writer(file, TRY(AtomicFile::create(folder / file)),
                      plan.request.transforms);
    for (ValueEntry& value : values)
      if (rank == 0) {
        const std::string pickle = TRY(
            pickle_value(checkpoint.nodes()[value.node].value).in(value.name));
        value.place = TRY(writer.add([&pickle](const ByteSink& sink) {
          return write_value_item(pickle, sink);
        }));
      }
    for (TensorEntry& entry : tensors) {
      if (rank >= entry.chunks.size())
        continue;
      TensorChunk& chunk = entry.chunks[rank];
      const OutputTensor& output = entry.tensor->output;
      const std::string pickle = TRY(pickle_tensor(
          output.dtype, chunk.sizes, output.tensor->requires_grad));
      const TensorSlice part = part_of(*output.tensor, chunk);
      OutputTensor sized = output;
      sized.tensor = &part.tensor;
      chunk.place = TRY(writer.add([&](const ByteSink& sink) {
        return write_item(
            pickle, sized.bytes(),
            [&](const ByteSink& next) {
              return entry.chunks.size() == 1
                         ? stream.write(output, next)
                         : stream.write_part(part.tensor, output.dtype, next);
            },
            sink);
      }));
    }
    files.push_back(TRY(writer.commit()));
  }

  MetadataPickle metadata(plan.request.transforms == nullptr
                              ? std::vector<std::string>()
                              : plan.request.transforms->descriptors());
  const std::string pickle =
      TRY(metadata.write(tensors, values, id_of(tensors, name)));
  AtomicFile file = TRY(AtomicFile::create(folder / ".metadata"));
  TRY(file.write(as_bytes(pickle)));
  TRY(file.commit());
  files.push_back({".metadata", pickle.size()});
  return files;
}

}  // namespace postflight
