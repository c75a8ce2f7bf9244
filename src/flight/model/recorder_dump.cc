// torch's pickler uses few opcodes, each in one way: a text is written once and
// memoised; a dictionary is its opcode, a mark, keys and values, and the opcode
// that adds them. So a dump can be parsed by a grammar, without a stack:
//
//   dump  = PROTO 2 dict STOP            list = EMPTY_LIST MARK item* APPENDS
//   dict  = EMPTY_DICT MARK (text value)* SETITEMS         text = BINUNICODE
//   group = text text TUPLE2             number = BININT1 | ... | LONG1 8
//
// each followed by BINPUT if it occurs again, which is then a BINGET. Memo
// indexes count up from 0. Parsing fails at the first byte that does not fit
// the grammar; all other dumps, truncated ones included, are read as values.
#include "flight/model/recorder_dump.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "flight/model/entry_field.h"
#include "flight/model/entry_patterns.h"
#include "flight/model/recorder_cursor.h"
#include "pickle/opcode.h"

namespace postflight {
namespace {

// The bytes of a stack that was read before. As the memo only grows, the same
// bytes mean the same stack again if reading them did not add to the memo.
struct SeenStack {
  const unsigned char* begin = nullptr;
  std::size_t size = 0;
  StackId stack;
};
constexpr std::size_t kSeen = 256;

class RecorderDumpReader {
 public:
  RecorderDumpReader(Bytes bytes, MemberLists& lists)
      : in_(bytes), lists_(lists) {}

  std::optional<Dump> read() &&;

 private:
  // These return false if the bytes do not fit the grammar.
  bool read_root();
  bool read_groups();
  bool read_statuses();
  bool read_entries();
  bool read_entry();
  bool read_field(EntryField field);
  bool read_stack();
  bool read_new_stack();
  bool read_frame(FrameId& frame);
  bool read_sizes(SizesId& sizes);
  bool read_dtypes(DtypesId& dtypes);
  bool read_group_of_entry();
  bool read_state();
  bool read_number(std::int64_t Entry::*number);
  bool read_duration();
  bool read_text_id(TextId& id);
  TextId intern(Remembered& text) {
    if (text.id == Remembered::kNotInterned)
      text.id = dump_.tables.add_text(text.text).value;
    return {text.id};
  }

  RecorderCursor in_;
  MemberLists& lists_;
  Dump dump_;

