#include "checkpoint/torch/storage_reference.h"

#include "pickle/object.h"

namespace postflight {

bool read_storage_id(const Value& id, StorageReference& reference) {
  constexpr std::string_view kStorage = "Storage";
  const std::span<const Value> parts = tuple_items(id);
  if (parts.size() < 5 ||
      !(parts[0].is(Kind::kString) || parts[0].is(Kind::kLegacyString)) ||
      parts[0].text() != "storage" || !parts[1].is(Kind::kGlobal))
    return false;
  const auto is_text = [](const Value& value) {
    return value.is(Kind::kString) || value.is(Kind::kLegacyString);
  };
  const std::string_view storage_class = parts[1].global().name;
  const Dtype* const known = dtype_of_storage(storage_class);
  if (known == nullptr && !storage_class.ends_with(kStorage))
    return false;
  // A storage class newer than this program can still be listed.
  const Dtype dtype =
      known != nullptr ? *known
                       : Dtype{.name = storage_class.substr(
                                   0, storage_class.size() - kStorage.size())};
  const std::int64_t count =
      parts[4].is(Kind::kInteger) ? parts[4].integer() : -1;
  const bool numbered = parts[2].is(Kind::kInteger);  // as packages have it
  if (!(is_text(parts[2]) || numbered) || !is_text(parts[3]) || count < 0 ||
      __builtin_mul_overflow(static_cast<std::uint64_t>(count), dtype.size,
                             &reference.bytes))
    return false;
  reference.dtype = dtype;
  reference.device = parts[3].text();
  if (numbered)
    reference.number = parts[2].integer();
  else
    reference.key = parts[2].text();
  return true;
}

}  // namespace postflight
