#include "checkpoint/dcp_metadata.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "pickle/object.h"

namespace postflight {
namespace {

// An attribute of an object that was made from its state; nullptr if there is
// none, or None.
const Value* attribute(const Value& value, std::string_view name) {
  if (!value.is(Kind::kObject))
    return nullptr;
  const Object& object = value.object();
  for (std::size_t i = object.states.size; i-- > 0;) {
    const Value& state = object.states.data[i];
    if (!state.is(Kind::kDict))
      continue;
    const Value* const found = state.find(name);
    if (found != nullptr)
      return found->is(Kind::kNone) ? nullptr : found;
  }
  return nullptr;
}

std::string_view class_name(const Value& value) {
  if (!value.is(Kind::kObject) || !value.object().callable.is(Kind::kGlobal))
    return {};
  return value.object().callable.global().name;
}

bool is_sequence(const Value& value) {
  return value.is(Kind::kTuple) || value.is(Kind::kList);
}

// torch.Size((2, 3)), or the tuple itself.
std::optional<std::vector<std::int64_t>> sizes_of(const Value* value) {
  if (value == nullptr)
    return std::nullopt;
  Value items = *value;
  if (class_name(items) == "Size") {
    const Value arguments = items.object().arguments;
    if (!is_sequence(arguments))
      return std::nullopt;
    if (arguments.items().empty())
      return std::vector<std::int64_t>();
    items = arguments.items().front();
  }
  if (!is_sequence(items))
    return std::nullopt;
  std::vector<std::int64_t> sizes;
  for (const Value& item : items.items()) {
    if (!item.is(Kind::kInteger) || item.integer() < 0)
      return std::nullopt;
    sizes.push_back(item.integer());
  }
  return sizes;
}

std::optional<std::uint64_t> count_of(const Value* value) {
  if (value == nullptr || !value->is(Kind::kInteger) || value->integer() < 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(value->integer());
}

tl::unexpected<Error> wrong(std::string_view what) {
  return fail(ErrorKind::kCorrupt, "the metadata {}", what);
}

// The dtype is the first of the properties' state, a tuple; older torch had
// them as attributes.
Result<Dtype> dtype_of(const Value* properties, std::string_view name) {
  const Value* dtype = nullptr;
  if (properties != nullptr && properties->is(Kind::kObject)) {
    const Object& object = properties->object();
    for (std::size_t i = 0; i < object.states.size; ++i) {
      const Value& state = object.states.data[i];
      if (is_sequence(state) && !state.items().empty())
        dtype = &state.items().front();
    }
    if (dtype == nullptr)
      dtype = attribute(*properties, "dtype");
  }
  if (dtype == nullptr || !dtype->is(Kind::kGlobal))
    return fail(ErrorKind::kCorrupt,
                "the metadata does not say what dtype '{}' has", name);
  return dtype_named(dtype->global().name);
}

class MetadataReader {
 public:
  Result<DcpMetadata> read(const Value& root) {
    const Value* const entries = attribute(root, "state_dict_metadata");
    if (entries == nullptr || !entries->is(Kind::kDict))
      return wrong("has no state_dict_metadata; it is no checkpoint's");
    if (const Value* const storage = attribute(root, "storage_data")) {
      if (!storage->is(Kind::kDict))
        return wrong("has no dict as its storage_data");
      TRY(read_places(storage->pairs()));
    }
    for (const Pair& pair : entries->pairs())
      TRY(read_entry(pair));
    if (const Value* const planner = attribute(root, "planner_data"))
      if (planner->is(Kind::kDict))
        read_paths(planner->pairs());
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (!claimed_[i])
        metadata_.unclaimed.push_back(names_[i]);
    return std::move(metadata_);
  }

 private:
  Result<> read_places(std::span<const Pair> pairs) {
    metadata_.places.reserve(pairs.size());  // entries point there
    names_.reserve(pairs.size());
    by_key_.reserve(pairs.size());
    claimed_.resize(pairs.size(), false);
    for (const Pair& pair : pairs) {
      const Value* const name = attribute(pair.key, "fqn");
      if (name == nullptr || !name->is(Kind::kString))
        return wrong("has an item in its storage_data without a name");
      metadata_.places.push_back(TRY(read_place(pair.value, name->text())));
      const auto index = static_cast<std::uint32_t>(names_.size());
      names_.push_back(name->text());
      const auto offset = sizes_of(attribute(pair.key, "offset"));
      by_key_.emplace(place_key(name->text(), offset ? &*offset : nullptr),
                      index);
    }
    return {};
  }

  Result<DcpPlace> read_place(const Value& value, std::string_view name) {
    const Value* const file = attribute(value, "relative_path");
    const auto offset = count_of(attribute(value, "offset"));
    const auto length = count_of(attribute(value, "length"));
    if (file == nullptr || !file->is(Kind::kString) || !offset || !length)
      return fail(ErrorKind::kCorrupt,
                  "the metadata does not say where '{}' lies", name);
    DcpPlace place{file->text(), *offset, *length};
    const Value* const transforms = attribute(value, "transform_descriptors");
    if (transforms == nullptr)
      return place;
    if (!is_sequence(*transforms))
      return fail(ErrorKind::kCorrupt,
                  "the metadata has no list of the transforms of '{}'", name);
    for (const Value& transform : transforms->items()) {
      if (!transform.is(Kind::kString))
        return fail(ErrorKind::kCorrupt,
                    "the metadata names a transform of '{}' that is no text",
                    name);
      place.transforms.push_back(transform.text());
    }
    return place;
  }

  Result<> read_entry(const Pair& pair) {
    if (!pair.key.is(Kind::kString))
      return wrong("has an entry whose name is no text");
    DcpEntry& entry = metadata_.entries.emplace_back();
    entry.name = pair.key.text();
    by_entry_.emplace(entry.name,
                      static_cast<std::uint32_t>(metadata_.entries.size() - 1));
    if (class_name(pair.value) == "BytesStorageMetadata") {
      entry.place = claim(entry.name, nullptr);
      return {};
    }
    auto size = sizes_of(attribute(pair.value, "size"));
    const Value* const chunks = attribute(pair.value, "chunks");
    if (!size || chunks == nullptr || !is_sequence(*chunks))
      return fail(ErrorKind::kCorrupt,
                  "the metadata describes '{}' as neither tensor nor bytes",
                  entry.name);
    entry.is_tensor = true;
    entry.size = *std::move(size);
    entry.dtype =
        TRY(dtype_of(attribute(pair.value, "properties"), entry.name));
    for (const Value& chunk : chunks->items())
      TRY(read_chunk(chunk, entry));
    return {};
  }

  Result<> read_chunk(const Value& value, DcpEntry& entry) {
    auto offsets = sizes_of(attribute(value, "offsets"));
    auto sizes = sizes_of(attribute(value, "sizes"));
    if (!offsets || !sizes || offsets->size() != entry.size.size() ||
        sizes->size() != entry.size.size())
      return fail(ErrorKind::kCorrupt,
                  "the metadata has a chunk of '{}' that fits no tensor of {} "
                  "dimensions",
                  entry.name, entry.size.size());
    const DcpPlace* const place = claim(entry.name, &*offsets);
    entry.chunks.push_back({*std::move(offsets), *std::move(sizes), place});
    return {};
  }

  // Name and offset in one, to look places up by.
  static std::string place_key(std::string_view name,
                               const std::vector<std::int64_t>* offset) {
    std::string key(name);
    if (offset != nullptr) {
      key += '\0';
      key.append(reinterpret_cast<const char*>(offset->data()),
                 offset->size() * sizeof(std::int64_t));
    }
    return key;
  }

  // The place of the item with this name and offset. An item's offset is left
  // out for what is no tensor, and was for tensors in one piece.
  const DcpPlace* claim(std::string_view name,
                        const std::vector<std::int64_t>* offset) {
    auto found = by_key_.find(place_key(name, offset));
    if (found == by_key_.end() && offset != nullptr &&
        std::ranges::all_of(*offset, [](auto number) { return number == 0; }))
      found = by_key_.find(place_key(name, nullptr));
    if (found == by_key_.end())
      return nullptr;
    claimed_[found->second] = true;
    return &metadata_.places[found->second];
  }

  void read_paths(std::span<const Pair> pairs) {
    for (const Pair& pair : pairs) {
      if (!pair.key.is(Kind::kString) || !is_sequence(pair.value))
        continue;
      const auto entry = by_entry_.find(pair.key.text());
      if (entry == by_entry_.end())
        continue;
      const bool usable =
          std::ranges::all_of(pair.value.items(), [](const Value& key) {
            return key.is(Kind::kString) || key.is(Kind::kInteger);
          });
      if (usable)
        metadata_.entries[entry->second].path = pair.value.items();
    }
  }

  DcpMetadata metadata_;
  std::vector<std::string_view> names_;  // by place
  std::vector<bool> claimed_;
  std::unordered_map<std::string, std::uint32_t> by_key_;
  std::unordered_map<std::string_view, std::uint32_t> by_entry_;
};

}  // namespace

Result<DcpMetadata> read_dcp_metadata(const Value& root) {
  return MetadataReader().read(root);
}

DcpMetadata join_dcp_metadata(std::vector<DcpMetadata> parts) {
  if (parts.size() == 1)
    return std::move(parts.front());
  DcpMetadata joined;
  std::size_t places = 0;
  for (const DcpMetadata& part : parts)
    places += part.places.size();
  joined.places.reserve(places);  // entries point there
  std::unordered_map<std::string_view, std::size_t> known;
  for (DcpMetadata& part : parts) {
    const DcpPlace* const first = part.places.data();
    const std::size_t before = joined.places.size();
    const auto moved = [&](const DcpPlace* place) {
      return place == nullptr ? nullptr
                              : joined.places.data() + before + (place - first);
    };
    for (const DcpPlace& place : part.places)
      joined.places.push_back(place);
    for (DcpEntry& entry : part.entries) {
      entry.place = moved(entry.place);
      for (DcpChunk& chunk : entry.chunks)
        chunk.place = moved(chunk.place);
      const auto [at, is_new] =
          known.emplace(entry.name, joined.entries.size());
      if (is_new) {
        joined.entries.push_back(std::move(entry));
        continue;
      }
      DcpEntry& same = joined.entries[at->second];
      if (same.place == nullptr)
        same.place = entry.place;
      for (DcpChunk& chunk : entry.chunks)
        same.chunks.push_back(std::move(chunk));
    }
    joined.unclaimed.insert(joined.unclaimed.end(), part.unclaimed.begin(),
                            part.unclaimed.end());
  }
  return joined;
}

}  // namespace postflight
