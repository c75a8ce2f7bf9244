// safetensors, and Hugging Face's folders of them: files up to a size, and an
// index that says which tensor is in which.

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/writing/tensor_stream.h"
#include "json/writer.h"

namespace postflight {
namespace {

// Offsets are numbers whatever their size, as other readers expect.
std::string safetensors_header(const Checkpoint& checkpoint,
                               std::span<const WrittenTensor* const> order) {
  std::string header = json_text([&](JsonWriter& json) {
    json.object();
    json.object("__metadata__");
    std::map<std::string_view, std::string_view> metadata = {{"format", "pt"}};
    if (checkpoint.format() == Format::kSafetensors ||
        checkpoint.format() == Format::kShards)
      for (const auto& [key, text] : checkpoint.properties())
        if (JsonWriter::keeps(key) && JsonWriter::keeps(text))
          metadata.emplace(key, text);
    for (const auto& [key, text] : metadata)
      json.field(key, text);
    json.end();
    std::uint64_t at = 0;
    for (const WrittenTensor* const tensor : order) {
      json.object(tensor->output.name);
      json.field("dtype", safetensors_name(tensor->output.dtype));
      json.array("shape");
      for (const std::int64_t size : tensor->output.tensor->shape)
        json.number(size);
      json.end();
      json.array("data_offsets");
      json.number(at);
      at += tensor->output.bytes();
      json.number(at);
      json.end();
      json.end();
    }
    json.end();
  });
  while (header.size() % 8 != 0)
    header += ' ';
  return header;
}

std::string hub_index(const std::map<std::string, std::string>& weight_map,
                      std::uint64_t total) {
  // As Python's json.dumps with an indent of 2 and sorted keys.
  std::string text = fmt::format(
      "{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n"
      "  \"weight_map\": {{",
      total);
  bool first = true;
  for (const auto& [name, file] : weight_map) {
    const auto quoted = [](const std::string& one) {
      return json_text([&](JsonWriter& json) { json.value(one); });
    };
    text += fmt::format("{}\n    {}: {}", first ? "" : ",", quoted(name),
                        quoted(file));
    first = false;
  }
  return text + (first ? "}\n}\n" : "\n  }\n}\n");
}

}  // namespace

Result<> write_safetensors_file(const Checkpoint& checkpoint,
                                std::span<const WrittenTensor> tensors,
                                TensorStream& stream, const ByteSink& file) {
  // As its own writer does: by descending element size, then by name.
  std::vector<const WrittenTensor*> order;
  for (const WrittenTensor& tensor : tensors)
    order.push_back(&tensor);
  std::ranges::sort(order, [](const WrittenTensor* a, const WrittenTensor* b) {
    return a->output.dtype.size != b->output.dtype.size
               ? a->output.dtype.size > b->output.dtype.size
               : a->output.name < b->output.name;
  });
  const std::string header = safetensors_header(checkpoint, order);
  const std::uint64_t length = header.size();
  std::string front(reinterpret_cast<const char*>(&length), sizeof(length));
  TRY(file(as_bytes(front + header)));
  for (const WrittenTensor* const tensor : order)
    TRY(stream.write(tensor->output, file));
  return {};
}

Result<std::vector<OutputFile>> write_shards(
    const Checkpoint& checkpoint, const OutputPlan& plan,
    const std::filesystem::path& folder, TensorStream& stream) {
  // In the order of the tree; a shard is full when the next tensor would make
  // it larger than wanted.
  std::vector<std::span<const WrittenTensor>> shards;
  const std::span<const WrittenTensor> all = plan.tensors;
  std::uint64_t bytes = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t size = all[i].output.bytes();
    if (i > begin && bytes + size > plan.request.shard_bytes) {
      shards.push_back(all.subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += size;
  }
  shards.push_back(all.subspan(begin));

  std::vector<OutputFile> files;
  std::map<std::string, std::string> weight_map;
  const auto write_one = [&](const std::string& name, auto write) -> Result<> {
    AtomicFile file = TRY(AtomicFile::create(folder / name));
    std::uint64_t size = 0;
    TRY(write([&](Bytes piece) {
      size += piece.size();
      return file.write(piece);
    }));
    TRY(file.commit());
    files.push_back({name, size});
    return {};
  };
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name =
        shards.size() == 1 ? std::string("model.safetensors")
                           : fmt::format("model-{:05}-of-{:05}.safetensors",
                                         i + 1, shards.size());
    TRY(write_one(name, [&](const ByteSink& sink) {
      return write_safetensors_file(checkpoint, shards[i], stream, sink);
    }));
    for (const WrittenTensor& tensor : shards[i])
      weight_map[tensor.output.name] = name;
  }
  // Last, as loaders look for it first.
  if (shards.size() > 1)
    TRY(write_one("model.safetensors.index.json", [&](const ByteSink& sink) {
      return sink(as_bytes(hub_index(weight_map, plan.bytes)));
    }));
  return files;
}

}  // namespace postflight
