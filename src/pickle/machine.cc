#include "pickle/machine.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "base/interruption.h"
#include "pickle/text_form.h"

namespace postflight {
namespace {

// Bytes of values per byte of a dump; an initial estimate only.
constexpr std::size_t kUsualGrowth = 6;
// Bytes of input per memo entry, and per object.
constexpr std::size_t kBytesPerMemo = 11;
constexpr std::size_t kBytesPerObject = 48;

// How many bytes are run between two bounds checks of input and stack.
constexpr std::uint64_t kBlock = 2048;
constexpr std::uint64_t kMostUsual = 1 << 30;  // bytes of a pickle

// Among the opcodes that the loop runs itself: BINFLOAT's, or LONG1's size.
constexpr std::uint64_t kLongestArgument = 8;

// How many more values than bytes an opcode and those fused with it push.
constexpr std::size_t kSpareRoom = 8;

// The most frequent opcode sequences in pickles of many objects written by
// CPython: NEWOBJ MEMOIZE EMPTY_DICT MEMOIZE MARK after EMPTY_TUPLE, and
// MEMOIZE TUPLE1 MEMOIZE REDUCE MEMOIZE after a tuple that is a call's only
// argument.
constexpr std::size_t kFollowing = 5;
constexpr std::uint64_t kFollowingBytes =
    (std::uint64_t{1} << (8 * kFollowing)) - 1;
constexpr std::uint64_t kNewWithAttributes = 0x28'94'7d'94'81;
constexpr std::uint64_t kCallWithTuple = 0x94'52'94'85'94;

template <class T>
T load_number(const std::uint8_t*& next) {
  T number;
  std::memcpy(&number, next, sizeof(T));
  next += sizeof(T);
  return number;
}

}  // namespace

Result<Pickle> Machine::load(Bytes bytes) {
  begin_ = reinterpret_cast<const std::uint8_t*>(bytes.data());
  next_ = at_ = begin_;
  end_ = begin_ + bytes.size();
  protocol_ = 0;
  buffers_ = 0;
  is_loaded_ = false;
  top_ = fence_ = stack_.get();
  memo_.clear();
  globals_.clear();
  objects_.clear();
  // Reserved memory counts towards the limit, so reserve nothing under a tight
  // one.
  if (bytes.size() * kUsualGrowth < limits_.max_value_bytes / 2) {
    arena_.expect(bytes.size() * kUsualGrowth);
    // Unused parts of these are never touched, so they cost no pages; but the
    // kernel refuses more than there is memory.
    const auto usual = std::min<std::uint64_t>(bytes.size(), kMostUsual);
    memo_.expect(usual / kBytesPerMemo);
    objects_.reserve(usual / kBytesPerObject);
  }
  reserve_stack();
  return run<Pace::kBlocks>();
}

std::uint64_t Machine::memory_bytes() const {
  return arena_.reserved_bytes() + stack_capacity_ * sizeof(Value) +
         memo_.memory_bytes() +
         (globals_.capacity() + objects_.capacity()) * sizeof(void*);
}

// Two things make this loop fast. The machine's registers are local variables:
// as far as the compiler knows, a store through `top` could alias any member,
// and each opcode would reload them all. And the bounds checks (another opcode,
// its fixed-size argument, room on the stack) are made once per block of bytes:
// an opcode pushes at most one value and takes at least one byte. The last
// bytes of the input are run one by one.
//
// Aligned: the same instructions half a cache line further on took 0.19 ms
// instead of 0.15.
template <Machine::Pace kPace>
[[gnu::aligned(64)]] Result<Pickle> Machine::run() {
  constexpr bool kCareful = kPace == Pace::kOneByOne;
  const std::uint8_t* next = next_;
  const std::uint8_t* const end = end_;
  const std::uint8_t* block_end = next;
  Value* bottom = stack_.get();
  Value* top = top_;
  Value* fence = fence_;  // the first item above the topmost mark
  const Value* memo = memo_.slots();
  std::uint64_t wanted = 0;

  const auto left = [&] { return static_cast<std::uint64_t>(end - next); };
  const auto lacks = [&](std::uint64_t size) {
    wanted = size;
    return kCareful && left() < size;
  };
  const auto lacks_text = [&](std::uint64_t size) {
    wanted = size;
    return left() < size;
  };
  const auto come_next = [&](std::uint64_t wanted_bytes) {
    if (kCareful)
      return false;
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, next, sizeof(bytes));  // within the current block
    return (bytes & kFollowingBytes) == wanted_bytes;
  };
  const auto below = [&](std::ptrdiff_t count) { return top - fence < count; };
  const auto save = [&](const std::uint8_t* at) {
    at_ = at;
    next_ = next;
    top_ = top;
    fence_ = fence;
  };
  const auto load = [&] {
    next = next_;
    bottom = stack_.get();
    top = top_;
    fence = fence_;
    memo = memo_.slots();
  };

