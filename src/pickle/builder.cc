#include "pickle/builder.h"

#include <algorithm>
#include <limits>
#include <new>

#include "pickle/text_form.h"

namespace postflight {

Value Builder::integer(std::int64_t value) {
  return kept_integer(value, arena_);
}

Value Builder::big_integer(std::string_view twos_complement) {
  return integer_from_twos_complement(twos_complement, arena_);
}

Value Builder::floating(double value) {
  return kept_float(value, arena_);
}

Value Builder::string(std::string_view text) {
  return kept_text(Kind::kString, text, arena_);
}

Value Builder::interned(std::string_view text) {
  const auto found = interned_.find(text);
  if (found != interned_.end())
    return found->second;
  const Value made = string(text);
  interned_.emplace(made.text(), made);
  return made;
}

Value Builder::bytes(std::string_view text) {
  return kept_text(Kind::kBytes, text, arena_);
}

Value Builder::byte_array(std::string_view text) {
  return kept_text(Kind::kByteArray, text, arena_);
}

Value Builder::legacy_string(std::string_view text) {
  return kept_text(Kind::kLegacyString, text, arena_);
}

Value Builder::tuple(std::span<const Value> items) {
  return fixed(Kind::kTuple, items);
}

Value Builder::tuple(std::initializer_list<Value> items) {
  return fixed(Kind::kTuple, {items.begin(), items.size()});
}

Value Builder::frozen_set(std::span<const Value> items) {
  return fixed(Kind::kFrozenSet, items);
}

Value Builder::frozen_set(std::initializer_list<Value> items) {
  return fixed(Kind::kFrozenSet, {items.begin(), items.size()});
}

Value Builder::list(std::span<const Value> items) {
  return growing(Kind::kList, items);
}

Value Builder::list(std::initializer_list<Value> items) {
  return growing(Kind::kList, {items.begin(), items.size()});
}

Value Builder::set(std::span<const Value> items) {
  return growing(Kind::kSet, items);
}

Value Builder::set(std::initializer_list<Value> items) {
  return growing(Kind::kSet, {items.begin(), items.size()});
}

Value Builder::dict(std::span<const Pair> pairs) {
  Items<Pair>* const made = arena_.make<Items<Pair>>();
  extend(*made, pairs);
  return Value::dict(made);
}

Value Builder::dict(std::initializer_list<Pair> pairs) {
  return dict(std::span(pairs.begin(), pairs.size()));
}

Value Builder::global(std::string_view module, std::string_view name) {
  const auto found = globals_.find({module, name});
  if (found != globals_.end())
    return found->second;
  const Global* const made =
      arena_.make(Global{interned(module).text(), interned(name).text()});
  globals_.emplace(std::pair(made->module, made->name), Value::global(made));
  return Value::global(made);
}

Value Builder::reduce(Value callable, Value arguments) {
  Object* const made = arena_.make<Object>();
  made->callable = callable;
  made->arguments = arguments;
  return Value::object(made);
}

Value Builder::new_object(Value type, Value arguments) {
  const Value made = reduce(type, arguments);
  made.mutable_object()->making = Making::kNew;
  return made;
}

Value Builder::new_object(Value type, Value arguments, Value keywords) {
  const Value made = reduce(type, arguments);
  made.mutable_object()->making = Making::kNewEx;
  more_of(made).keywords = keywords;
  return made;
}

Value Builder::persistent(Value id) {
  return Value::persistent(arena_.make(id));
}

void Builder::append(Value target, Value item) {
  Items<Value>& items = target.is(Kind::kObject) ? more_of(target).items
                                                 : *target.growing_items();
  extend(items, std::span<const Value>(&item, 1));
}

void Builder::set_item(Value target, Value key, Value value) {
  Items<Pair>& pairs = target.is(Kind::kObject) ? more_of(target).pairs
                                                : *target.growing_pairs();
  const Pair pair{key, value};
  extend(pairs, std::span<const Pair>(&pair, 1));
}

void Builder::add_state(Value object, Value state) {
  Object& to = *object.mutable_object();
  if (to.state_count == 0) {
    to.state = state;
    to.state_count = 1;
    return;
  }
  if (to.state_count == 1)
    to.state = list({to.state});
  append(to.state, state);
  to.state_count = 2;
}

Object::More& Builder::more_of(Value object) {
  Object& of = *object.mutable_object();
  if (of.more == nullptr)
    of.more = arena_.make<Object::More>();
  return *of.more;
}

Value Builder::fixed(Kind kind, std::span<const Value> items) {
  if (items.empty())
    return Value::fixed(kind, nullptr);
  Value* const counted = arena_.allocate<Value>(items.size() + 1);
  counted[0] = Value::count(items.size());
  std::copy(items.begin(), items.end(), counted + 1);
  return Value::fixed(kind, counted);
}

Value Builder::growing(Kind kind, std::span<const Value> items) {
  Items<Value>* const made = arena_.make<Items<Value>>();
  extend(*made, items);
  return Value::growing(kind, made);
}

template <class T>
void Builder::extend(Items<T>& items, std::span<const T> more) {
  const std::size_t needed = items.size + more.size();
  if (needed > std::numeric_limits<std::uint32_t>::max())
    throw std::bad_alloc();  // 32 GB of values in one container
  if (needed > items.capacity) {
    // A container built at once gets no spare capacity; a growing one grows by
    // half.
    const std::size_t room =
        std::min<std::size_t>(needed + (items.size == 0 ? 0 : needed / 2 + 2),
                              std::numeric_limits<std::uint32_t>::max());
    T* const data = arena_.allocate<T>(room);
    std::copy_n(items.data, items.size, data);
    items.data = data;
    items.capacity = static_cast<std::uint32_t>(room);
  }
  std::copy(more.begin(), more.end(), items.data + items.size);
  items.size = static_cast<std::uint32_t>(needed);
}

}  // namespace postflight
