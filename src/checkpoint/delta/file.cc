#include "checkpoint/delta/file.h"

#include <algorithm>

#include "json/json_value.h"
#include "stream/codec/zstd_block.h"

namespace postflight {
namespace {

constexpr std::string_view kDeltaMagic = "PFDELTA1";
constexpr std::string_view kDeltaSchema = "postflight.delta/1";
constexpr int kLevel = 3;

// Where the pickle and the description are.
struct Footer {
  std::uint64_t pickle = 0;
  std::uint64_t description = 0;
  std::uint64_t end = 0;
};
constexpr std::uint64_t kFooter = 3 * sizeof(std::uint64_t);

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorKind::kCorrupt, "the delta is damaged: {}", what);
}

// First bytes of all elements, then second bytes, and so on.
void split_bytes(Bytes from, std::uint64_t element, std::span<std::byte> to) {
  const std::uint64_t count = from.size() / element;
  for (std::uint64_t plane = 0; plane < element; ++plane)
    for (std::uint64_t i = 0; i < count; ++i)
      to[plane * count + i] = from[i * element + plane];
}

void join_bytes(Bytes from, std::uint64_t element, std::span<std::byte> to) {
  const std::uint64_t count = from.size() / element;
  for (std::uint64_t plane = 0; plane < element; ++plane)
    for (std::uint64_t i = 0; i < count; ++i)
      to[i * element + plane] = from[plane * count + i];
}

Result<std::string> field_text(const Value& from, std::string_view name) {
  const Value* const text = from.find(name);
  if (text == nullptr || !text->is(Kind::kString))
    return damaged(fmt::format("a storage has no {}", name));
  return std::string(text->text());
}

Result<std::uint64_t> count_in(const Value& value) {
  // Beyond 2^53 JSON has them as texts; no file of ours is that long.
  if (!value.is(Kind::kInteger) || value.integer() < 0)
    return damaged("a number is missing");
  return static_cast<std::uint64_t>(value.integer());
}

Result<std::span<const Value>> list_of(const Value& from,
                                       std::string_view name) {
  const Value* const list = from.find(name);
  if (list == nullptr || !list->is(Kind::kList))
    return damaged(fmt::format("it has no {}", name));
  return list->items();
}

Result<DeltaStorage> read_storage(const Value& from) {
  if (!from.is(Kind::kDict))
    return damaged("a storage is not described");
  DeltaStorage storage;
  for (const Value& key : TRY(list_of(from, "keys"))) {
    if (!key.is(Kind::kString))
      return damaged("a key is not a text");
    storage.keys.emplace_back(key.text());
  }
  storage.dtype = TRY(field_text(from, "dtype"));
  for (const Value& size : TRY(list_of(from, "shape")))
    storage.shape.push_back(static_cast<std::int64_t>(TRY(count_in(size))));
  const Value* const element = from.find("element_bytes");
  const Value* const bytes = from.find("bytes");
  if (element == nullptr || bytes == nullptr)
    return damaged("a storage has no size");
  storage.element = TRY(count_in(*element));
  storage.bytes = TRY(count_in(*bytes));
  constexpr std::uint64_t kLargestElement = 16;
  if (storage.element == 0 || storage.element > kLargestElement ||
      Delta::kBlock % storage.element != 0 ||
      storage.bytes % storage.element != 0 ||
      storage.bytes > std::uint64_t{1} << 56)
    return damaged("a storage has an impossible size");
  if (from.find("base_key") != nullptr) {
    storage.base_key = TRY(field_text(from, "base_key"));
    storage.base_sha256 = TRY(field_text(from, "base_sha256"));
  }
  storage.sha256 = TRY(field_text(from, "sha256"));
  const std::uint64_t count =
      (storage.bytes + Delta::kBlock - 1) / Delta::kBlock;
  for (const Value& item : TRY(list_of(from, "blocks"))) {
    if (!item.is(Kind::kList) || item.items().size() != 4 ||
        !item.items()[3].is(Kind::kBoolean))
      return damaged("a block is not described");
    const std::span<const Value> parts = item.items();
    const DeltaBlock block{TRY(count_in(parts[0])), TRY(count_in(parts[1])),
                           TRY(count_in(parts[2])), parts[3].boolean()};
    if (block.index >= count ||
        (!storage.blocks.empty() && storage.blocks.back().index >= block.index))
      return damaged("its blocks are not in order");
    storage.blocks.push_back(block);
  }
  if (!storage.base_key &&
      (storage.blocks.size() != count ||
       std::ranges::any_of(storage.blocks, [](const DeltaBlock& block) {
         return !block.replaces;
       })))
    return damaged("a new storage is not complete");
  return storage;
}

}  // namespace

std::uint64_t Delta::changed_bytes() const {
  std::uint64_t sum = 0;
  for (const DeltaStorage& storage : storages)
    for (const DeltaBlock& block : storage.blocks)
      sum += block.size;
  return sum;
}

bool is_delta(Bytes file) {
  return as_text(file).starts_with(kDeltaMagic);
}

std::uint64_t block_bytes(const DeltaStorage& storage, std::uint64_t index) {
  return std::min(Delta::kBlock, storage.bytes - index * Delta::kBlock);
}