  for (;;) {
    if (next >= block_end) [[unlikely]] {
      save(next);
      if (kCareful && next == end)
        return broken(ErrorKind::kCorrupt, "the pickle ends without STOP");
      if (!kCareful && left() <= kLongestArgument)
        return run<Pace::kOneByOne>();
      if (!kCareful && interrupted()) [[unlikely]]
        return broken(ErrorKind::kIo, "interrupted");
      if (memory_bytes() > limits_.max_value_bytes) [[unlikely]]
        return broken(ErrorKind::kRefused,
                      fmt::format("its values take more than the {} bytes "
                                  "allowed (max_value_bytes)",
                                  limits_.max_value_bytes));
      reserve_stack();
      load();
      block_end = kCareful ? next + 1
                           : next + std::min(left() - kLongestArgument, kBlock);
    }
    const std::uint8_t* const at = next;
    const Opcode opcode{*next++};
    // Half of a dump's opcodes are this one: a separate branch is predicted
    // better than the switch's single indirect jump.
    if (opcode == Opcode::kBinGet) {
      if (lacks(1)) [[unlikely]]
        goto too_short;
      const Value& found = memo[*next++];
      if (Memo::is_empty(found)) [[unlikely]]
        goto not_in_memo;
      *top++ = found;
      continue;
    }
    switch (opcode) {
      case Opcode::kLongBinGet: {
        if (lacks(4)) [[unlikely]]
          goto too_short;
        const Value* const found = memo_.find(load_number<std::uint32_t>(next));
        if (found == nullptr) [[unlikely]]
          goto not_in_memo;
        *top++ = *found;
        continue;
      }
      case Opcode::kBinPut:
        if (lacks(1)) [[unlikely]]
          goto too_short;
        if (below(1)) [[unlikely]]
          goto underflow;
        memo_.remember(*next++, top[-1]);
        continue;
      case Opcode::kLongBinPut:
        if (lacks(4)) [[unlikely]]
          goto too_short;
        if (below(1)) [[unlikely]]
          goto underflow;
        memo_.remember(load_number<std::uint32_t>(next), top[-1]);
        memo = memo_.slots();
        continue;
      case Opcode::kMemoize:
        if (below(1)) [[unlikely]]
          goto underflow;
        memo_.remember(memo_.count(), top[-1]);
        memo = memo_.slots();
        continue;
      case Opcode::kBinUnicode:
        if (lacks(4)) [[unlikely]]
          goto too_short;
        if (lacks_text(load_number<std::uint32_t>(next))) [[unlikely]]
          goto too_short;
        *top++ = Value::text(Kind::kString, Value::Prefix::kFour, next);
        next += wanted;
        continue;
      case Opcode::kShortBinUnicode:
        if (lacks(1)) [[unlikely]]
          goto too_short;
        if (lacks_text(*next++)) [[unlikely]]
          goto too_short;
        *top++ = Value::text(Kind::kString, Value::Prefix::kOne, next);
        next += wanted;
        continue;
      case Opcode::kBinInt1:
        if (lacks(1)) [[unlikely]]
          goto too_short;
        *top++ = Value::small(*next++);
        continue;
      case Opcode::kBinInt2:
        if (lacks(2)) [[unlikely]]
          goto too_short;
        *top++ = Value::small(load_number<std::uint16_t>(next));
        continue;
      case Opcode::kBinInt:
        if (lacks(4)) [[unlikely]]
          goto too_short;
        *top++ = Value::small(load_number<std::int32_t>(next));
        continue;
      case Opcode::kLong1: {
        if (lacks(1)) [[unlikely]]
          goto too_short;
        if (lacks_text(*next++)) [[unlikely]]
          goto too_short;
        if (wanted == 8) {  // as torch writes all of them
          *top++ = Value::wide_integer(next);
        } else {
          *top++ = integer_from_twos_complement(
              {reinterpret_cast<const char*>(next), wanted}, arena_);
        }
        next += wanted;
        continue;
      }
      case Opcode::kBinFloat:
        if (lacks(8)) [[unlikely]]
          goto too_short;
        *top++ = Value::big_endian_float(next);
        next += 8;
        continue;
      case Opcode::kNone:
        *top++ = Value::none();
        continue;
      case Opcode::kNewTrue:
        *top++ = Value::boolean(true);
        continue;
      case Opcode::kNewFalse:
        *top++ = Value::boolean(false);
        continue;
      case Opcode::kMark:
        *top++ = Value::count(static_cast<std::uint64_t>(fence - bottom));
        fence = top;
        continue;
      case Opcode::kEmptyDict:
        *top++ = Value::dict(arena_.make<Items<Pair>>());
        continue;
      case Opcode::kEmptyList:
        *top++ = Value::growing(Kind::kList, arena_.make<Items<Value>>());
        continue;
      case Opcode::kEmptyTuple:
        if (come_next(kNewWithAttributes) && !below(1))
          goto new_with_attributes;
        *top++ = Value::fixed(Kind::kTuple, nullptr);
        continue;
      case Opcode::kTuple1:
      case Opcode::kTuple2:
      case Opcode::kTuple3: {
        const int count = static_cast<int>(opcode) - 0x84;
        if (below(count)) [[unlikely]]
          goto underflow;
        const Value* const items = keep(top - count, top);
        top -= count;
        *top++ = Value::fixed(Kind::kTuple, items);
        if (come_next(kCallWithTuple) && !below(2))
          goto call_with_tuple;
        continue;
      }
      case Opcode::kTuple: {
        if (fence == bottom) [[unlikely]]
          goto no_mark;
        const Value* const items = keep(fence, top);
        top = fence - 1;
        fence = bottom + top->count();
        *top++ = Value::fixed(Kind::kTuple, items);
        continue;
      }
      case Opcode::kAppends: {
        if (fence == bottom) [[unlikely]]
          goto no_mark;
        Value* const first = fence;
        const std::size_t count = static_cast<std::size_t>(top - first);
        top = first - 1;
        fence = bottom + top->count();
        if (top == fence) [[unlikely]]
          goto underflow;
        if (count != 0 || top[-1].kind() >= Kind::kGlobal) [[likely]]
          append(*items_of(top[-1], Kind::kList), first, count);
        continue;
      }
      case Opcode::kSetItems: {
        if (fence == bottom) [[unlikely]]
          goto no_mark;
        Value* const first = fence;
        const std::size_t count = static_cast<std::size_t>(top - first);
        top = first - 1;
        fence = bottom + top->count();
        if (top == fence) [[unlikely]]
          goto underflow;
        if (count % 2 != 0) [[unlikely]]
          goto no_value;
        if (count != 0) [[likely]]
          append(*pairs_of(top[-1]), reinterpret_cast<const Pair*>(first),
                 count / 2);
        continue;
      }
      case Opcode::kAppend:
        if (below(2)) [[unlikely]]
          goto underflow;
        --top;
        append(*items_of(top[-1], Kind::kList), top, 1);
        continue;
      case Opcode::kSetItem:
        if (below(3)) [[unlikely]]
          goto underflow;
        top -= 2;
        append(*pairs_of(top[-1]), reinterpret_cast<const Pair*>(top), 1);
        continue;
      case Opcode::kReduce:
      case Opcode::kNewObj: {
        if (below(2)) [[unlikely]]
          goto underflow;
        --top;
        Object* const made = arena_.make<Object>();
        made->making =
            opcode == Opcode::kReduce ? Making::kReduce : Making::kNew;
        made->arguments = *top;
        made->callable = top[-1];
        record(made);
        top[-1] = Value::object(made);
        continue;
      }
      case Opcode::kBuild: {
        if (below(2)) [[unlikely]]
          goto underflow;
        --top;
        add_state(object_of(top[-1]), *top);
        if (embedded_) [[unlikely]] {
          save(at);
          TRY(skip_embedded());
          load();
        }
        continue;
      }
      case Opcode::kBinPersId:
        if (below(1)) [[unlikely]]
          goto underflow;
        top[-1] = Value::persistent(arena_.make(top[-1]));
        continue;
      case Opcode::kPop:
        if (top == fence && fence == bottom) [[unlikely]]
          goto underflow;
        --top;
        if (top < fence)  // it was a mark
          fence = bottom + top->count();
        continue;
      case Opcode::kStop:
        if (below(1)) [[unlikely]]
          goto underflow;
        save(next);
        is_loaded_ = true;
        root_ = top[-1];
        return Pickle{root_, static_cast<std::uint64_t>(next - begin_),
                      protocol_};
      default:
        save(at);
        TRY(run_rare(opcode));
        load();
        continue;
    }
  new_with_attributes:
    next += kFollowing;
    save(at);
    begin_object();
    load();
    continue;
  call_with_tuple:
    next += kFollowing;
    save(at);
    call_with_tuple();
    load();
    continue;
  too_short:
    save(at);
    return too_short(opcode, wanted);
  underflow:
    save(at);
    return underflow(opcode);
  no_mark:
    save(at);
    return broken(ErrorKind::kCorrupt,
                  fmt::format("{} finds no MARK", name_of(opcode)));
  no_value:
    save(at);
    return no_value(opcode);
  not_in_memo:
    save(at);
    return broken(ErrorKind::kCorrupt,
                  fmt::format("{} refers to a memo entry that does not exist",
                              name_of(opcode)));
  }
}

