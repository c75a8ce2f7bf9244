#include "checkpoint/dcp/metadata.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/hash_index.h"
#include "pickle/object.h"

namespace postflight {
namespace {

std::string_view class_name(const Value& value) {
  if (!value.is(Kind::kObject) || !value.object().callable.is(Kind::kGlobal))
    return {};
  return value.object().callable.global().name;
}

tl::unexpected<Error> wrong(std::string_view what) {
  return fail(ErrorKind::kCorrupt, "the metadata {}", what);
}

// The dtype is the first item of the properties' state, a tuple; older torch
// had attributes.
const Value* dtype_value(const Value* properties) {
  if (properties == nullptr || !properties->is(Kind::kObject))
    return nullptr;
  const Value* dtype = nullptr;
  for (const Value& state : properties->object().states())
    if (is_sequence(state) && !state.items().empty())
      dtype = &state.items().front();
  return dtype != nullptr ? dtype : attribute(*properties, "dtype");
}

class MetadataReader {
 public:
  explicit MetadataReader(Arena& arena)
      : arena_(arena), sizes_(arena), places_(arena) {}

  Result<DcpMetadata> read(const Value& root) {
    const Value* const entries = attribute(root, "state_dict_metadata");
    if (entries == nullptr || !entries->is(Kind::kDict))
      return wrong("has no state_dict_metadata, so it is not a checkpoint's");
    if (const Value* const storage = attribute(root, "storage_data")) {
      if (!storage->is(Kind::kDict))
        return wrong("has a storage_data that is not a dict");
      TRY(places_.read(storage->pairs()));
    }
    metadata_.entries.reserve(
        entries->pairs().size());  // pointers to them stay valid
    const std::span<const Pair> all = entries->pairs();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i + kObjectsAhead < all.size())
        prefetch_object(all[i + kObjectsAhead].value);
      TRY(read_entry(all[i]));
    }
    places_.claim_rest();
    if (const Value* const planner = attribute(root, "planner_data"))
      if (planner->is(Kind::kDict))
        read_paths(planner->pairs());
    metadata_.unclaimed = places_.unclaimed();
    return std::move(metadata_);
  }

