#include "pickle/writing/recorder_writer.h"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "base/pointer_map.h"
#include "pickle/parts.h"
#include "pickle/writing/emitter.h"

namespace postflight {
namespace {

// The state of a container in met_.
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

// torch's C++ pickler memoises every string, but a container only if it is
// referenced more than once, and after its last part: stack frames shared by
// several entries, and the dump itself, which the recorder holds while it is
// written.
class RecorderWriter {
 public:
  explicit RecorderWriter(std::uint64_t max_bytes) : emitter_(2, max_bytes) {}

  Result<std::string> write(const Value& root) &&;

 private:
  struct Place {
    Value value;
    std::size_t next = 0;
  };

  // Finds shared containers; an error if a dump cannot contain `root`.
  Result<> survey(const Value& root);
  Result<> meet(const Value& value);

  Result<> visit(const Value& value);
  Result<> write_string(const Value& value);
  void begin(const Value& value);
  void end(const Value& value);

  Emitter emitter_;
  std::vector<Place> path_;
  PointerMap met_;
  PointerMap memo_;
  PointerMap strings_;  // separate, as in PythonWriter
};

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
                  "a flight-recorder dump cannot contain {}; write the value "
                  "in the Python dialect",
                  plural_name(value.kind()));
  }
  if (value.identity() == nullptr)  // ()
    return {};
  std::uint32_t& state = met_[value.identity()];
  if (state == kOpen)
    return fail(ErrorKind::kUsage,
                "the value contains itself, which a flight-recorder dump "
                "cannot; write it in the Python dialect");
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
                "protocol 4 in the Python dialect",
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

}  // namespace

Result<std::string> write_recorder_pickle(const Value& root,
                                          std::uint64_t max_bytes) {
  return RecorderWriter(max_bytes).write(root);
}

}  // namespace postflight
