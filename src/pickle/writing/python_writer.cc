#include "pickle/writing/python_writer.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/pointer_map.h"
#include "base/utf8.h"
#include "pickle/builder.h"
#include "pickle/object.h"
#include "pickle/parts.h"
#include "pickle/writing/emitter.h"

namespace postflight {
namespace {

constexpr std::size_t kBatch = 1000;  // CPython's BATCHSIZE

TextOpcodes opcodes_for(Kind kind, int protocol) {
  using enum Opcode;
  switch (kind) {
    case Kind::kString:
      return protocol >= 4
                 ? TextOpcodes{kShortBinUnicode, kBinUnicode, kBinUnicode8}
                 : TextOpcodes{.four = kBinUnicode};
    case Kind::kLegacyString:
      return {.one = kShortBinString, .four = kBinString};
    default:
      return {kShortBinBytes, kBinBytes, kBinBytes8};
  }
}

bool is_text(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
    case Kind::kLegacyString:
    case Kind::kBytes:
    case Kind::kByteArray:
      return true;
    default:
      return false;
  }
}

// CPython's pickler recurses: it writes a value's parts one after the other,
// with opcodes between them. Here each value that has parts is a Frame with the
// index of the next part to write, and between() writes the opcodes that go
// before it.
//
// A list, dict, set or object is memoised before its parts are written, so that
// a reference from inside finds it. A tuple can only be memoised after its
// parts. A tuple that contains itself, for example through a list, is written
// again inside that list, which is memoised by then; when the outer one ends,
// it finds itself in the memo, pops its parts and fetches the memo entry.
//
// An object made by a call can contain itself through the call's arguments in
// the same way. But set([node]) needs the complete list when it is called: a
// list that only the outer, discarded call used is written again.
class PythonWriter {
 public:
  PythonWriter(int protocol, std::uint64_t max_bytes)
      : protocol_(protocol), emitter_(protocol, max_bytes) {}

  Result<std::string> write(const Value& root) &&;

 private:
  enum class Form : std::uint8_t {
    kTuple,
    kFrozenSet,
    kList,
    kSet,
    kDict,
    kObject,
    kInstance,  // a tuple of callable and arguments, then as kObject
    kPersistent,
  };
  struct Frame {
    Value value;  // the key in the memo
    Value shape;  // what is written: the value itself unless it is lowered
    std::size_t next = 0;
    Form form{};
  };
  enum class After : std::uint8_t { kGoOn, kDone };
  // How a container's parts are written in batches.
  struct Batches {
    Opcode lone;
    Opcode many;
    // Python's loops over built-in containers write a last batch of one item
    // like any other; its loops over iterators write the lone form.
    bool exact;
    // ... and end only after a batch that is not full, even if it is empty.
    bool until_short;
  };

  Result<> visit(const Value& value);
  Result<> write_text(const Value& value);
  Result<> write_name(std::string_view name);
  Result<> write_global(const Value& value);
  void write_extension(std::int64_t code);
  void open(const Value& value);
  void open_fixed(const Value& value, Form form);
  void open_growing(const Value& value, Form form, Opcode empty);
  void open_object(const Value& value);
  void push_object(const Frame& frame);
  void forget_arguments(const Value& value, std::size_t outer);

  // Writes the opcodes before part `next` of the frame, or after the last.
  After between(Frame& frame);
  After between_object(const Frame& frame);
  void between_batches(const Batches& batches, std::size_t count,
                       std::size_t next);
  void end_fixed(const Frame& frame);
  After made(const Value& value);

  // The call that Python writes when the protocol lacks an opcode.
  bool is_lowered(const Value& value) const;
  Value call_for(const Value& value);
  Value call_for_bytes(std::string_view bytes);
  Value call_for_new(const Object& object);
  Value builtin(std::string_view name);

  // The index in the memo plus one; 0 if it is not there.
  std::uint32_t recall(const Value& value) const;
  void remember(const Value& value);

