#include "checkpoint/dcp/places.h"

#include <algorithm>
#include <optional>

#include "base/hash.h"

namespace postflight {
namespace {

constexpr std::size_t kSlotsAhead = 16;
// So many items may be out of order before the rest are looked up together.
constexpr std::size_t kMostExceptions = 1000;

// Picklers write each text once, so it is mostly the same object.
bool is_same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && (a.data() == b.data() || a == b);
}

std::optional<std::uint64_t> count_of(const Value* value) {
  if (value == nullptr || !value->is(Kind::kInteger) || value->integer() < 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(value->integer());
}

std::uint64_t key_hash(std::uint64_t name, const std::int64_t* offset,
                       std::size_t dimensions) {
  for (std::size_t i = 0; i < dimensions; ++i)
    name = hash_on(name, static_cast<std::uint64_t>(offset[i]));
  return name;
}

}  // namespace

Result<> DcpPlaces::read(std::span<const Pair> storage_data) {
  const std::size_t count = storage_data.size();
  items_.reserve(count);
  places_ = arena_.allocate<DcpPlace>(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kObjectsAhead < count) {
      prefetch_object(storage_data[i + kObjectsAhead].key);
      prefetch_object(storage_data[i + kObjectsAhead].value);
    }
    const auto [name, offset] = index_layout_.of(storage_data[i].key);
    if (name == nullptr || !name->is(Kind::kString))
      return fail(ErrorKind::kCorrupt,
                  "the metadata has an item in its storage_data without a "
                  "name");
    Item& item = items_.emplace_back();
    item.name = name->text();
    if (DcpNumbers numbers; sizes_.read(offset, numbers)) {
      item.offset = numbers.data();
      item.dimensions = static_cast<std::uint32_t>(numbers.size());
      item.has_offset = true;
    }
    DcpPlace* const place = new (places_ + i) DcpPlace;
    TRY(read_place(storage_data[i].value, item.name, *place));
  }
  return {};
}

Result<> DcpPlaces::read_place(const Value& value, std::string_view name,
                               DcpPlace& to) {
  const auto [file, offset_value, length_value, transforms] =
      place_layout_.of(value);
  const auto offset = count_of(offset_value);
  const auto length = count_of(length_value);
  if (file == nullptr || !file->is(Kind::kString) || !offset || !length)
    return fail(ErrorKind::kCorrupt, "the metadata does not say where '{}' is",
                name);
  to.file = file->text();
  to.offset = *offset;
  to.length = *length;
  if (transforms == nullptr)
    return {};
  if (!is_sequence(*transforms))
    return fail(ErrorKind::kCorrupt,
                "the metadata has no list of the transforms of '{}'", name);
  const std::span<const Value> items = transforms->items();
  auto* const names = arena_.allocate<std::string_view>(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is(Kind::kString))
      return fail(ErrorKind::kCorrupt,
                  "the metadata names a transform of '{}' that is not a string",
                  name);
    names[i] = items[i].text();
  }
  to.transforms = {names, items.size()};
  return {};
}

bool DcpPlaces::fits(const Item& item, const Wanted& wanted) {
  return item.has_offset == wanted.has_offset &&
         item.dimensions == wanted.dimensions &&
         std::equal(item.offset, item.offset + item.dimensions,
                    wanted.offset) &&
         is_same(item.name, wanted.name);
}

void DcpPlaces::claim(std::string_view name, const DcpNumbers* offset,
                      std::size_t number, const DcpPlace** to) {
  Wanted wanted{name, nullptr, 0, offset != nullptr, number, to, 0};
  if (offset != nullptr) {
    wanted.offset = offset->data();
    wanted.dimensions = static_cast<std::uint32_t>(offset->size());
  }
  if (number >= next_of_.size())
    next_of_.resize(number + 1, 0);
  if (take_if_fits(wanted, next_) || take_if_fits(wanted, next_of_[number])) {
    ++in_order_;
    return;
  }
  if (by_key_.is_empty())
    index_all();
  wanted.hash = key_hash(hash_text(name), wanted.offset, wanted.dimensions);
  if (++out_of_order_ < in_order_ + kMostExceptions)
    find(wanted);
  else
    wanted_.push_back(wanted);
}

// Prefetches memory well before it is needed.
void DcpPlaces::claim_rest() {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (i + kSlotsAhead < wanted_.size())
      by_key_.prefetch(wanted_[i + kSlotsAhead].hash);
    if (i + kObjectsAhead < wanted_.size())
      if (const std::uint32_t likely =
              by_key_.find(wanted_[i + kObjectsAhead].hash,
                           [](std::uint32_t) { return true; });
          likely != HashIndex::kNone)
        __builtin_prefetch(&items_[likely]);
    find(wanted_[i]);
  }
}

bool DcpPlaces::take_if_fits(const Wanted& wanted, std::size_t index) {
  if (index >= items_.size() || !fits(items_[index], wanted))
    return false;
  take(wanted, index);
  return true;
}

void DcpPlaces::take(const Wanted& wanted, std::size_t index) {
  items_[index].claimed = true;
  next_ = next_of_[wanted.number] = index + 1;
  *wanted.to = places_ + index;
}

void DcpPlaces::find(const Wanted& wanted) {
  std::uint32_t found = by_key_.find(wanted.hash, [&](std::uint32_t index) {
    return fits(items_[index], wanted);
  });
  if (found == HashIndex::kNone && wanted.has_offset &&
      std::all_of(wanted.offset, wanted.offset + wanted.dimensions,
                  [](std::int64_t number) { return number == 0; }))
    found = by_key_.find(hash_text(wanted.name), [&](std::uint32_t index) {
      return !items_[index].has_offset &&
             is_same(items_[index].name, wanted.name);
    });
  if (found != HashIndex::kNone)
    take(wanted, found);
}

void DcpPlaces::index_all() {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(items_.size());
  std::string_view name;
  std::uint64_t hash = hash_text(name);
  for (const Item& item : items_) {
    // The items of one tensor are often consecutive.
    if (!is_same(item.name, name)) {
      name = item.name;
      hash = hash_text(name);
    }
    hashes.push_back(key_hash(hash, item.offset, item.dimensions));
  }
  by_key_.reserve(hashes.size());
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (i + kSlotsAhead < hashes.size())
      by_key_.prefetch(hashes[i + kSlotsAhead]);
    by_key_.add(hashes[i], static_cast<std::uint32_t>(i));
  }
}

std::vector<std::string_view> DcpPlaces::unclaimed() const {
  std::vector<std::string_view> names;
  for (const Item& item : items_)
    if (!item.claimed)
      names.push_back(item.name);
  return names;
}

}  // namespace postflight
