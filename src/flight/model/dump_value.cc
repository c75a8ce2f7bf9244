// A dump has thousands of entries, each a dictionary with the same two dozen
// keys in the same order. The pickle stores each key's text once and refers to
// it, so the meaning of a key is cached by its position and address, and stacks
// and shapes are looked up by the addresses of their parts before they are
// read. A typical entry needs no string comparison at all.
#include "flight/model/dump_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/pointer_map.h"
#include "flight/model/entry_field.h"
#include "pickle/repr.h"

namespace postflight {
namespace {

// A hostile pickle can refer to one long list thousands of times. Lists longer
// than any real one are truncated, or looked up by address.
constexpr std::size_t kFewTensors = 64;

template <class T>
std::span<const T> first(std::span<const T> items, std::size_t most) {
  return items.first(std::min(items.size(), most));
}

bool is_text(const Value& value) {
  return value.is(Kind::kString) || value.is(Kind::kLegacyString);
}

bool is_sequence(const Value& value) {
  return value.is(Kind::kList) || value.is(Kind::kTuple);
}

// Numbers may be strings, as in torch's own tests.
std::optional<std::int64_t> integer_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kInteger:
      return value.integer();
    case Kind::kBoolean:
      return value.boolean() ? 1 : 0;
    case Kind::kFloat: {
      const double number = value.floating();
      if (number >= -0x1p63 && number < 0x1p63)
        return static_cast<std::int64_t>(number);
      return std::nullopt;
    }
    case Kind::kString:
    case Kind::kLegacyString: {
      const std::string_view text = value.text();
      std::int64_t number = 0;
      const auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc() && end == text.data() + text.size())
        return number;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::int64_t integer_or(const Value& value, std::int64_t fallback) {
  return integer_of(value).value_or(fallback);
}

constexpr std::size_t kLongest = 4096;
constexpr int kDeepest = 6;

void append(const Value& value, int depth, std::string& out);

void append_items(std::span<const Value> items, char open, char close,
                  int depth, std::string& out) {
  out += open;
  for (const Value& item : items) {
    if (&item != items.data())
      out += ", ";
    if (out.size() > kLongest) {
      out += "…";
      break;
    }
    append(item, depth + 1, out);
  }
  out += close;
}

void append_pairs(std::span<const Pair> pairs, int depth, std::string& out) {
  out += '{';
  for (const Pair& pair : pairs) {
    if (&pair != pairs.data())
      out += ", ";
    if (out.size() > kLongest) {
      out += "…";
      break;
    }
    append(pair.key, depth + 1, out);
    out += ": ";
    append(pair.value, depth + 1, out);
  }
  out += '}';
}

// The recursion is bounded by kDeepest.
void append(const Value& value, int depth, std::string& out) {
  if (depth > kDeepest) {
    out += "…";
    return;
  }
  switch (value.kind()) {
    case Kind::kNone:
      out += "None";
      return;
    case Kind::kBoolean:
      out += value.boolean() ? "True" : "False";
      return;
    case Kind::kInteger:
      out += std::to_string(value.integer());
      return;
    case Kind::kBigInteger:
      out += repr_integer(value.text());
      return;
    case Kind::kFloat:
      out += repr_float(value.floating());
      return;
    case Kind::kString:
    case Kind::kLegacyString:
      out += repr_string(value.text().substr(0, kLongest));
      return;
    case Kind::kBytes:
    case Kind::kByteArray:
      out += repr_bytes(value.text().substr(0, kLongest));
      return;
    case Kind::kTuple:
    case Kind::kFrozenSet:
      append_items(value.items(), '(', ')', depth, out);
      return;
    case Kind::kList:
      append_items(value.items(), '[', ']', depth, out);
      return;
    case Kind::kSet:
      append_items(value.items(), '{', '}', depth, out);
      return;
    case Kind::kDict:
      append_pairs(value.pairs(), depth, out);
      return;
    default:
      out += "…";
      return;
  }
}

// A value as Python prints it, but strings without quotes. Long and deeply
// nested values are truncated with "…". Not escaped: it may contain bytes of a
// file.
std::string value_text(const Value& value) {
  if (value.is(Kind::kString) || value.is(Kind::kLegacyString))
    return std::string(value.text());
  std::string out;
  append(value, 0, out);
  return out;
}

class ValueDumpReader {
 public:
  explicit ValueDumpReader(MemberLists& lists) : lists_(lists) {}

