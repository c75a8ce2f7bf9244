// The opcodes between the parts of a value, and the calls that Python writes
// for values that a protocol has no opcodes for.

#include <string>

#include "base/utf8.h"
#include "pickle/object.h"
#include "pickle/parts.h"
#include "pickle/python_writer.h"

namespace postflight {

namespace {

constexpr std::size_t kBatch = 1000;

}  // namespace

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
      // What follows is as for other objects past callable and arguments.
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
// own arguments meanwhile.
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
      return options_.protocol < 4;
    case Kind::kObject:
      return options_.protocol < 4 && value.object().making == Making::kNewEx &&
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

// _codecs.encode("...", "latin1"), which Python 2 and 3 both make bytes of.
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
  // Keywords as well, which nobody asks of a plain call.
  call.mutable_object()->more = object.more;
  call.mutable_object()->state = object.state;
  call.mutable_object()->state_count = object.state_count;
  return call;
}

Value PythonWriter::builtin(std::string_view name) {
  return builder_.global(options_.protocol < 3 ? "__builtin__" : "builtins",
                         name);
}

}  // namespace postflight