Items<Value>* Machine::items_of(Value& target, Kind container) {
  if (target.is(container)) [[likely]]
    return target.growing_items();
  Items<Value>* const items = &more_of(target)->items;
  reserve_one(*items);
  return items;
}

Items<Pair>* Machine::pairs_of(Value& target) {
  if (target.is(Kind::kDict)) [[likely]]
    return target.growing_pairs();
  Items<Pair>* const pairs = &more_of(target)->pairs;
  reserve_one(*pairs);
  return pairs;
}

Object* Machine::object_of(Value& target) {
  if (!target.is(Kind::kObject)) {
    Object* const object = arena_.make<Object>();
    object->making = Making::kTouched;
    object->callable = target;
    // Nothing done to a number or a list runs code.
    if (target.kind() >= Kind::kGlobal)
      record(object);
    target = Value::object(object);
  }
  return target.mutable_object();
}

Object::More* Machine::more_of(Value& target) {
  Object* const object = object_of(target);
  if (object->more == nullptr)
    object->more = arena_.make<Object::More>();
  return object->more;
}

void Machine::add_state(Object* object, Value state) {
  if (object->state_count == 0) [[likely]] {
    object->state = state;
    object->state_count = 1;
    return;
  }
  if (object->state_count == 1) {
    Items<Value>* const states = arena_.make<Items<Value>>();
    append(*states, &object->state, 1);
    object->state = Value::growing(Kind::kList, states);
  }
  append(*object->state.growing_items(), &state, 1);
  object->state_count = 2;
}

