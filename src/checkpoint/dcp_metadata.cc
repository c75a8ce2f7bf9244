#include "checkpoint/dcp_metadata.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/hash_index.h"
#include "checkpoint/attribute_layout.h"
#include "pickle/object.h"

namespace postflight {
namespace {

std::string_view class_name(const Value& value) {
  if (!value.is(Kind::kObject) || !value.object().callable.is(Kind::kGlobal))
    return {};
  return value.object().callable.global().name;
}

bool is_sequence(const Value& value) {
  return value.is(Kind::kTuple) || value.is(Kind::kList);
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
const Value* dtype_value(const Value* properties) {
  if (properties == nullptr || !properties->is(Kind::kObject))
    return nullptr;
  const Value* dtype = nullptr;
  for (const Value& state : properties->object().states.view())
    if (is_sequence(state) && !state.items().empty())
      dtype = &state.items().front();
  return dtype != nullptr ? dtype : attribute(*properties, "dtype");
}

// How many objects ahead memory is asked for.
constexpr std::size_t kAhead = 8;
constexpr std::size_t kFarAhead = 16;

using Numbers = std::span<const std::int64_t>;

std::uint64_t hash_of(std::uint64_t name,
                      const std::optional<Numbers>& offset) {
  if (offset)
    for (const std::int64_t number : *offset)
      name = hash_on(name, static_cast<std::uint64_t>(number));
  return name;
}

class MetadataReader {
 public:
  explicit MetadataReader(Arena& arena) : arena_(arena) {}

  Result<DcpMetadata> read(const Value& root) {
    const Value* const entries = attribute(root, "state_dict_metadata");
    if (entries == nullptr || !entries->is(Kind::kDict))
      return wrong("has no state_dict_metadata; it is no checkpoint's");
    if (const Value* const storage = attribute(root, "storage_data")) {
      if (!storage->is(Kind::kDict))
        return wrong("has no dict as its storage_data");
      TRY(read_items(storage->pairs()));
    }
    metadata_.entries.reserve(entries->pairs().size());  // and stay in place
    wanted_.reserve(items_.size());
    const std::span<const Pair> all = entries->pairs();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i + kAhead < all.size())
        prefetch_object(all[i + kAhead].value);
      TRY(read_entry(all[i]));
    }
    claim_all();
    if (const Value* const planner = attribute(root, "planner_data"))
      if (planner->is(Kind::kDict))
        read_paths(planner->pairs());
    for (const Item& item : items_)
      if (!item.claimed)
        metadata_.unclaimed.push_back(item.name);
    return std::move(metadata_);
  }

 private:
  // What storage_data has, by name and offset. The offset is left out for what
  // is no tensor, and was for tensors in one piece.
  struct Item {
    std::string_view name;
    std::optional<Numbers> offset;
    const DcpPlace* place = nullptr;
    bool claimed = false;
  };

  // Asks for the place of a chunk, or of what is no tensor.
  struct Wanted {
    std::uint64_t hash;  // of name and offset
    std::uint64_t name_hash;
    DcpEntry* entry;
    DcpChunk* chunk;
  };