  int protocol_;
  Emitter emitter_;
  std::vector<Frame> frames_;
  // Separate, as an empty text in an arena has the address of what follows it.
  PointerMap texts_;
  PointerMap objects_;
  std::vector<bool> was_got_;  // by index in the memo plus one
  // The index of the frame of an object that is not made yet, plus one.
  PointerMap unmade_;
  // Guarantees that forgetting terminates, even for values that Python could
  // not make: each time the memo must hold more entries than the last time, not
  // counting forgotten ones.
  PointerMap kept_at_last_;
  std::uint32_t forgotten_ = 0;

  Builder builder_;
  // The call for a set is made once: when a set that contains itself is met
  // again, its list must be the same one, in the memo.
  PointerMap set_call_numbers_;
  std::vector<Value> set_calls_;
};

Result<std::string> PythonWriter::write(const Value& root) && {
  TRY(visit(root));
  while (!frames_.empty()) {
    // visit() may move the frames.
    Frame& frame = frames_.back();
    if (between(frame) == After::kDone ||
        frame.next == part_count(frame.shape)) {
      frames_.pop_back();
      continue;
    }
    TRY(visit(part_at(frame.shape, frame.next++).value));
  }
  return std::move(emitter_).finish();
}

Result<> PythonWriter::visit(const Value& value) {
  emitter_.boundary();
  TRY(emitter_.need_room());
  switch (value.kind()) {
    case Kind::kNone:
      emitter_.op(Opcode::kNone);
      return {};
    case Kind::kBoolean:
      emitter_.op(value.boolean() ? Opcode::kNewTrue : Opcode::kNewFalse);
      return {};
    case Kind::kInteger:
      emitter_.integer(value.integer(), Emitter::Wide::kAsNeeded);
      return {};
    case Kind::kBigInteger:
      if (value.text().size() > 0x7fffffff)
        return fail(ErrorKind::kUsage,
                    "an integer of {} bytes is too long for a pickle",
                    value.text().size());
      TRY(emitter_.need_room(value.text().size()));
      emitter_.big_integer(value.text());
      return {};
    case Kind::kFloat:
      emitter_.floating(value.floating());
      return {};
    case Kind::kExtension:
      write_extension(value.integer());
      return {};
    case Kind::kBuffer:
    case Kind::kReadOnlyBuffer:
      return fail(ErrorKind::kUsage,
                  "out-of-band buffer {} can be written in pickle protocol 5 "
                  "only; put its bytes into the value",
                  value.integer());
    case Kind::kPersistent:
      frames_.push_back({value, value, 0, Form::kPersistent});
      return {};
    default:
      break;
  }
  if (const std::uint32_t found = recall(value)) {
    emitter_.get(found);
    if (found >= was_got_.size())
      was_got_.resize(emitter_.memo_size() + std::size_t{1});
    was_got_[found] = true;
    return {};
  }
  if (value.is(Kind::kGlobal))
    return write_global(value);
  if (is_text(value) && !is_lowered(value))
    return write_text(value);
  if (value.is(Kind::kObject) && value.object().making == Making::kTouched)
    return fail(ErrorKind::kUnsupported,
                "state or items were added to a value that is not an object; "
                "no pickle can express that");
  open(value);
  return {};
}

Result<> PythonWriter::write_text(const Value& value) {
  const std::string_view text = value.text();
  if (value.is(Kind::kLegacyString) && text.size() > 0x7fffffff)
    return fail(ErrorKind::kUsage,
                "a Python 2 string of {} bytes is too long for a pickle",
                text.size());
  if (protocol_ < 4 && text.size() > 0xffffffff)
    return fail(ErrorKind::kUsage,
                "a string of {} bytes is too long for pickle protocol {}; use "
                "protocol 4",
                text.size(), protocol_);
  TRY(emitter_.need_room(text.size()));
  emitter_.text(opcodes_for(value.kind(), protocol_), text);
  remember(value);
  return {};
}

// Half of a global in protocol 4: a string like any other, identified by the
// address of its text.
Result<> PythonWriter::write_name(std::string_view name) {
  emitter_.boundary();
  if (const std::uint32_t found = texts_.find(name.data())) {
    emitter_.get(found);
    return {};
  }
  TRY(emitter_.need_room(name.size()));
  emitter_.text(opcodes_for(Kind::kString, protocol_), name);
  texts_[name.data()] = emitter_.put();
  return {};
}

Result<> PythonWriter::write_global(const Value& value) {
  const auto& [module, name] = value.global();
  if (protocol_ >= 4) {
    TRY(write_name(module));
    TRY(write_name(name));
    emitter_.op(Opcode::kStackGlobal);
  } else {
    for (const std::string_view part : {module, name})
      if (part.find('\n') != part.npos)
        return fail(ErrorKind::kUsage,
                    "the global '{}' of module '{}' has a line break in its "
                    "name; use pickle protocol 4",
                    name, module);
    TRY(emitter_.need_room(module.size() + name.size()));
    emitter_.lines(Opcode::kGlobal, module, name);
  }
  remember(value);
  return {};
}

void PythonWriter::write_extension(std::int64_t code) {
  if (code <= 0xff)
    emitter_.op(Opcode::kExt1, static_cast<std::uint8_t>(code));
  else if (code <= 0xffff)
    emitter_.op(Opcode::kExt2, static_cast<std::uint16_t>(code));
  else
    emitter_.op(Opcode::kExt4, static_cast<std::uint32_t>(code));
}

void PythonWriter::open(const Value& value) {
  if (is_lowered(value)) {
    return push_object({value, call_for(value), 0, Form::kObject});
  }
  switch (value.kind()) {
    case Kind::kTuple:
      return open_fixed(value, Form::kTuple);
    case Kind::kFrozenSet:
      return open_fixed(value, Form::kFrozenSet);
    case Kind::kList:
      return open_growing(value, Form::kList, Opcode::kEmptyList);
    case Kind::kSet:
      return open_growing(value, Form::kSet, Opcode::kEmptySet);
    case Kind::kDict:
      return open_growing(value, Form::kDict, Opcode::kEmptyDict);
    default:
      return open_object(value);
  }
}

void PythonWriter::open_fixed(const Value& value, Form form) {
  const std::size_t size = value.items().size();
  if (form == Form::kTuple && size == 0)
    return emitter_.op(Opcode::kEmptyTuple);
  if (form == Form::kFrozenSet || size > 3)
    emitter_.op(Opcode::kMark);
  frames_.push_back({value, value, 0, form});
}

void PythonWriter::open_growing(const Value& value, Form form, Opcode empty) {
  emitter_.op(empty);
  remember(value);
  if (part_count(value) != 0)
    frames_.push_back({value, value, 0, form});
}

void PythonWriter::open_object(const Value& value) {
  const Object& object = value.object();
  if (object.making != Making::kInstance)
    return push_object({value, value, 0, Form::kObject});
  std::vector<Value> parts{object.callable};
  const std::span<const Value> arguments = object.arguments.items();
  parts.insert(parts.end(), arguments.begin(), arguments.end());
  emitter_.op(Opcode::kMark);
  frames_.push_back({value, builder_.tuple(parts), 0, Form::kInstance});
}

void PythonWriter::push_object(const Frame& frame) {
  std::uint32_t& place = unmade_[frame.value.identity()];
  if (place != 0)
    forget_arguments(frame.value, place - 1);
  frames_.push_back(frame);
  place = static_cast<std::uint32_t>(frames_.size());
}

void PythonWriter::forget_arguments(const Value& value, std::size_t outer) {
  const Object& object = frames_[outer].shape.object();
  const Frame& tuple = frames_[outer + 1];
  if (frames_[outer].next != 2 || tuple.form != Form::kTuple ||
      tuple.value.identity() != object.arguments.identity())
    return;
  const std::uint32_t latest = emitter_.memo_size();
  std::uint32_t& kept_at_last = kept_at_last_[value.identity()];
  if (latest - forgotten_ <= kept_at_last)
    return;
  kept_at_last = latest - forgotten_;
  for (const Value& item : tuple.value.items().first(tuple.next)) {
    if (!item.is(Kind::kList) && !item.is(Kind::kDict) && !item.is(Kind::kSet))
      continue;
    const std::uint32_t index = objects_.find(item.identity());
    const bool was_got = index < was_got_.size() && was_got_[index];
    // The latest entry is still empty, as in f(x) where x = [f(x)].
    if (index != 0 && index != latest && !was_got) {
      objects_[item.identity()] = 0;
      ++forgotten_;
    }
  }
}

std::uint32_t PythonWriter::recall(const Value& value) const {
  const void* const identity = value.identity();
  if (identity == nullptr)
    return 0;
  return (is_text(value) ? texts_ : objects_).find(identity);
}

void PythonWriter::remember(const Value& value) {
  const std::uint32_t index = emitter_.put();
  if (const void* const identity = value.identity())
    (is_text(value) ? texts_ : objects_)[identity] = index;
}

// The opcodes between the parts of a value.

PythonWriter::After PythonWriter::between(Frame& frame) {
  using enum Opcode;
  const std::size_t next = frame.next;
  const std::size_t count = part_count(frame.shape);
  switch (frame.form) {
    case Form::kTuple:
    case Form::kFrozenSet:
      if (next == count)
        end_fixed(frame);
      return After::kGoOn;
    case Form::kList:
      between_batches({kAppend, kAppends, true, false}, count, next);
      return After::kGoOn;
    case Form::kSet:
      between_batches({kAddItems, kAddItems, true, true}, count, next);
      return After::kGoOn;
    case Form::kDict:
      if (next % 2 == 0)
        between_batches({kSetItem, kSetItems, true, true}, count / 2, next / 2);
      return After::kGoOn;
    case Form::kObject:
      return between_object(frame);
    case Form::kInstance:
      if (next < count)
        return After::kGoOn;
      emitter_.op(kObj);
      if (made(frame.value) == After::kDone)
        return After::kDone;
      // From here on as for other objects after callable and arguments.
      frame = {frame.value, frame.value, 2, Form::kObject};
      return between_object(frame);
    case Form::kPersistent:
      if (next == count)
        emitter_.op(kBinPersId);
      return After::kGoOn;
  }
  return After::kGoOn;
}

void PythonWriter::between_batches(const Batches& batches, std::size_t count,
                                   std::size_t next) {
  const bool sets_apart = batches.lone != batches.many;
  const auto is_lone = [&](std::size_t first) {
    return sets_apart && first + 1 == count && (!batches.exact || count == 1);
  };
  if (next > 0 && (next == count || next % kBatch == 0))
    emitter_.op(is_lone((next - 1) / kBatch * kBatch) ? batches.lone
                                                      : batches.many);
  if (next < count && next % kBatch == 0 && !is_lone(next))
    emitter_.op(Opcode::kMark);
  if (batches.until_short && next == count && count % kBatch == 0) {
    emitter_.op(Opcode::kMark);
    emitter_.op(batches.many);
  }
}

void PythonWriter::end_fixed(const Frame& frame) {
  constexpr Opcode kSmallTuples[] = {Opcode::kEmptyTuple, Opcode::kTuple1,
                                     Opcode::kTuple2, Opcode::kTuple3};
  const std::size_t size = frame.value.items().size();
  const bool marked = frame.form == Form::kFrozenSet || size > 3;
  if (const std::uint32_t found = recall(frame.value)) {
    if (marked)
      emitter_.op(Opcode::kPopMark);
    for (std::size_t i = 0; !marked && i < size; ++i)
      emitter_.op(Opcode::kPop);
    emitter_.get(found);
    return;
  }
  if (frame.form == Form::kFrozenSet)
    emitter_.op(Opcode::kFrozenSet);
  else
    emitter_.op(marked ? Opcode::kTuple : kSmallTuples[size]);
  remember(frame.value);
}

PythonWriter::After PythonWriter::between_object(const Frame& frame) {
  using enum Opcode;
  const Object& object = frame.shape.object();
  std::size_t next = frame.next;
  const std::size_t fixed = part_count(frame.shape) - object.items().size() -
                            object.pairs().size() * 2 - object.states().size();
  if (next < fixed)
    return After::kGoOn;
  next -= fixed;
  if (next == 0 && object.making != Making::kInstance) {
    switch (object.making) {
      case Making::kNew:
        emitter_.op(kNewObj);
        break;
      case Making::kNewEx:
        emitter_.op(kNewObjEx);
        break;
      default:
        emitter_.op(kReduce);
        break;
    }
    if (made(frame.value) == After::kDone)
      return After::kDone;
  }
  if (next <= object.items().size())
    between_batches({kAppend, kAppends, false, false}, object.items().size(),
                    next);
  if (next < object.items().size())
    return After::kGoOn;
  next -= object.items().size();
  if (next % 2 == 0 && next / 2 <= object.pairs().size())
    between_batches({kSetItem, kSetItems, false, false}, object.pairs().size(),
                    next / 2);
  if (next > object.pairs().size() * 2)
    emitter_.op(kBuild);
  return After::kGoOn;
}

// After the opcode that makes an object, which may have been made inside its
// own arguments in the meantime.
PythonWriter::After PythonWriter::made(const Value& value) {
  if (const std::uint32_t found = recall(value)) {
    emitter_.op(Opcode::kPop);
    emitter_.get(found);
    return After::kDone;
  }
  remember(value);
  return After::kGoOn;
}

bool PythonWriter::is_lowered(const Value& value) const {
  switch (value.kind()) {
    case Kind::kByteArray:
      return true;
    case Kind::kBytes:
    case Kind::kSet:
    case Kind::kFrozenSet:
      return protocol_ < 4;
    case Kind::kObject:
      return protocol_ < 4 && value.object().making == Making::kNewEx &&
             value.object().arguments.is(Kind::kTuple);
    default:
      return false;
  }
}

Value PythonWriter::call_for(const Value& value) {
  switch (value.kind()) {
    case Kind::kBytes:
      return call_for_bytes(value.text());
    case Kind::kByteArray: {
      const Value bytes = builder_.bytes(value.text());
      return builder_.reduce(
          builtin("bytearray"),
          value.text().empty() ? builder_.tuple({}) : builder_.tuple({bytes}));
    }
    case Kind::kFrozenSet:
      return builder_.reduce(builtin("frozenset"),
                             builder_.tuple({builder_.list(value.items())}));
    case Kind::kSet: {
      std::uint32_t& number = set_call_numbers_[value.identity()];
      if (number == 0) {
        set_calls_.push_back(builder_.reduce(
            builtin("set"), builder_.tuple({builder_.list(value.items())})));
        number = static_cast<std::uint32_t>(set_calls_.size());
      }
      return set_calls_[number - 1];
    }
    default:
      return call_for_new(value.object());
  }
}

// _codecs.encode("...", "latin1"), which yields bytes in Python 2 and 3.
Value PythonWriter::call_for_bytes(std::string_view bytes) {
  if (bytes.empty())
    return builder_.reduce(builtin("bytes"), builder_.tuple({}));
  std::string text;
  for (const char byte : bytes)
    append_utf8(static_cast<unsigned char>(byte), text);
  return builder_.reduce(
      builder_.global("_codecs", "encode"),
      builder_.tuple({builder_.string(text), builder_.interned("latin1")}));
}

// functools.partial(type.__new__, type, *arguments, **keywords)()
Value PythonWriter::call_for_new(const Object& object) {
  const Value method = builder_.reduce(
      builtin("getattr"),
      builder_.tuple({object.callable, builder_.interned("__new__")}));
  std::vector<Value> arguments{object.callable};
  const std::span<const Value> more = object.arguments.items();
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Value partial = builder_.reduce(builder_.global("functools", "partial"),
                                        builder_.tuple({method}));
  builder_.add_state(partial,
                     builder_.tuple({method, builder_.tuple(arguments),
                                     object.keywords(), Value::none()}));
  const Value call = builder_.reduce(partial, builder_.tuple({}));
  // Includes the keywords, which are ignored for a plain call.
  call.mutable_object()->more = object.more;
  call.mutable_object()->state = object.state;
  call.mutable_object()->state_count = object.state_count;
  return call;
}

Value PythonWriter::builtin(std::string_view name) {
  return builder_.global(protocol_ < 3 ? "__builtin__" : "builtins", name);
}

}  // namespace

Result<std::string> write_python_pickle(const Value& root, int protocol,
                                        std::uint64_t max_bytes) {
  return PythonWriter(protocol, max_bytes).write(root);
}

}  // namespace postflight
