// The rare or complex opcodes, out of line to keep the hot loop of machine.cc
// small. Machine::run() saves its registers and calls run_rare() for them.

#include "pickle/machine.h"
#include "pickle/text_form.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace postflight {
namespace {

// A name as STACK_GLOBAL accepts it: also Python 2's strings, which Python 3
// decodes first. The result of an import, a call or a persistent id can be a
// string too, which cannot be known without executing it; such a name is never
// trusted.
std::optional<std::string_view> name_in(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
    case Kind::kLegacyString:
      return value.text();
    case Kind::kGlobal:
    case Kind::kObject:
    case Kind::kPersistent:
    case Kind::kExtension:
      return "(computed)";
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<> Machine::skip_embedded() {
  const Value& built = top_[-1];
  if (!built.is(Kind::kObject))
    return {};
  const std::uint64_t size =
      TRY(embedded_(built.object(), {reinterpret_cast<const std::byte*>(next_),
                                     static_cast<std::size_t>(left())}));
  if (size > left())
    return too_short(Opcode::kBuild, size);
  next_ += size;
  return {};
}

Result<> Machine::run_rare(Opcode opcode) {
  const OpcodeInfo* const info = opcode_info(static_cast<std::uint8_t>(opcode));
  if (info == nullptr)
    return broken(ErrorKind::kCorrupt,
                  fmt::format("0x{:02x} is not a pickle opcode",
                              static_cast<unsigned>(opcode)));
  switch (info->argument) {
    case Argument::kNone:
      return run_bare(opcode);
    case Argument::kLine:
    case Argument::kTwoLines:
      return run_text(opcode);
    default:
      return run_counted(*info);
  }
}

Result<> Machine::run_bare(Opcode opcode) {
  switch (opcode) {
    case Opcode::kDup:
      if (!has(1))
        return underflow(opcode);
      push(top_[-1]);
      return {};
    case Opcode::kPopMark: {
      Value* const first = TRY(mark_of(opcode));
      top_ = first - 1;
      return {};
    }
    case Opcode::kEmptySet:
      push(Value::growing(Kind::kSet, arena_.make<Items<Value>>()));
      return {};
    case Opcode::kList: {
      Value* const first = TRY(mark_of(opcode));
      Items<Value>* const items = arena_.make<Items<Value>>();
      append(*items, first, static_cast<std::size_t>(top_ - first));
      top_ = first - 1;
      push(Value::growing(Kind::kList, items));
      return {};
    }
    case Opcode::kDict: {
      Value* const first = TRY(mark_of(opcode));
      const std::size_t count = static_cast<std::size_t>(top_ - first);
      if (count % 2 != 0)
        return no_value(opcode);
      Items<Pair>* const pairs = arena_.make<Items<Pair>>();
      append(*pairs, reinterpret_cast<const Pair*>(first), count / 2);
      top_ = first - 1;
      push(Value::dict(pairs));
      return {};
    }
    case Opcode::kFrozenSet: {
      Value* const first = TRY(mark_of(opcode));
      const Value* const items = keep(first, top_);
      top_ = first - 1;
      push(Value::fixed(Kind::kFrozenSet, items));
      return {};
    }
    case Opcode::kAddItems: {
      Value* const first = TRY(mark_of(opcode));
      const std::size_t count = static_cast<std::size_t>(top_ - first);
      top_ = first - 1;
      if (!has(1))
        return underflow(opcode);
      if (count != 0)
        append(*items_of(top_[-1], Kind::kSet), first, count);
      return {};
    }
    case Opcode::kNewObjEx:
      return make_object();
    case Opcode::kObj: {
      Value* const first = TRY(mark_of(opcode));
      if (first == top_)
        return underflow(opcode);
      const Value callable = *first;
      return make_instance(first, callable, keep(first + 1, top_));
    }
    case Opcode::kStackGlobal: {
      if (!has(2))
        return underflow(opcode);
      const Value name = *--top_;
      const Value module = *--top_;
      const std::optional<std::string_view> module_text = name_in(module);
      const std::optional<std::string_view> name_text = name_in(name);
      if (!module_text || !name_text)
        return broken(ErrorKind::kCorrupt,
                      "STACK_GLOBAL needs two strings on the stack");
      push_global(*module_text, *name_text);
      return {};
    }
    case Opcode::kNextBuffer:
      push(Value::numbered(Kind::kBuffer, buffers_++));
      return {};
    case Opcode::kReadOnlyBuffer:
      if (!has(1))
        return underflow(opcode);
      if (top_[-1].is(Kind::kBuffer))
        top_[-1] =
            Value::numbered(Kind::kReadOnlyBuffer,
                            static_cast<std::uint32_t>(top_[-1].integer()));
      return {};
    default:
      return broken(ErrorKind::kUnsupported,
                    fmt::format("{} is not read", name_of(opcode)));
  }
}

Result<> Machine::run_counted(const OpcodeInfo& info) {
  const auto count = TRY(take_count(info));
  switch (info.code) {
    case Opcode::kProto:
      if (count > kHighestProtocol)
        return broken(ErrorKind::kUnsupported,
                      fmt::format("pickle protocol {} is newer than {}", count,
                                  kHighestProtocol));
      protocol_ = static_cast<int>(count);
      return {};
    case Opcode::kFrame:
      if (count > left())
        return too_short(info.code, count);
      return {};
    case Opcode::kExt1:
    case Opcode::kExt2:
    case Opcode::kExt4:
      if (count == 0 || count > 0x7fffffff)
        return broken(ErrorKind::kCorrupt,
                      "extension code is outside 1 to 2147483647");
      push(
          Value::numbered(Kind::kExtension, static_cast<std::uint32_t>(count)));
      return {};
    default:
      break;
  }

  push(TRY(take_text(info, count)));
  return {};
}

Result<> Machine::run_text(Opcode opcode) {
  const bool is_name = opcode == Opcode::kGlobal || opcode == Opcode::kInst;
  const std::string_view line =
      TRY(is_name ? take_name(opcode, std::nullopt) : take_line(opcode));
  const auto push_read = [this](Result<Value> read) -> Result<> {
    if (!read)
      return broken(read.error().kind(), read.error().message());
    push(*read);
    return {};
  };
  switch (opcode) {
    case Opcode::kInt:
      return push_read(integer_from_int_line(line, arena_, limits_));
    case Opcode::kLong:
      return push_read(integer_from_long_line(line, arena_, limits_));
    case Opcode::kFloat:
      return push_read(float_from_line(line, arena_));
    case Opcode::kString:
      return push_read(legacy_string_from_line(line, arena_));
    case Opcode::kUnicode:
      return push_read(string_from_line(line, arena_));
    case Opcode::kPersId:
      push(Value::persistent(
          arena_.make(kept_text(Kind::kString, line, arena_))));
      return {};
    case Opcode::kGet:
    case Opcode::kPut: {
      const Result<std::uint64_t> key = memo_key_from_line(line);
      if (!key)
        return broken(key.error().kind(), key.error().message());
      return opcode == Opcode::kGet ? get(*key) : put(*key);
    }
    case Opcode::kGlobal: {
      const std::string_view name = TRY(take_name(opcode, line));
      push_global(line, name);
      return {};
    }
    default: {  // INST
      const std::string_view name = TRY(take_name(opcode, line));
      Value* const first = TRY(mark_of(opcode));
      const Value* const arguments = keep(first, top_);
      top_ = first;
      push_global(line, name);
      return make_instance(first, *first, arguments);
    }
  }
}

void Machine::push_global(std::string_view module, std::string_view name) {
  const Global* const global = arena_.make(Global{module, name});
  globals_.push_back(global);
  push(Value::global(global));
}

void Machine::push_object(const Object& object) {
  const Object* const made = arena_.make(object);
  record(made);
  push(Value::object(made));
}

// NEWOBJ MEMOIZE EMPTY_DICT MEMOIZE MARK, of a class on the stack.
void Machine::begin_object() {
  Object* const made = arena_.make<Object>();
  made->making = Making::kNew;
  made->arguments = Value::fixed(Kind::kTuple, nullptr);
  made->callable = top_[-1];
  record(made);
  top_[-1] = Value::object(made);
  memo_.remember(memo_.count(), top_[-1]);
  push(Value::dict(arena_.make<Items<Pair>>()));
  memo_.remember(memo_.count(), top_[-1]);
  push(Value::count(static_cast<std::uint64_t>(fence_ - stack_.get())));
  fence_ = top_;
}

// MEMOIZE TUPLE1 MEMOIZE REDUCE MEMOIZE, of a function and a tuple.
void Machine::call_with_tuple() {
  memo_.remember(memo_.count(), top_[-1]);
  const Value arguments = Value::fixed(Kind::kTuple, keep(top_ - 1, top_));
  memo_.remember(memo_.count(), arguments);
  Object* const made = arena_.make<Object>();
  made->arguments = arguments;
  --top_;
  made->callable = top_[-1];
  record(made);
  top_[-1] = Value::object(made);
  memo_.remember(memo_.count(), top_[-1]);
}

Result<> Machine::make_object() {
  if (!has(3))
    return underflow(Opcode::kNewObjEx);
  Object object;
  object.making = Making::kNewEx;
  object.more = arena_.make(Object::More{.keywords = *--top_});
  object.arguments = *--top_;
  object.callable = *--top_;
  push_object(object);
  return {};
}

Result<> Machine::make_instance(Value* first, Value callable,
                                const Value* arguments) {
  Object object;
  object.making = Making::kInstance;
  object.callable = callable;
  object.arguments = Value::fixed(Kind::kTuple, arguments);
  top_ = first - 1;
  push_object(object);
  return {};
}

Result<> Machine::get(std::uint64_t key) {
  const Value* const found = memo_.find(key);
  if (found == nullptr)
    return broken(ErrorKind::kCorrupt,
                  "GET refers to a memo entry that does not exist");
  push(*found);
  return {};
}

Result<> Machine::put(std::uint64_t key) {
  if (!has(1))
    return underflow(Opcode::kPut);
  memo_.remember(key, top_[-1]);
  return {};
}

Result<Value*> Machine::mark_of(Opcode opcode) {
  Value* const first = pop_mark();
  if (first == nullptr)
    return broken(ErrorKind::kCorrupt,
                  fmt::format("{} finds no MARK", name_of(opcode)));
  return first;
}

Result<std::string_view> Machine::take_line(Opcode opcode) {
  const auto* const newline =
      static_cast<const std::uint8_t*>(std::memchr(next_, '\n', left()));
  if (newline == nullptr)
    return broken(ErrorKind::kCorrupt,
                  fmt::format("the line of {} has no end", name_of(opcode)));
  const std::string_view line(reinterpret_cast<const char*>(next_),
                              static_cast<std::size_t>(newline - next_));
  next_ = newline + 1;
  return line;
}

// A line of GLOBAL or INST; `module` is the first of the two. At the end of the
// input CPython's reader in Python takes what there is for a line, less one
// byte, and imports and calls it before it notices the end.
Result<std::string_view> Machine::take_name(
    Opcode opcode, std::optional<std::string_view> module) {
  Result<std::string_view> line = take_line(opcode);
  if (line || left() == 0)
    return line;
  const std::string_view rest(reinterpret_cast<const char*>(next_), left() - 1);
  push_global(module.value_or(rest), module ? rest : std::string_view());
  if (opcode == Opcode::kInst) {
    Object object;
    object.making = Making::kInstance;
    object.callable = *--top_;
    object.arguments = Value::fixed(Kind::kTuple, keep(fence_, top_));
    record(arena_.make(object));
  } else {
    --top_;
  }
  return line;
}

Result<Value> Machine::take_text(const OpcodeInfo& info, std::uint64_t size) {
  if (size > left())
    return too_short(info.code, size);
  const std::uint8_t* const text = next_;
  next_ += size;
  if (info.code == Opcode::kLong4)
    return integer_from_twos_complement(
        {reinterpret_cast<const char*>(text), size}, arena_);

  Kind kind = Kind::kBytes;
  if (info.code == Opcode::kBinUnicode8)
    kind = Kind::kString;
  else if (info.code == Opcode::kBinString ||
           info.code == Opcode::kShortBinString)
    kind = Kind::kLegacyString;
  else if (info.code == Opcode::kByteArray8)
    kind = Kind::kByteArray;
  const auto prefix = info.argument == Argument::kBlob1 ? Value::Prefix::kOne
                      : info.argument == Argument::kBlob8
                          ? Value::Prefix::kEight
                          : Value::Prefix::kFour;
  return Value::text(kind, prefix, text);
}

// The number after an opcode: a size, a code or a protocol.
Result<std::uint64_t> Machine::take_count(const OpcodeInfo& info) {
  std::uint64_t width = 0;
  switch (info.argument) {
    case Argument::kUnsigned1:
    case Argument::kBlob1:
      width = 1;
      break;
    case Argument::kUnsigned2:
      width = 2;
      break;
    case Argument::kUnsigned8:
    case Argument::kBlob8:
      width = 8;
      break;
    default:
      width = 4;
      break;
  }
  if (left() < width)
    return too_short(info.code, width);
  std::uint64_t count = 0;
  std::memcpy(&count, next_, width);
  next_ += width;
  const bool is_signed = info.argument == Argument::kSignedBlob4;
  if (is_signed && count > 0x7fffffff)
    return broken(ErrorKind::kCorrupt,
                  fmt::format("{} has a negative size", info.name));
  return count;
}

std::vector<std::span<const Value>> Machine::unfinished() const {
  std::vector<std::span<const Value>> parts;
  const Value* end = top_;
  // The mark is just below the fence and holds the previous fence.
  for (const Value* fence = fence_; fence != stack_.get();) {
    parts.emplace_back(fence, end);
    end = fence - 1;
    fence = stack_.get() + end->count();
  }
  parts.emplace_back(stack_.get(), end);
  std::ranges::reverse(parts);
  return parts;
}

}  // namespace postflight
