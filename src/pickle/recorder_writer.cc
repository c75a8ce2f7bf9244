#include "pickle/recorder_writer.h"

#include <utility>

#include "pickle/parts.h"

namespace postflight {
namespace {

// What met_ knows of a container.
constexpr std::uint32_t kOpen = 1;
constexpr std::uint32_t kOnce = 2;
constexpr std::uint32_t kShared = 3;

std::string_view plural_name(Kind kind) {
  switch (kind) {
    case Kind::kBigInteger:
      return "integers beyond 64 bits";
    case Kind::kLegacyString:
      return "Python 2 strings";
    case Kind::kBytes:
      return "bytes";
    case Kind::kByteArray:
      return "bytearrays";
    case Kind::kSet:
      return "sets";
    case Kind::kFrozenSet:
      return "frozensets";
    case Kind::kGlobal:
      return "globals";
    case Kind::kObject:
      return "objects";
    case Kind::kPersistent:
      return "persistent ids";
    case Kind::kExtension:
      return "extension codes";
    default:
      return "out-of-band buffers";
  }
}

}  // namespace

Result<std::string> RecorderWriter::write(const Value& root) && {
  TRY(survey(root));
  TRY(visit(root));
  while (!path_.empty()) {
    Place& place = path_.back();
    if (place.next == part_count(place.value)) {
      end(place.value);
      path_.pop_back();
      continue;
    }
    TRY(visit(part_at(place.value, place.next++).value));
  }
  return std::move(emitter_).finish();
}

Result<> RecorderWriter::survey(const Value& root) {
  TRY(meet(root));
  while (!path_.empty()) {
    Place& place = path_.back();
    if (place.next == part_count(place.value)) {
      // The recorder holds the whole dump itself.
      met_[place.value.identity()] = path_.size() == 1 ? kShared : kOnce;
      path_.pop_back();
      continue;
    }
    TRY(meet(part_at(place.value, place.next++).value));
  }
  return {};
}

Result<> RecorderWriter::meet(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone:
    case Kind::kBoolean:
    case Kind::kInteger:
    case Kind::kFloat:
    case Kind::kString:
      return {};
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kDict:
      break;
    default:
      return fail(ErrorKind::kUsage,
                  "a flight recorder's dump holds no {}; write the value in "
                  "Python's dialect",
                  plural_name(value.kind()));
  }
  if (value.identity() == nullptr)  // ()
    return {};
  std::uint32_t& state = met_[value.identity()];
  if (state == kOpen)
    return fail(ErrorKind::kUsage,
                "the value holds itself, which a flight recorder's dump can't; "
                "write it in Python's dialect");
  if (state != 0) {
    state = kShared;
    return {};
  }
  state = kOpen;
  path_.push_back({value});
  return {};
}

Result<> RecorderWriter::visit(const Value& value) {
  TRY(emitter_.need_room());
  switch (value.kind()) {
    case Kind::kNone:
      emitter_.op(Opcode::kNone);
      return {};
    case Kind::kBoolean:
      emitter_.op(value.boolean() ? Opcode::kNewTrue : Opcode::kNewFalse);
      return {};
    case Kind::kInteger:
      emitter_.integer(value.integer(), Emitter::Wide::kEight);
      return {};
    case Kind::kFloat:
      emitter_.floating(value.floating());
      return {};
    case Kind::kString:
      return write_string(value);
    default:
      break;
  }
  if (value.identity() == nullptr) {
    emitter_.op(Opcode::kEmptyTuple);
    return {};
  }
  if (const std::uint32_t found = memo_.find(value.identity())) {
    emitter_.get(found);
    return {};
  }
  begin(value);
  path_.push_back({value});
  return {};
}

Result<> RecorderWriter::write_string(const Value& value) {
  const std::string_view text = value.text();
  if (text.size() > 0xffffffff)
    return fail(ErrorKind::kUsage,
                "a string of {} bytes is too long for pickle protocol 2; use "
                "protocol 4 in Python's dialect",
                text.size());
  std::uint32_t& index = strings_[value.identity()];
  if (index != 0) {
    emitter_.get(index);
    return {};
  }
  TRY(emitter_.need_room(text.size()));
  emitter_.text({.four = Opcode::kBinUnicode}, text);
  index = emitter_.put();
  return {};
}

void RecorderWriter::begin(const Value& value) {
  if (value.is(Kind::kList))
    emitter_.op(Opcode::kEmptyList);
  if (value.is(Kind::kDict))
    emitter_.op(Opcode::kEmptyDict);
  if (!value.is(Kind::kTuple) || part_count(value) > 3)
    emitter_.op(Opcode::kMark);
}

void RecorderWriter::end(const Value& value) {
  constexpr Opcode kSmallTuples[] = {Opcode::kEmptyTuple, Opcode::kTuple1,
                                     Opcode::kTuple2, Opcode::kTuple3};
  if (value.is(Kind::kList))
    emitter_.op(Opcode::kAppends);
  else if (value.is(Kind::kDict))
    emitter_.op(Opcode::kSetItems);
  else
    emitter_.op(part_count(value) > 3 ? Opcode::kTuple
                                      : kSmallTuples[part_count(value)]);
  if (met_.find(value.identity()) == kShared)
    memo_[value.identity()] = emitter_.put();
}

}  // namespace postflight