Result<std::vector<std::byte>> encode_block(Bytes block,
                                            std::uint64_t element) {
  std::vector<std::byte> planes(block.size());
  split_bytes(block, element, planes);
  return compress_block(planes, kLevel);
}

Result<DeltaFile> DeltaFile::open(const std::filesystem::path& path,
                                  const Limits& limits) {
  DeltaFile made;
  made.file = TRY(DataFile::open(path, limits));
  const Bytes bytes = made.file->bytes();
  if (!is_delta(bytes))
    return fail(ErrorKind::kUsage,
                "{} is not a delta: postflight ckpt delta writes them",
                path.string());
  if (bytes.size() < kFooter + 2 * kDeltaMagic.size() ||
      !as_text(bytes).ends_with(kDeltaMagic))
    return fail(ErrorKind::kCorrupt,
                "{}: it is truncated: its end is missing; the writer was "
                "probably killed, or the copy was interrupted",
                path.string());
  const std::byte* const at =
      bytes.data() + bytes.size() - kDeltaMagic.size() - kFooter;
  Footer footer{load_little_endian<std::uint64_t>(at),
                load_little_endian<std::uint64_t>(at + 8),
                load_little_endian<std::uint64_t>(at + 16)};
  if (footer.pickle > footer.description || footer.description > footer.end ||
      footer.end != bytes.size() - kDeltaMagic.size() - kFooter)
    return damaged("its end does not say where its parts are");
  made.delta.pickle =
      as_text(bytes.subspan(footer.pickle, footer.description - footer.pickle));
  Builder builder;
  const Value root =
      TRY(parse_json(bytes.subspan(footer.description,
                                   footer.end - footer.description),
                     builder)
              .in(path.string()));
  if (!root.is(Kind::kDict) || TRY(field_text(root, "schema")) != kDeltaSchema)
    return damaged("its description is not one");
  made.delta.base_root = TRY(field_text(root, "base_root"));
  made.delta.root = TRY(field_text(root, "root"));
  for (const Value& key : TRY(list_of(root, "removed")))
    if (key.is(Kind::kString))
      made.delta.removed.emplace_back(key.text());
  for (const Value& key : TRY(list_of(root, "added")))
    if (key.is(Kind::kString))
      made.delta.added.emplace_back(key.text());
  for (const Value& item : TRY(list_of(root, "storages"))) {
    DeltaStorage storage = TRY(read_storage(item));
    for (const DeltaBlock& block : storage.blocks)
      if (block.offset > footer.pickle ||
          block.size > footer.pickle - block.offset)
        return damaged("a block is outside of its frames");
    made.delta.storages.push_back(std::move(storage));
  }
  return made;
}

Result<Bytes> DeltaFile::frame(const DeltaBlock& block) const {
  return slice(file->bytes(), block.offset, block.size);
}

Result<std::vector<std::byte>> decode_block(Bytes frame, std::uint64_t bytes,
                                            std::uint64_t element) {
  std::vector<std::byte> planes(bytes);
  TRY(decompress_block(frame, planes));
  std::vector<std::byte> block(bytes);
  join_bytes(planes, element, block);
  return block;
}

Result<std::vector<std::byte>> DeltaFile::block(const DeltaStorage& storage,
                                                const DeltaBlock& block) const {
  return decode_block(TRY(frame(block)), block_bytes(storage, block.index),
                      storage.element);
}

Result<> DeltaWriter::put(Bytes bytes) {
  at_ += bytes.size();
  return sink_(bytes);
}

Result<> DeltaWriter::begin() {
  return put(as_bytes(kDeltaMagic));
}

Result<> DeltaWriter::add(DeltaBlock& block, Bytes frame) {
  block.offset = at_;
  block.size = frame.size();
  return put(frame);
}

Result<> DeltaWriter::finish(const Delta& delta) {
  Footer footer;
  footer.pickle = at_;
  TRY(put(as_bytes(delta.pickle)));
  footer.description = at_;
  std::string text;
  {
    Output out([&text](std::string_view piece) { text += piece; });
    JsonWriter json(out);
    json.begin(kDeltaSchema);
    json.field("base_root", delta.base_root);
    json.field("root", delta.root);
    json.field("block_bytes", Delta::kBlock);
    json.array("removed", delta.removed);
    json.array("added", delta.added);
    json.array("storages");
    for (const DeltaStorage& storage : delta.storages) {
      json.object();
      json.array("keys", storage.keys);
      json.field("dtype", storage.dtype);
      json.array("shape", storage.shape);
      json.field("element_bytes", storage.element);
      json.field("bytes", storage.bytes);
      if (storage.base_key) {
        json.field("base_key", *storage.base_key);
        json.field("base_sha256", storage.base_sha256);
      }
      json.field("sha256", storage.sha256);
      json.array("blocks");
      for (const DeltaBlock& block : storage.blocks) {
        json.array();
        json.value(block.index);
        json.value(block.offset);
        json.value(block.size);
        json.value(block.replaces);
        json.end();
      }
      json.end();
      json.end();
    }
    json.end();
    json.finish();
  }
  TRY(put(as_bytes(text)));
  footer.end = at_;
  std::string end;
  for (const std::uint64_t number :
       {footer.pickle, footer.description, footer.end})
    end.append(reinterpret_cast<const char*>(&number), sizeof(number));
  end += kDeltaMagic;
  return put(as_bytes(end));
}

}  // namespace postflight