void Machine::record(const Object* object) {
  // Not the vector's doubling, which would exceed the memory bound.
  if (objects_.size() == objects_.capacity())
    objects_.reserve(objects_.size() + objects_.size() / 2 + 64);
  objects_.push_back(object);
}

// An object is mostly given a single item or pair.
template <class T>
void Machine::reserve_one(Items<T>& items) {
  if (items.capacity == 0) {
    items.data = arena_.allocate<T>(1);
    items.capacity = 1;
  }
}

template void Machine::reserve_one(Items<Value>&);
template void Machine::reserve_one(Items<Pair>&);

const Value* Machine::keep(const Value* first, const Value* last) {
  if (first == last)
    return nullptr;
  const std::size_t count = static_cast<std::size_t>(last - first);
  Value* const items = arena_.allocate<Value>(count + 1);
  items[0] = Value::count(count);
  copy_items(first, count, items + 1);
  return items;
}

template <class T>
void Machine::grow(Items<T>& items, std::size_t needed) {
  if (needed > std::numeric_limits<std::uint32_t>::max())
    throw std::bad_alloc();  // 32 GB of values in one container
  // The first batch is often the only one, so it gets no spare capacity.
  const std::size_t room =
      items.size == 0 && needed > 1
          ? needed
          : std::max<std::size_t>(needed + items.size / 2, 4);
  T* const data = arena_.allocate<T>(room);
  std::copy_n(items.data, items.size, data);
  items.data = data;
  items.capacity = static_cast<std::uint32_t>(room);
}