  Result<> read_items(std::span<const Pair> pairs) {
    items_.reserve(pairs.size());
    by_key_.reserve(pairs.size());
    std::vector<std::uint64_t> hashes;
    hashes.reserve(pairs.size());
    DcpPlace* const places = arena_.allocate<DcpPlace>(pairs.size());
    std::string_view name;
    std::uint64_t hash = hash_text(name);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (i + kAhead < pairs.size()) {
        prefetch_object(pairs[i + kAhead].key);
        prefetch_object(pairs[i + kAhead].value);
      }
      const Pair& pair = pairs[i];
      const auto [text, offset] = index_layout_.of(pair.key);
      if (text == nullptr || !text->is(Kind::kString))
        return wrong("has an item in its storage_data without a name");
      // Those of one tensor mostly follow each other.
      if (text->text() != name) {
        name = text->text();
        hash = hash_text(name);
      }
      DcpPlace* const place = places + items_.size();
      *place = TRY(read_place(pair.value, name));
      items_.push_back({name, sizes_of(offset), place});
      hashes.push_back(hash_of(hash, items_.back().offset));
    }
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      if (i + kFarAhead < hashes.size())
        by_key_.prefetch(hashes[i + kFarAhead]);
      by_key_.add(hashes[i], static_cast<std::uint32_t>(i));
    }
    return {};
  }

  Result<DcpPlace> read_place(const Value& value, std::string_view name) {
    const auto [file, offset_value, length_value, transforms] =
        place_layout_.of(value);
    const auto offset = count_of(offset_value);
    const auto length = count_of(length_value);
    if (file == nullptr || !file->is(Kind::kString) || !offset || !length)
      return fail(ErrorKind::kCorrupt,
                  "the metadata does not say where '{}' lies", name);
    DcpPlace place{file->text(), *offset, *length};
    if (transforms == nullptr)
      return place;
    if (!is_sequence(*transforms))
      return fail(ErrorKind::kCorrupt,
                  "the metadata has no list of the transforms of '{}'", name);
    const std::span<const Value> items = transforms->items();
    auto* const names = arena_.allocate<std::string_view>(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!items[i].is(Kind::kString))
        return fail(ErrorKind::kCorrupt,
                    "the metadata names a transform of '{}' that is no text",
                    name);
      names[i] = items[i].text();
    }
    place.transforms = {names, items.size()};
    return place;
  }

  Result<> read_entry(const Pair& pair) {
    if (!pair.key.is(Kind::kString))
      return wrong("has an entry whose name is no text");
    DcpEntry& entry = metadata_.entries.emplace_back();
    entry.name = pair.key.text();
    const std::uint64_t hash = hash_text(entry.name);
    if (class_name(pair.value) == "BytesStorageMetadata") {
      wanted_.push_back({hash, hash, &entry, nullptr});
      return {};
    }
    const auto [properties, size_value, chunks] = entry_layout_.of(pair.value);
    const auto size = sizes_of(size_value);
    if (!size || chunks == nullptr || !is_sequence(*chunks))
      return fail(ErrorKind::kCorrupt,
                  "the metadata describes '{}' as neither tensor nor bytes",
                  entry.name);
    entry.is_tensor = true;
    entry.size = *size;
    entry.dtype = TRY(dtype_of(properties, entry.name));
    const std::span<const Value> items = chunks->items();
    auto* const parts = arena_.allocate<DcpChunk>(items.size());
    for (const Value& item : items.first(std::min(items.size(), kAhead)))
      prefetch_object(item);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i + kAhead < items.size())
        prefetch_object(items[i + kAhead]);
      parts[i] = TRY(read_chunk(items[i], entry));
      wanted_.push_back(
          {hash_of(hash, parts[i].offsets), hash, &entry, &parts[i]});
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

  Result<DcpChunk> read_chunk(const Value& value, const DcpEntry& entry) {
    const auto [offsets_value, sizes_value] = chunk_layout_.of(value);
    const auto offsets = sizes_of(offsets_value);
    const auto sizes = sizes_of(sizes_value);
    if (!offsets || !sizes || offsets->size() != entry.size.size() ||
        sizes->size() != entry.size.size())
      return fail(ErrorKind::kCorrupt,
                  "the metadata has a chunk of '{}' that fits no tensor of {} "
                  "dimensions",
                  entry.name, entry.size.size());
    return DcpChunk{*offsets, *sizes};
  }

  bool is_size(const Value& value) {
    if (!value.is(Kind::kObject))
      return false;
    const std::uint64_t callable = value.object().callable.bits();
    if (callable == size_class_)
      return true;
    if (class_name(value) != "Size")
      return false;
    size_class_ = callable;
    return true;
  }

  // torch.Size((2, 3)), or the tuple itself.
  std::optional<Numbers> sizes_of(const Value* value) {
    if (value == nullptr)
      return std::nullopt;
    Value items = *value;
    if (is_size(items)) {
      const Value arguments = items.object().arguments;
      if (!is_sequence(arguments))
        return std::nullopt;
      if (arguments.items().empty())
        return Numbers();
      items = arguments.items().front();
    }
    if (!is_sequence(items))
      return std::nullopt;
    const std::span<const Value> from = items.items();
    auto* const sizes = arena_.allocate<std::int64_t>(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!from[i].is(Kind::kInteger) || from[i].integer() < 0)
        return std::nullopt;
      sizes[i] = from[i].integer();
    }
    return Numbers(sizes, from.size());
  }

  // Finds the places of all that is wanted. Memory is asked for well before,
  // for places and what wants them are in orders of their own.
  void claim_all() {
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      if (i + kFarAhead < wanted_.size())
        by_key_.prefetch(wanted_[i + kFarAhead].hash);
      if (i + kAhead < wanted_.size())
        if (const std::uint32_t likely = by_key_.find(
                wanted_[i + kAhead].hash, [](std::uint32_t) { return true; });
            likely != HashIndex::kNone)
          __builtin_prefetch(&items_[likely]);
      claim(wanted_[i]);
    }
  }

  void claim(const Wanted& wanted) {
    const std::string_view name = wanted.entry->name;
    const auto find = [&](std::uint64_t hash, const DcpChunk* chunk) {
      return by_key_.find(hash, [&](std::uint32_t index) {
        const Item& item = items_[index];
        return item.offset.has_value() == (chunk != nullptr) &&
               (chunk == nullptr ||
                std::ranges::equal(*item.offset, chunk->offsets)) &&
               item.name == name;
      });
    };
    std::uint32_t found = find(wanted.hash, wanted.chunk);
    if (found == HashIndex::kNone && wanted.chunk != nullptr &&
        std::ranges::all_of(wanted.chunk->offsets,
                            [](auto number) { return number == 0; }))
      found = find(wanted.name_hash, nullptr);
    if (found == HashIndex::kNone)
      return;
    items_[found].claimed = true;
    (wanted.chunk != nullptr ? wanted.chunk->place : wanted.entry->place) =
        items_[found].place;
  }

  void read_paths(std::span<const Pair> pairs) {
    std::vector<DcpEntry>& entries = metadata_.entries;
    HashIndex by_name;  // made when it is needed
    const auto find = [&](std::string_view name) {
      if (by_name.is_empty())
        for (std::size_t i = 0; i < entries.size(); ++i)
          by_name.add(hash_text(entries[i].name),
                      static_cast<std::uint32_t>(i));
      return by_name.find(hash_text(name), [&](std::uint32_t index) {
        return entries[index].name == name;
      });
    };
    // Entries mostly come in the same order here as there.
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
  std::vector<Item> items_;
  HashIndex by_key_;
  std::vector<Wanted> wanted_;
  std::uint64_t size_class_ = ~std::uint64_t{0};  // the callable that makes one
  const Global* last_dtype_ = nullptr;
  Dtype dtype_;
  AttributeLayout<2> index_layout_{{"fqn", "offset"}};
  AttributeLayout<4> place_layout_{
      {"relative_path", "offset", "length", "transform_descriptors"}};
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
