#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash_index.h"
#include "checkpoint/dcp/objects.h"

namespace postflight {

// Where an item is.
struct DcpPlace {
  std::string_view file;  // relative to the folder
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  // In the order in which they were applied.
  std::span<const std::string_view> transforms = {};
};

// The items of storage_data, by name and offset. Items that are not tensors
// have no offset, nor have tensors in one piece in older files.
//
// Items are looked up by hash only if necessary: those of one rank are in the
// order of the entries, so the next one mostly follows the last of the same
// rank, or the last one found.
class DcpPlaces {
 public:
  explicit DcpPlaces(Arena& arena) : arena_(arena), sizes_(arena) {}

  Result<> read(std::span<const Pair> storage_data);

  // Sets `to` to the place of an entry's item, now or in claim_rest(): of its
  // `number`th chunk, or, without an offset, of an entry that is not a tensor.
  // It is unchanged if there is none.
  void claim(std::string_view name, const DcpNumbers* offset,
             std::size_t number, const DcpPlace** to);
  void claim_rest();

  // The names of items that nobody claimed.
  std::vector<std::string_view> unclaimed() const;

 private:
  struct Item {
    std::string_view name;
    const std::int64_t* offset = nullptr;
    std::uint32_t dimensions = 0;
    bool has_offset = false;
    bool claimed = false;
  };

  struct Wanted {
    std::string_view name;
    const std::int64_t* offset;
    std::uint32_t dimensions;
    bool has_offset;
    std::size_t number;
    const DcpPlace** to;
    std::uint64_t hash;
  };

  Result<> read_place(const Value& value, std::string_view name, DcpPlace& to);
  static bool fits(const Item& item, const Wanted& wanted);
  bool take_if_fits(const Wanted& wanted, std::size_t index);
  void take(const Wanted& wanted, std::size_t index);
  void find(const Wanted& wanted);
  void index_all();

  Arena& arena_;
  DcpSizes sizes_;
  std::vector<Item> items_;
  DcpPlace* places_ = nullptr;        // one for each item
  HashIndex by_key_;                  // empty unless it is needed
  std::vector<Wanted> wanted_;        // for claim_rest()
  std::size_t next_ = 0;              // after the last that was claimed
  std::vector<std::size_t> next_of_;  // the same for each number
  std::size_t in_order_ = 0;
  std::size_t out_of_order_ = 0;
  AttributeLayout<2> index_layout_{{"fqn", "offset"}};
  AttributeLayout<4> place_layout_{
      {"relative_path", "offset", "length", "transform_descriptors"}};
};

}  // namespace postflight