  Entry entry_;
  Call call_;
  Thread thread_;
  bool has_group_ = false;
  EntryPatterns patterns_;
  std::vector<FrameId> stack_;
  std::vector<std::int64_t> sizes_;
  std::vector<TextId> dtypes_;
  std::vector<SeenStack> seen_ = std::vector<SeenStack>(kSeen);
  // Consecutive entries mostly have the same values.
  Thread last_thread_;
  ThreadId last_thread_id_;
  std::vector<std::int64_t> last_sizes_;
  SizesId last_sizes_id_;
  std::vector<TextId> last_dtypes_;
  DtypesId last_dtypes_id_;
};

std::optional<Dump> RecorderDumpReader::read() && {
  constexpr unsigned char kProtocol = 2;
  unsigned char version = 0;
  if (!in_.take(Opcode::kProto) || !in_.read_version(version) ||
      version != kProtocol || !read_root() || !in_.take(Opcode::kStop))
    return std::nullopt;
  dump_.entries.shrink();
  return std::move(dump_);
}

bool RecorderDumpReader::read_text_id(TextId& id) {
  if (in_.take(Opcode::kNone)) {
    id = {};
    return true;
  }
  Remembered* const text = in_.read_text();
  if (text == nullptr)
    return false;
  id = intern(*text);
  return true;
}

// Reads a number that is different in each entry.
bool RecorderDumpReader::read_number(std::int64_t Entry::*number) {
  const unsigned char* const place = in_.place();
  const bool good = in_.read_integer(entry_.*number, 0);
  patterns_.note(place, in_, number);
  return good;
}

bool RecorderDumpReader::read_duration() {
  const unsigned char* const place = in_.place();
  const bool good = in_.read_duration(entry_.duration_ms);
  patterns_.note(place, in_, nullptr);
  return good;
}

bool RecorderDumpReader::read_root() {
  if (!in_.take(Opcode::kEmptyDict) || !in_.take(Opcode::kMark))
    return false;
  bool is_dump = false;
  while (!in_.take(Opcode::kSetItems)) {
    const Remembered* const key = in_.read_text();
    if (key == nullptr)
      return false;
    const std::string_view name = key->text;
    bool good = false;
    if (name == "version")
      good = read_text_id(dump_.version);
    else if (name == "nccl_version" || name == "comm_lib_version")
      good = read_text_id(dump_.library);
    else if (name == "pg_config")
      good = is_dump = read_groups();
    else if (name == "pg_status")
      good = read_statuses();
    else if (name == "entries")
      good = is_dump = read_entries();
    if (!good)
      return false;
  }
  return is_dump && in_.remember({});
}

bool RecorderDumpReader::read_groups() {
  if (!in_.take(Opcode::kEmptyDict) || !in_.take(Opcode::kMark))
    return false;
  while (!in_.take(Opcode::kSetItems)) {
    GroupConfig group;
    Remembered* const key = in_.read_text();
    if (key == nullptr)
      return false;
    group.name = intern(*key);
    if (!in_.take(Opcode::kEmptyDict) || !in_.take(Opcode::kMark))
      return false;
    for (std::size_t i = 0; !in_.take(Opcode::kSetItems); ++i) {
      const Remembered* const field = in_.read_text();
      if (field == nullptr || i == kMostFields)
        return false;
      const std::string_view name = field->text;
      if (name == "ranks") {
        group.members = nullptr;
        if (in_.take(Opcode::kNone))
          continue;
        const Remembered* const ranks = in_.read_text();
        if (ranks == nullptr)
          return false;
        group.members = &lists_.find(ranks->text);
        continue;
      }
      TextId unknown;
      if (!read_text_id(name == "name"   ? group.name
                        : name == "desc" ? group.description
                                         : unknown))
        return false;
      if (unknown != TextId{})
        return false;  // dump_from_value() would ignore it
    }
    if (!in_.remember({}))
      return false;
    dump_.groups.push_back(group);
  }
  return in_.remember({});
}

bool RecorderDumpReader::read_statuses() {
  if (!in_.take(Opcode::kEmptyDict) || !in_.take(Opcode::kMark))
    return false;
  while (!in_.take(Opcode::kSetItems)) {
    const Remembered* const key = in_.read_text();
    if (key == nullptr)
      return false;
    GroupStatus status = {.local_group = -1};
    const char* const last = key->text.data() + key->text.size();
    std::int64_t group = 0;
    const auto [end, error] = std::from_chars(key->text.data(), last, group);
    if (error == std::errc() && end == last)
      status.local_group = group;
    if (!in_.take(Opcode::kEmptyDict) || !in_.take(Opcode::kMark))
      return false;
    for (std::size_t i = 0; !in_.take(Opcode::kSetItems); ++i) {
      const Remembered* const field = in_.read_text();
      if (field == nullptr || i == kMostFields)
        return false;
      const std::string_view name = field->text;
      std::int64_t unknown = 0;
      if (!in_.read_integer(
              name == "last_enqueued_collective"    ? status.last_enqueued
              : name == "last_started_collective"   ? status.last_started
              : name == "last_completed_collective" ? status.last_completed
                                                    : unknown,
              -1))
        return false;
    }
    if (!in_.remember({}))
      return false;
    dump_.statuses.push_back(status);
  }
  return in_.remember({});
}

bool RecorderDumpReader::read_entries() {
  if (!in_.take(Opcode::kEmptyList) || !in_.take(Opcode::kMark))
    return false;
  while (!in_.take(Opcode::kAppends)) {
    if (!patterns_.read(in_, entry_)) {
      patterns_.begin(in_);
      if (!read_entry())
        return false;
      patterns_.end(in_, entry_);
    }
    dump_.entries.push_back(entry_);
  }
  return in_.remember({});
}

bool RecorderDumpReader::read_entry() {
  if (!in_.take(Opcode::kEmptyDict) || !in_.take(Opcode::kMark))
    return false;
  entry_ = {};
  call_ = {};
  thread_ = {};
  has_group_ = false;
  for (std::size_t i = 0; !in_.take(Opcode::kSetItems); ++i) {
    Remembered* const key = in_.read_text();
    if (key == nullptr || i == kMostFields)
      return false;
    if (key->field == Remembered::kNotLookedUp)
      key->field = static_cast<std::uint8_t>(entry_field(key->text));
    if (!read_field(static_cast<EntryField>(key->field)))
      return false;
  }
  if (!in_.remember({}))
    return false;
  if (!has_group_)
    call_.group_name = dump_.tables.add_text(std::to_string(call_.local_group));
  entry_.call = dump_.tables.add_call(call_);
  if (thread_.name != TextId{} || thread_.id != TextId{}) {
    if (thread_ != last_thread_) {
      last_thread_ = thread_;
      last_thread_id_ = dump_.tables.add_thread(thread_);
    }
    entry_.thread = last_thread_id_;
  }
  return true;
}

bool RecorderDumpReader::read_field(EntryField field) {
  using enum EntryField;
  switch (field) {
    case kFrames:
      return read_stack();
    case kRecordId:
      return read_number(&Entry::record_id);
    case kLocalGroup:
      return in_.read_integer(call_.local_group, 0);
    case kProcessGroup:
      return read_group_of_entry();
    case kThreadName:
      return read_text_id(thread_.name);
    case kThreadId:
      return read_text_id(thread_.id);
    case kSequence:
      return read_number(&Entry::sequence);
    case kP2pSequence:
      return read_number(&Entry::p2p_sequence);
    case kOperationId:
      return read_number(&Entry::operation_id);
    case kName:
      return read_text_id(call_.name);
    case kCreated:
      return read_number(&Entry::created);
    case kDuration:
      return read_duration();
    case kInputSizes:
      return read_sizes(call_.inputs);
    case kInputDtypes:
      return read_dtypes(call_.input_dtypes);
    case kOutputSizes:
      return read_sizes(call_.outputs);
    case kOutputDtypes:
      return read_dtypes(call_.output_dtypes);
    case kState:
      return read_state();
    case kStarted:
      return read_number(&Entry::started);
    case kCompleted:
      return read_number(&Entry::completed);
    case kRetired:
      return in_.read_flag(entry_.retired);
    case kTimeout:
      return in_.read_integer(call_.timeout_ms, 0);
    case kPointToPoint: {
      bool flag = false;
      const bool good = in_.read_flag(flag);
      call_.point_to_point = flag ? 1 : 0;
      return good;
    }
    case kOldSequence:
    case kUnknown:
      return false;
  }
  return false;
}

bool RecorderDumpReader::read_stack() {
  // The innermost frames, which come first, differ most.
  SeenStack& seen =
      seen_[in_.has(10) ? in_.load<std::uint64_t>(2) * 0x9e3779b97f4a7c15 >> 56
                        : 0];
  if (seen.size != 0 && in_.has(seen.size) &&
      std::memcmp(in_.place(), seen.begin, seen.size) == 0) {
    in_.skip(seen.size);
    entry_.stack = seen.stack;
    return true;
  }
  const unsigned char* const begin = in_.place();
  const std::size_t before = in_.memo_size();
  if (!read_new_stack())
    return false;
  if (in_.memo_size() == before)
    seen = {begin, static_cast<std::size_t>(in_.place() - begin), entry_.stack};
  return true;
}

bool RecorderDumpReader::read_new_stack() {
  if (!in_.take(Opcode::kEmptyList) || !in_.take(Opcode::kMark))
    return false;
  stack_.clear();
  while (!in_.take(Opcode::kAppends)) {
    if (stack_.size() == kMostFrames)
      return false;
    FrameId frame;
    if (in_.at(Opcode::kEmptyDict)) {
      if (!read_frame(frame))
        return false;
    } else {
      const Remembered* const found = in_.recall();
      if (found == nullptr || found->kind != Remembered::kFrame)
        return false;
      frame = {found->id};
    }
    stack_.push_back(frame);
  }
  entry_.stack = dump_.tables.add_stack(stack_);
  return in_.remember({});
}

bool RecorderDumpReader::read_frame(FrameId& frame) {
  if (!in_.take(Opcode::kEmptyDict) || !in_.take(Opcode::kMark))
    return false;
  Frame read;
  while (!in_.take(Opcode::kSetItems)) {
    const Remembered* const key = in_.read_text();
    if (key == nullptr)
      return false;
    const std::string_view name = key->text;
    if (!(name == "name"       ? read_text_id(read.function)
          : name == "filename" ? read_text_id(read.file)
          : name == "line"     ? in_.read_integer(read.line, 0)
                               : false))
      return false;
  }
  frame = dump_.tables.add_frame(read);
  return in_.remember(
      {.kind = Remembered::kFrame, .id = frame.value, .text = {}});
}

bool RecorderDumpReader::read_sizes(SizesId& sizes) {
  if (!in_.take(Opcode::kEmptyList) || !in_.take(Opcode::kMark))
    return false;
  sizes_.clear();
  while (!in_.take(Opcode::kAppends)) {
    if (!in_.take(Opcode::kEmptyList) || !in_.take(Opcode::kMark))
      return false;
    const std::size_t place = sizes_.size();
    sizes_.push_back(0);
    while (!in_.take(Opcode::kAppends)) {
      std::int64_t size = 0;
      if (sizes_[place] == kMostDimensions || !in_.read_integer(size, -1))
        return false;
      sizes_.push_back(size);
      ++sizes_[place];
    }
    if (!in_.remember({}))
      return false;
  }
  if (sizes_ != last_sizes_) {
    last_sizes_id_ = dump_.tables.add_sizes(sizes_);
    std::swap(sizes_, last_sizes_);
  }
  sizes = last_sizes_id_;
  return in_.remember({});
}

bool RecorderDumpReader::read_dtypes(DtypesId& dtypes) {
  if (!in_.take(Opcode::kEmptyList) || !in_.take(Opcode::kMark))
    return false;
  dtypes_.clear();
  while (!in_.take(Opcode::kAppends)) {
    TextId name;
    if (!read_text_id(name))
      return false;
    dtypes_.push_back(name);
  }
  if (dtypes_ != last_dtypes_) {
    last_dtypes_id_ = dump_.tables.add_dtypes(dtypes_);
    std::swap(dtypes_, last_dtypes_);
  }
  dtypes = last_dtypes_id_;
  return in_.remember({});
}

bool RecorderDumpReader::read_group_of_entry() {
  has_group_ = true;
  return read_text_id(call_.group_name) &&
         read_text_id(call_.group_description) && in_.take(Opcode::kTuple2) &&
         in_.remember({});
}

bool RecorderDumpReader::read_state() {
  Remembered* const text = in_.read_text();
  if (text == nullptr)
    return false;
  if (text->state == Remembered::kNotLookedUp) {
    State state = State::kUnknown;
    for (const State known :
         {State::kCompleted, State::kScheduled, State::kStarted})
      if (text->text == state_name(known))
        state = known;
    text->state = static_cast<std::uint8_t>(state);
  }
  entry_.state = static_cast<State>(text->state);
  return true;
}

}  // namespace

std::optional<Dump> read_recorder_dump(Bytes bytes, MemberLists& lists) {
  return RecorderDumpReader(bytes, lists).read();
}

}  // namespace postflight
