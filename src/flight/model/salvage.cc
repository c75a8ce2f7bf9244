// A pickler writes a dictionary as the empty dictionary, a mark, all its keys
// and values, and then the opcode that puts them in; lists likewise. So where
// a dump breaks off, its outer containers are still empty and their parts lie
// on the stack between marks:
//
//   {}  |  'version' '2.10' ... 'entries' []  |  entry entry {}  |  'state' ...
//
// The last entry is only whole if no mark follows it. Old protocols set items
// one by one, without marks; then the parts are in their containers already.
#include "flight/model/salvage.h"

namespace postflight {
namespace {

bool is_empty_dict(const Value& value) {
  return value.is(Kind::kDict) && value.pairs().empty();
}

// The entries of `list` and those that were still to be appended to it.
Value whole_entries(const Value& list, std::span<const Value> pending,
                    bool last_is_open, Builder& builder) {
  const Value whole = builder.list(list.items());
  if (last_is_open && !pending.empty())
    pending = pending.first(pending.size() - 1);
  for (const Value& entry : pending)
    if (entry.is(Kind::kDict) && !is_empty_dict(entry))
      builder.append(whole, entry);
  return whole;
}

}  // namespace

std::optional<Value> salvage(
    const std::vector<std::span<const Value>>& unfinished, Builder& builder) {
  if (unfinished[0].empty() || !unfinished[0][0].is(Kind::kDict))
    return std::nullopt;
  const Value root = builder.dict(unfinished[0][0].pairs());
  // Without marks, keys and values follow the root itself.
  const bool marked = unfinished.size() > 1;
  const std::span<const Value> parts =
      marked ? unfinished[1] : unfinished[0].subspan(1);
  const std::size_t above = marked ? 2 : 1;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    const Value& key = parts[i];
    Value value = parts[i + 1];
    const bool last = i + 2 >= parts.size();
    const bool entries = key.is(Kind::kString) && key.text() == "entries" &&
                         value.is(Kind::kList);
    if (entries) {
      const std::span<const Value> pending = last && unfinished.size() > above
                                                 ? unfinished[above]
                                                 : std::span<const Value>();
      value =
          whole_entries(value, pending, unfinished.size() > above + 1, builder);
    } else if (last && unfinished.size() > above) {
      break;  // its own parts are still on the stack
    }
    builder.set_item(root, key, value);
    if (entries && !marked)
      break;  // what follows belongs to the entry that was being made
  }
  return root;
}

}  // namespace postflight