template void Machine::grow(Items<Value>&, std::size_t);
template void Machine::grow(Items<Pair>&, std::size_t);

Value* Machine::pop_mark() {
  if (fence_ == stack_.get())
    return nullptr;
  Value* const first = fence_;
  fence_ = stack_.get() + first[-1].count();
  first[-1] = Value::none();  // stays on the stack if what follows fails
  return first;
}

void Machine::reserve_stack() {
  const std::size_t depth = static_cast<std::size_t>(top_ - stack_.get());
  if (stack_capacity_ - depth >= kBlock + kSpareRoom)
    return;
  const std::size_t fence = static_cast<std::size_t>(fence_ - stack_.get());
  const std::size_t capacity = stack_capacity_ * 2 + kBlock + kSpareRoom;
  void* const memory =
      std::realloc(static_cast<void*>(stack_.get()), capacity * sizeof(Value));
  if (memory == nullptr)
    throw std::bad_alloc();
  static_cast<void>(stack_.release());
  stack_.reset(static_cast<Value*>(memory));
  stack_capacity_ = capacity;
  top_ = stack_.get() + depth;
  fence_ = stack_.get() + fence;
}

tl::unexpected<Error> Machine::too_short(Opcode opcode, std::uint64_t wanted) {
  return broken(ErrorKind::kCorrupt,
                fmt::format("{} needs {} bytes, {} are left", name_of(opcode),
                            wanted, left()));
}

tl::unexpected<Error> Machine::underflow(Opcode opcode) {
  return broken(ErrorKind::kCorrupt,
                fmt::format("{} underflows the stack", name_of(opcode)));
}

tl::unexpected<Error> Machine::no_value(Opcode opcode) {
  return broken(ErrorKind::kCorrupt,
                fmt::format("{} has a key without a value", name_of(opcode)));
}

tl::unexpected<Error> Machine::broken(ErrorKind kind, std::string_view what) {
  return fail(kind, "byte {}: {}", at_ - begin_, what);
}

}  // namespace postflight
