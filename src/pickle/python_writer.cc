#include "pickle/python_writer.h"

#include <span>
#include <utility>

#include "pickle/object.h"
#include "pickle/parts.h"

namespace postflight {
namespace {

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

}  // namespace

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
                "state or items were given to what is no object; a pickle "
                "can't be written that does so again");
  open(value);
  return {};
}

Result<> PythonWriter::write_text(const Value& value) {
  const std::string_view text = value.text();
  if (value.is(Kind::kLegacyString) && text.size() > 0x7fffffff)
    return fail(ErrorKind::kUsage,
                "a Python 2 string of {} bytes is too long for a pickle",
                text.size());
  if (options_.protocol < 4 && text.size() > 0xffffffff)
    return fail(ErrorKind::kUsage,
                "a string of {} bytes is too long for pickle protocol {}; use "
                "protocol 4",
                text.size(), options_.protocol);
  TRY(emitter_.need_room(text.size()));
  emitter_.text(opcodes_for(value.kind(), options_.protocol), text);
  remember(value);
  return {};
}

// Half of a global in protocol 4: a string like any other, and so known by the
// address of its text.
Result<> PythonWriter::write_name(std::string_view name) {
  emitter_.boundary();
  if (const std::uint32_t found = texts_.find(name.data())) {
    emitter_.get(found);
    return {};
  }
  TRY(emitter_.need_room(name.size()));
  emitter_.text(opcodes_for(Kind::kString, options_.protocol), name);
  texts_[name.data()] = emitter_.put();
  return {};
}

Result<> PythonWriter::write_global(const Value& value) {
  const auto& [module, name] = value.global();
  if (options_.protocol >= 4) {
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
    // The latest entry has nothing in it yet, as in f(x) where x = [f(x)].
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

}  // namespace postflight