 private:
  Result<> read_entry(const Pair& pair) {
    if (!pair.key.is(Kind::kString))
      return wrong("has an entry whose name is not a string");
    DcpEntry& entry = metadata_.entries.emplace_back();
    entry.name = pair.key.text();
    if (class_name(pair.value) == "BytesStorageMetadata") {
      places_.claim(entry.name, nullptr, 0, &entry.place);
      return {};
    }
    const auto [properties, size, chunks] = entry_layout_.of(pair.value);
    if (!sizes_.read(size, entry.size) || chunks == nullptr ||
        !is_sequence(*chunks))
      return fail(ErrorKind::kCorrupt,
                  "the metadata describes '{}' as neither tensor nor bytes",
                  entry.name);
    entry.is_tensor = true;
    entry.dtype = TRY(dtype_of(properties, entry.name));
    const std::span<const Value> items = chunks->items();
    auto* const parts = arena_.allocate<DcpChunk>(items.size());
    for (const Value& item : items.first(std::min(items.size(), kObjectsAhead)))
      prefetch_object(item);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i + kObjectsAhead < items.size())
        prefetch_object(items[i + kObjectsAhead]);
      parts[i] = {};
      TRY(read_chunk(items[i], entry, parts[i]));
      places_.claim(entry.name, &parts[i].offsets, i, &parts[i].place);
    }
    entry.chunks = {parts, items.size()};
    return {};
  }

  Result<Dtype> dtype_of(const Value* properties, std::string_view name) {
    const Value* const dtype = dtype_value(properties);
    if (dtype == nullptr || !dtype->is(Kind::kGlobal))
      return fail(ErrorKind::kCorrupt,
                  "the metadata does not say what dtype '{}' has", name);
    if (last_dtype_ != &dtype->global()) {
      last_dtype_ = &dtype->global();
      dtype_ = dtype_named(last_dtype_->name);
    }
    return dtype_;
  }

  Result<> read_chunk(const Value& value, const DcpEntry& entry, DcpChunk& to) {
    const auto [offsets, sizes] = chunk_layout_.of(value);
    if (!sizes_.read(offsets, to.offsets) || !sizes_.read(sizes, to.sizes) ||
        to.offsets.size() != entry.size.size() ||
        to.sizes.size() != entry.size.size())
      return fail(ErrorKind::kCorrupt,
                  "the metadata has a chunk of '{}' that fits no tensor of {} "
                  "dimensions",
                  entry.name, entry.size.size());
    return {};
  }

  void read_paths(std::span<const Pair> pairs) {
    std::vector<DcpEntry>& entries = metadata_.entries;
    HashIndex by_name;  // filled when it is needed
    const auto find = [&](std::string_view name) {
      if (by_name.is_empty())
        for (std::size_t i = 0; i < entries.size(); ++i)
          by_name.add(hash_text(entries[i].name),
                      static_cast<std::uint32_t>(i));
      return by_name.find(hash_text(name), [&](std::uint32_t index) {
        return entries[index].name == name;
      });
    };
    // Mostly in the same order as the entries.
    std::size_t next = 0;
    for (const Pair& pair : pairs) {
      if (!pair.key.is(Kind::kString) || !is_sequence(pair.value))
        continue;
      const std::string_view name = pair.key.text();
      if (next == entries.size() || entries[next].name != name) {
        const std::uint32_t found = find(name);
        if (found == HashIndex::kNone)
          continue;
        next = found;
      }
      const bool usable =
          std::ranges::all_of(pair.value.items(), [](const Value& key) {
            return key.is(Kind::kString) || key.is(Kind::kInteger);
          });
      if (usable)
        entries[next].path = pair.value.items();
      ++next;
    }
  }

  Arena& arena_;
  DcpMetadata metadata_;
  DcpSizes sizes_;
  DcpPlaces places_;
  const Global* last_dtype_ = nullptr;
  Dtype dtype_;
  AttributeLayout<3> entry_layout_{{"properties", "size", "chunks"}};
  AttributeLayout<2> chunk_layout_{{"offsets", "sizes"}};
};

}  // namespace

Result<DcpMetadata> read_dcp_metadata(const Value& root, Arena& arena) {
  return MetadataReader(arena).read(root);
}

DcpMetadata join_dcp_metadata(std::vector<DcpMetadata> parts, Arena& arena) {
  if (parts.size() == 1)
    return std::move(parts.front());
  DcpMetadata joined;
  std::vector<std::vector<const DcpEntry*>> same;  // by entry
  HashIndex known;
  for (const DcpMetadata& part : parts) {
    for (const DcpEntry& entry : part.entries) {
      const std::uint64_t hash = hash_text(entry.name);
      std::uint32_t index = known.find(hash, [&](std::uint32_t at) {
        return joined.entries[at].name == entry.name;
      });
      if (index == HashIndex::kNone) {
        index = static_cast<std::uint32_t>(joined.entries.size());
        known.add(hash, index);
        joined.entries.push_back(entry);
        same.emplace_back();
      }
      if (joined.entries[index].place == nullptr)
        joined.entries[index].place = entry.place;
      same[index].push_back(&entry);
    }
    joined.unclaimed.insert(joined.unclaimed.end(), part.unclaimed.begin(),
                            part.unclaimed.end());
  }
  for (std::size_t i = 0; i < same.size(); ++i) {
    std::size_t count = 0;
    for (const DcpEntry* const entry : same[i])
      count += entry->chunks.size();
    auto* const chunks = arena.allocate<DcpChunk>(count);
    DcpChunk* next = chunks;
    for (const DcpEntry* const entry : same[i])
      next = std::ranges::copy(entry->chunks, next).out;
    joined.entries[i].chunks = {chunks, count};
  }
  return joined;
}

}  // namespace postflight
