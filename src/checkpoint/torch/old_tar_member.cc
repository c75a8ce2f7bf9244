#include "checkpoint/torch/old_tar_member.h"

#include <optional>

#include "checkpoint/model/dtype.h"

namespace postflight {

OldTarMember walk_old_member(Bytes member, bool storages, Machine& machine) {
  OldTarMember found;
  std::uint64_t& at = found.end;
  const auto next = [&]() -> std::optional<Value> {
    machine.reset();
    const Result<Pickle> pickle = machine.load(member.subspan(at));
    found.pickles.push_back(at);
    if (!pickle)
      return std::nullopt;
    at += pickle->size;
    return pickle->root;
  };
  const auto skip = [&](std::uint64_t count) {
    if (count > member.size() - at)
      return false;
    at += count;
    return true;
  };
  const auto walk = [&] {
    const auto count = next();
    if (!count || !count->is(Kind::kInteger) || count->integer() < 0)
      return false;
    for (std::int64_t i = 0; i < count->integer(); ++i) {
      const auto about = next();
      if (!about || !about->is(Kind::kTuple) || about->items().size() != 3)
        return false;
      if (member.size() - at < 8)
        return false;
      if (!storages) {
        const std::uint64_t dimensions =
            load_little_endian<std::uint32_t>(member.data() + at);
        if (!skip(8 + 16 * dimensions + 8))
          return false;
        continue;
      }
      const Dtype* const dtype =
          about->items()[2].is(Kind::kGlobal)
              ? dtype_of_storage(about->items()[2].global().name)
              : nullptr;
      const auto size =
          dtype == nullptr
              ? std::nullopt
              : checked_multiply(
                    load_little_endian<std::uint64_t>(member.data() + at),
                    std::uint64_t{dtype->size});
      if (!size || !skip(8) || !skip(*size))
        return false;
    }
    return !storages || at == member.size() || next().has_value();
  };
  walk();
  return found;
}

}  // namespace postflight