  Dump read(const Value& root) &&;

 private:
  void read_groups(const Value& config);
  void read_statuses(const Value& status);
  void read_entries(const Value& list);
  void read_entry(std::span<const Pair> pairs);
  void read_field(EntryField field, const Value& value);
  void keep_extra(const Value& key, const Value& value);

  EntryField field_at(std::size_t place, const Value& key);
  TextId text_of(const Value& value);
  const MemberList* members_of(const Value& value);
  StackId stack_of(const Value& value);
  FrameId frame_of(const Value& frame);
  SizesId sizes_of(const Value& sizes);
  DtypesId dtypes_of(const Value& dtypes);
  void read_group_of(const Value& group);
  State state_of(const Value& value);

  MemberLists& lists_;
  Dump dump_;

  // The entry being read.
  Entry entry_;
  Call call_;
  Thread thread_;
  bool has_group_ = false;
  bool has_sequence_ = false;

  struct Place {
    const void* key = nullptr;
    EntryField field = EntryField::kUnknown;
  };
  std::vector<Place> places_;

  PointerMap texts_;       // address of a text -> TextId + 1
  PointerMap frames_;      // address of a frame -> FrameId + 1
  PointerMap sizes_seen_;  // address of a long list -> its id + 1
  PointerMap dtypes_seen_;
  Interner<std::uint64_t> stacks_seen_;
  std::vector<StackId> stacks_;  // by index in stacks_seen_
  std::vector<std::uint64_t> addresses_;
  std::vector<FrameId> stack_;
  std::vector<std::int64_t> sizes_;
  std::vector<TextId> dtypes_;
};

Dump ValueDumpReader::read(const Value& root) && {
  if (is_sequence(root)) {
    read_entries(root);
    return std::move(dump_);
  }
  for (const auto& [key, value] : root.pairs()) {
    const std::string_view name = is_text(key) ? key.text() : "";
    if (name == "version")
      dump_.version = text_of(value);
    else if (name == "nccl_version" || name == "comm_lib_version")
      dump_.library = text_of(value);
    else if (name == "pg_config" && value.is(Kind::kDict))
      read_groups(value);
    else if (name == "pg_status" && value.is(Kind::kDict))
      read_statuses(value);
    else if (name == "entries" && is_sequence(value))
      read_entries(value);
    else
      dump_.extras.push_back({text_of(key), text_of(value)});
  }
  dump_.entries.shrink();
  return std::move(dump_);
}

void ValueDumpReader::read_groups(const Value& config) {
  for (const auto& [key, group] : config.pairs()) {
    GroupConfig read = {.name = text_of(key), .description = {}};
    if (group.is(Kind::kDict))
      for (const auto& [field, value] : first(group.pairs(), kMostFields)) {
        const std::string_view name = is_text(field) ? field.text() : "";
        if (name == "name")
          read.name = text_of(value);
        else if (name == "desc")
          read.description = text_of(value);
        else if (name == "ranks")
          read.members = members_of(value);
      }
    dump_.groups.push_back(read);
  }
}

void ValueDumpReader::read_statuses(const Value& status) {
  for (const auto& [key, group] : status.pairs()) {
    if (!group.is(Kind::kDict))
      continue;
    GroupStatus read = {.local_group = integer_or(key, -1)};
    for (const auto& [field, value] : first(group.pairs(), kMostFields)) {
      const std::string_view name = is_text(field) ? field.text() : "";
      if (name == "last_enqueued_collective")
        read.last_enqueued = integer_or(value, -1);
      else if (name == "last_started_collective")
        read.last_started = integer_or(value, -1);
      else if (name == "last_completed_collective")
        read.last_completed = integer_or(value, -1);
    }
    dump_.statuses.push_back(read);
  }
}

void ValueDumpReader::read_entries(const Value& list) {
  for (const Value& entry : list.items()) {
    if (entry.is(Kind::kDict))
      read_entry(first(entry.pairs(), kMostFields));
    else
      ++dump_.broken_entries;
  }
}

void ValueDumpReader::read_entry(std::span<const Pair> pairs) {
  entry_ = {};
  call_ = {};
  thread_ = {};
  has_group_ = has_sequence_ = false;
  for (std::size_t place = 0; place < pairs.size(); ++place) {
    const auto& [key, value] = pairs[place];
    const EntryField field = field_at(place, key);
    if (field == EntryField::kUnknown)
      keep_extra(key, value);
    else
      read_field(field, value);
  }
  if (!has_group_)
    call_.group_name = dump_.tables.add_text(std::to_string(call_.local_group));
  entry_.call = dump_.tables.add_call(call_);
  if (thread_.name != TextId{} || thread_.id != TextId{})
    entry_.thread = dump_.tables.add_thread(thread_);
  dump_.entries.push_back(entry_);
}

void ValueDumpReader::read_field(EntryField field, const Value& value) {
  using enum EntryField;
  switch (field) {
    case kFrames:
      entry_.stack = stack_of(value);
      return;
    case kRecordId:
      entry_.record_id = integer_or(value, 0);
      return;
    case kLocalGroup:
      call_.local_group = integer_or(value, 0);
      return;
    case kProcessGroup:
      read_group_of(value);
      return;
    case kThreadName:
      thread_.name = text_of(value);
      return;
    case kThreadId:
      thread_.id = text_of(value);
      return;
    case kSequence:
      entry_.sequence = integer_or(value, 0);
      has_sequence_ = true;
      return;
    case kOldSequence:
      if (!has_sequence_)
        entry_.sequence = integer_or(value, 0);
      return;
    case kP2pSequence:
      entry_.p2p_sequence = integer_or(value, 0);
      return;
    case kOperationId:
      entry_.operation_id = integer_or(value, 0);
      return;
    case kName:
      call_.name = text_of(value);
      return;
    case kCreated:
      entry_.created = integer_or(value, 0);
      return;
    case kDuration:
      entry_.duration_ms =
          value.is(Kind::kFloat)
              ? (std::isfinite(value.floating()) ? value.floating() : -1)
              : static_cast<double>(integer_or(value, -1));
      return;
    case kInputSizes:
      call_.inputs = sizes_of(value);
      return;
    case kInputDtypes:
      call_.input_dtypes = dtypes_of(value);
      return;
    case kOutputSizes:
      call_.outputs = sizes_of(value);
      return;
    case kOutputDtypes:
      call_.output_dtypes = dtypes_of(value);
      return;
    case kState:
      entry_.state = state_of(value);
      return;
    case kStarted:
      entry_.started = integer_or(value, 0);
      return;
    case kCompleted:
      entry_.completed = integer_or(value, 0);
      return;
    case kRetired:
      entry_.retired = integer_or(value, 0) != 0;
      return;
    case kTimeout:
      call_.timeout_ms = integer_or(value, 0);
      return;
    case kPointToPoint:
      call_.point_to_point = integer_or(value, 0) != 0 ? 1 : 0;
      return;
    case kUnknown:
      return;
  }
}

void ValueDumpReader::keep_extra(const Value& key, const Value& value) {
  dump_.entry_extras.push_back(
      {static_cast<std::uint32_t>(dump_.entries.size()),
       {text_of(key), text_of(value)}});
}

EntryField ValueDumpReader::field_at(std::size_t place, const Value& key) {
  const void* const identity = key.identity();
  if (place < places_.size() && places_[place].key == identity &&
      identity != nullptr)
    return places_[place].field;
  const EntryField field =
      is_text(key) ? entry_field(key.text()) : EntryField::kUnknown;
  if (place >= places_.size())
    places_.resize(place + 1);
  places_[place] = {identity, field};
  return field;
}

TextId ValueDumpReader::text_of(const Value& value) {
  if (!is_text(value))
    return value.is(Kind::kNone) ? TextId{}
                                 : dump_.tables.add_text(value_text(value));
  std::uint32_t& known = texts_[value.text().data()];
  if (known == 0)
    known = dump_.tables.add_text(value.text()).value + 1;
  return {known - 1};
}

const MemberList* ValueDumpReader::members_of(const Value& value) {
  if (value.is(Kind::kNone))
    return nullptr;
  return is_text(value) ? &lists_.find(value.text())
                        : &lists_.find(value_text(value));
}

StackId ValueDumpReader::stack_of(const Value& value) {
  if (!is_sequence(value))
    return {};
  const std::span<const Value> frames = first(value.items(), kMostFrames);
  addresses_.clear();
  for (const Value& frame : frames)
    addresses_.push_back(frame.bits());
  const std::uint32_t seen = stacks_seen_.intern(addresses_);
  if (seen < stacks_.size())
    return stacks_[seen];
  stack_.clear();
  for (const Value& frame : frames)
    stack_.push_back(frame_of(frame));
  stacks_.push_back(dump_.tables.add_stack(stack_));
  return stacks_.back();
}

FrameId ValueDumpReader::frame_of(const Value& value) {
  Frame frame;
  if (!value.is(Kind::kDict)) {
    frame.function = text_of(value);
    return dump_.tables.add_frame(frame);
  }
  std::uint32_t& known = frames_[value.identity()];
  if (known != 0)
    return {known - 1};
  for (const auto& [key, part] : value.pairs()) {
    const std::string_view name = is_text(key) ? key.text() : "";
    if (name == "name")
      frame.function = text_of(part);
    else if (name == "filename")
      frame.file = text_of(part);
    else if (name == "line")
      frame.line = integer_or(part, 0);
  }
  const FrameId made = dump_.tables.add_frame(frame);
  known = made.value + 1;
  return made;
}

SizesId ValueDumpReader::sizes_of(const Value& sizes) {
  if (!is_sequence(sizes))
    return {};
  const bool large = sizes.items().size() > kFewTensors;
  if (large && sizes_seen_[sizes.identity()] != 0)
    return {sizes_seen_[sizes.identity()] - 1};
  sizes_.clear();
  for (const Value& shape : sizes.items()) {
    if (!is_sequence(shape)) {  // the dimensions of a single tensor, not nested
      sizes_.push_back(1);
      sizes_.push_back(integer_or(shape, -1));
      continue;
    }
    const std::span<const Value> dimensions =
        first(shape.items(), kMostDimensions);
    sizes_.push_back(static_cast<std::int64_t>(dimensions.size()));
    for (const Value& dimension : dimensions)
      sizes_.push_back(integer_or(dimension, -1));
  }
  const SizesId made = dump_.tables.add_sizes(sizes_);
  if (large)
    sizes_seen_[sizes.identity()] = made.value + 1;
  return made;
}

DtypesId ValueDumpReader::dtypes_of(const Value& dtypes) {
  if (!is_sequence(dtypes))
    return {};
  const bool large = dtypes.items().size() > kFewTensors;
  if (large && dtypes_seen_[dtypes.identity()] != 0)
    return {dtypes_seen_[dtypes.identity()] - 1};
  dtypes_.clear();
  for (const Value& name : dtypes.items())
    dtypes_.push_back(text_of(name));
  const DtypesId made = dump_.tables.add_dtypes(dtypes_);
  if (large)
    dtypes_seen_[dtypes.identity()] = made.value + 1;
  return made;
}

// ("0", "default_pg"); older recorders write only the name.
void ValueDumpReader::read_group_of(const Value& group) {
  has_group_ = true;
  if (!is_sequence(group)) {
    call_.group_name = text_of(group);
    return;
  }
  const std::span<const Value> parts = group.items();
  if (!parts.empty())
    call_.group_name = text_of(parts[0]);
  if (parts.size() > 1)
    call_.group_description = text_of(parts[1]);
}

State ValueDumpReader::state_of(const Value& value) {
  if (is_text(value))
    for (const State state :
         {State::kCompleted, State::kScheduled, State::kStarted})
      if (value.text() == state_name(state))
        return state;
  return State::kUnknown;
}

}  // namespace

bool looks_like_dump(const Value& root) {
  if (root.is(Kind::kDict))
    return root.find("entries") != nullptr || root.find("pg_config") != nullptr;
  return root.is(Kind::kList) && !root.items().empty() &&
         root.items()[0].is(Kind::kDict) &&
         root.items()[0].find("profiling_name") != nullptr;
}

Result<Dump> dump_from_value(const Value& root, MemberLists& lists) {
  if (!looks_like_dump(root))
    return fail(ErrorKind::kUnsupported,
                "not a flight-recorder dump: it has neither entries nor "
                "groups");
  return ValueDumpReader(lists).read(root);
}

}  // namespace postflight
