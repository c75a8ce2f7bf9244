// torch's pickler knows few opcodes and uses them in one way only: a text is
// spelled out once and memoised, a dictionary is its opcode, a mark, keys and
// values, and the opcode that puts them in. So a dump can be read as a grammar,
// without a stack:
//
//   dump  = PROTO 2 dict STOP            list = EMPTY_LIST MARK item* APPENDS
//   dict  = EMPTY_DICT MARK (text value)* SETITEMS         text = BINUNICODE
//   group = text text TUPLE2             number = BININT1 | ... | LONG1 8
//
// each followed by BINPUT where the pickler met it again, and then BINGET in
// its place. The memo's numbers count up from 0. Reading stops for good at the
// first byte that fits nowhere: only whole dumps count, and the tree of values
// knows all the rest.
#include "flight/recorder_dump.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "flight/entry_field.h"
#include "pickle/opcode.h"

namespace postflight {
namespace {

// As in the reader of values, which cuts where we give up.
constexpr std::size_t kMostFields = 256;
constexpr std::size_t kMostFrames = 4096;
constexpr std::size_t kMostDimensions = 64;

constexpr std::uint32_t kNotInterned = ~std::uint32_t{0};
constexpr std::uint8_t kNotLookedUp = 0xff;

// What a number of the memo stands for.
struct Remembered {
  enum Kind : std::uint8_t { kText, kFrame, kOther };

  Kind kind = kOther;
  std::uint8_t field = kNotLookedUp;  // EntryField, of a text used as key
  std::uint8_t state = kNotLookedUp;  // State, of a text used as one
  std::uint32_t id = kNotInterned;    // TextId or FrameId
  std::string_view text;
};

// A stack that was read before, byte by byte the same. The memo only grows, so
// the same bytes mean the same again if reading them did not add to it.
struct SeenStack {
  const unsigned char* begin = nullptr;
  std::size_t size = 0;
  StackId stack;
};
constexpr std::size_t kSeen = 256;

class RecorderDumpReader {
 public:
  explicit RecorderDumpReader(Bytes bytes)
      : next_(reinterpret_cast<const unsigned char*>(bytes.data())),
        end_(next_ + bytes.size()) {}

  std::optional<Dump> read() &&;

 private:
  // These are false where the bytes are something else.
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
  bool read_integer(std::int64_t& number, std::int64_t if_none);
  bool read_flag(bool& flag);
  bool read_duration();
  bool read_text_id(TextId& id);
  // Valid until the next text.
  Remembered* read_text() {
    Remembered* const found = recall();
    if (found == nullptr) [[unlikely]]
      return read_new_text();
    return found->kind == Remembered::kText ? found : nullptr;
  }
  Remembered* read_new_text();

  bool has(std::ptrdiff_t count) const { return end_ - next_ >= count; }
  bool at(Opcode opcode) const {
    return next_ != end_ && *next_ == static_cast<unsigned char>(opcode);
  }
  bool take(Opcode opcode) {
    if (!at(opcode))
      return false;
    ++next_;
    return true;
  }
  // An optional BINPUT of the memo's next number.
  bool remember(const Remembered& what) {
    if (!at(Opcode::kBinPut) && !at(Opcode::kLongBinPut)) [[likely]]
      return true;
    return put(what);
  }
  bool put(const Remembered& what);
  Remembered* recall() {
    std::size_t index = memo_.size();
    if (at(Opcode::kBinGet) && has(2)) [[likely]] {
      index = next_[1];
      next_ += 2;
    } else if (at(Opcode::kLongBinGet) && has(5)) {
      index = load<std::uint32_t>(1);
      next_ += 5;
    }
    return index < memo_.size() ? &memo_[index] : nullptr;
  }
  template <std::integral T>
  T load(std::ptrdiff_t offset) const {
    return load_little_endian<T>(
        reinterpret_cast<const std::byte*>(next_ + offset));
  }
  TextId intern(Remembered& text) {
    if (text.id == kNotInterned)
      text.id = dump_.tables.add_text(text.text).value;
    return {text.id};
  }

  const unsigned char* next_;
  const unsigned char* end_;
  Dump dump_;
  std::vector<Remembered> memo_;
  Remembered passing_;  // a text that was not memoised

  Entry entry_;
  Call call_;
  Thread thread_;
  bool has_group_ = false;
  std::vector<FrameId> stack_;
  std::vector<std::int64_t> sizes_;
  std::vector<TextId> dtypes_;
  std::vector<SeenStack> seen_ = std::vector<SeenStack>(kSeen);
  // What came last comes again more often than not.
  Thread last_thread_;
  ThreadId last_thread_id_;
  std::vector<std::int64_t> last_sizes_;
  SizesId last_sizes_id_;
  std::vector<TextId> last_dtypes_;
  DtypesId last_dtypes_id_;
};

std::optional<Dump> RecorderDumpReader::read() && {
  constexpr unsigned char kProtocol = 2;
  if (!take(Opcode::kProto) || !has(1) || *next_++ != kProtocol ||
      !read_root() || !take(Opcode::kStop))
    return std::nullopt;
  dump_.entries.shrink();
  return std::move(dump_);
}

bool RecorderDumpReader::put(const Remembered& what) {
  const std::size_t size = at(Opcode::kBinPut) ? 2 : 5;
  if (!has(static_cast<std::ptrdiff_t>(size)) ||
      (size == 2 ? next_[1] : load<std::uint32_t>(1)) != memo_.size())
    return false;
  next_ += size;
  memo_.push_back(what);
  return true;
}

Remembered* RecorderDumpReader::read_new_text() {
  if (!at(Opcode::kBinUnicode) || !has(5))
    return nullptr;
  const auto size = load<std::uint32_t>(1);
  next_ += 5;
  if (static_cast<std::uint64_t>(end_ - next_) < size)
    return nullptr;
  passing_ = {.kind = Remembered::kText,
              .text = {reinterpret_cast<const char*>(next_), size}};
  next_ += size;
  const std::size_t before = memo_.size();
  if (!remember(passing_))
    return nullptr;
  return memo_.size() > before ? &memo_.back() : &passing_;
}

bool RecorderDumpReader::read_text_id(TextId& id) {
  if (take(Opcode::kNone)) {
    id = {};
    return true;
  }
  Remembered* const text = read_text();
  if (text == nullptr)
    return false;
  id = intern(*text);
  return true;
}

bool RecorderDumpReader::read_integer(std::int64_t& number,
                                      std::int64_t if_none) {
  if (!has(1))
    return false;
  switch (static_cast<Opcode>(*next_)) {
    case Opcode::kBinInt1:
      if (!has(2))
        return false;
      number = next_[1];
      next_ += 2;
      return true;
    case Opcode::kBinInt2:
      if (!has(3))
        return false;
      number = load<std::uint16_t>(1);
      next_ += 3;
      return true;
    case Opcode::kBinInt:
      if (!has(5))
        return false;
      number = load<std::int32_t>(1);
      next_ += 5;
      return true;
    case Opcode::kLong1:
      if (!has(10) || next_[1] != 8)
        return false;
      number = load<std::int64_t>(2);
      next_ += 10;
      return true;
    case Opcode::kNone:
      number = if_none;
      ++next_;
      return true;
    default:
      return false;
  }
}

bool RecorderDumpReader::read_flag(bool& flag) {
  flag = at(Opcode::kNewTrue);
  return take(Opcode::kNewTrue) || take(Opcode::kNewFalse);
}

bool RecorderDumpReader::read_duration() {
  if (!at(Opcode::kBinFloat) || !has(9))
    return false;
  const double duration =
      std::bit_cast<double>(__builtin_bswap64(load<std::uint64_t>(1)));
  entry_.duration_ms = std::isfinite(duration) ? duration : -1;
  next_ += 9;
  return true;
}

bool RecorderDumpReader::read_root() {
  if (!take(Opcode::kEmptyDict) || !take(Opcode::kMark))
    return false;
  bool is_dump = false;
  while (!take(Opcode::kSetItems)) {
    const Remembered* const key = read_text();
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
  return is_dump && remember({});
}

bool RecorderDumpReader::read_groups() {
  if (!take(Opcode::kEmptyDict) || !take(Opcode::kMark))
    return false;
  while (!take(Opcode::kSetItems)) {
    GroupConfig group;
    Remembered* const key = read_text();
    if (key == nullptr)
      return false;
    group.name = intern(*key);
    if (!take(Opcode::kEmptyDict) || !take(Opcode::kMark))
      return false;
    for (std::size_t i = 0; !take(Opcode::kSetItems); ++i) {
      const Remembered* const field = read_text();
      if (field == nullptr || i == kMostFields)
        return false;
      const std::string_view name = field->text;
      TextId unknown;
      if (!read_text_id(name == "name"    ? group.name
                        : name == "desc"  ? group.description
                        : name == "ranks" ? group.ranks
                                          : unknown))
        return false;
      if (unknown != TextId{})
        return false;  // the other reader would not have kept it
    }
    if (!remember({}))
      return false;
    dump_.groups.push_back(group);
  }
  return remember({});
}

bool RecorderDumpReader::read_statuses() {
  if (!take(Opcode::kEmptyDict) || !take(Opcode::kMark))
    return false;
  while (!take(Opcode::kSetItems)) {
    const Remembered* const key = read_text();
    if (key == nullptr)
      return false;
    GroupStatus status = {.local_group = -1};
    const char* const last = key->text.data() + key->text.size();
    std::int64_t group = 0;
    const auto [end, error] = std::from_chars(key->text.data(), last, group);
    if (error == std::errc() && end == last)
      status.local_group = group;
    if (!take(Opcode::kEmptyDict) || !take(Opcode::kMark))
      return false;
    for (std::size_t i = 0; !take(Opcode::kSetItems); ++i) {
      const Remembered* const field = read_text();
      if (field == nullptr || i == kMostFields)
        return false;
      const std::string_view name = field->text;
      std::int64_t unknown = 0;
      if (!read_integer(
              name == "last_enqueued_collective"    ? status.last_enqueued
              : name == "last_started_collective"   ? status.last_started
              : name == "last_completed_collective" ? status.last_completed
                                                    : unknown,
              -1))
        return false;
    }
    if (!remember({}))
      return false;
    dump_.statuses.push_back(status);
  }
  return remember({});
}

bool RecorderDumpReader::read_entries() {
  if (!take(Opcode::kEmptyList) || !take(Opcode::kMark))
    return false;
  while (!take(Opcode::kAppends))
    if (!read_entry())
      return false;
  return remember({});
}

bool RecorderDumpReader::read_entry() {
  if (!take(Opcode::kEmptyDict) || !take(Opcode::kMark))
    return false;
  entry_ = {};
  call_ = {};
  thread_ = {};
  has_group_ = false;
  for (std::size_t i = 0; !take(Opcode::kSetItems); ++i) {
    Remembered* const key = read_text();
    if (key == nullptr || i == kMostFields)
      return false;
    if (key->field == kNotLookedUp)
      key->field = static_cast<std::uint8_t>(entry_field(key->text));
    if (!read_field(static_cast<EntryField>(key->field)))
      return false;
  }
  if (!remember({}))
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
  dump_.entries.push_back(entry_);
  return true;
}

bool RecorderDumpReader::read_field(EntryField field) {
  using enum EntryField;
  switch (field) {
    case kFrames:
      return read_stack();
    case kRecordId:
      return read_integer(entry_.record_id, 0);
    case kLocalGroup:
      return read_integer(call_.local_group, 0);
    case kProcessGroup:
      return read_group_of_entry();
    case kThreadName:
      return read_text_id(thread_.name);
    case kThreadId:
      return read_text_id(thread_.id);
    case kSequence:
      return read_integer(entry_.sequence, 0);
    case kP2pSequence:
      return read_integer(entry_.p2p_sequence, 0);
    case kOperationId:
      return read_integer(entry_.operation_id, 0);
    case kName:
      return read_text_id(call_.name);
    case kCreated:
      return read_integer(entry_.created, 0);
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
      return read_integer(entry_.started, 0);
    case kCompleted:
      return read_integer(entry_.completed, 0);
    case kRetired:
      return read_flag(entry_.retired);
    case kTimeout:
      return read_integer(call_.timeout_ms, 0);
    case kPointToPoint: {
      bool flag = false;
      const bool good = read_flag(flag);
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
  // Stacks differ in their innermost frames.
  SeenStack& seen =
      seen_[has(10) ? load<std::uint64_t>(2) * 0x9e3779b97f4a7c15 >> 56 : 0];
  if (seen.size != 0 && has(static_cast<std::ptrdiff_t>(seen.size)) &&
      std::memcmp(next_, seen.begin, seen.size) == 0) {
    next_ += seen.size;
    entry_.stack = seen.stack;
    return true;
  }
  const unsigned char* const begin = next_;
  const std::size_t before = memo_.size();
  if (!read_new_stack())
    return false;
  if (memo_.size() == before)
    seen = {begin, static_cast<std::size_t>(next_ - begin), entry_.stack};
  return true;
}

bool RecorderDumpReader::read_new_stack() {
  if (!take(Opcode::kEmptyList) || !take(Opcode::kMark))
    return false;
  stack_.clear();
  while (!take(Opcode::kAppends)) {
    if (stack_.size() == kMostFrames)
      return false;
    FrameId frame;
    if (at(Opcode::kEmptyDict)) {
      if (!read_frame(frame))
        return false;
    } else {
      const Remembered* const found = recall();
      if (found == nullptr || found->kind != Remembered::kFrame)
        return false;
      frame = {found->id};
    }
    stack_.push_back(frame);
  }
  entry_.stack = dump_.tables.add_stack(stack_);
  return remember({});
}

bool RecorderDumpReader::read_frame(FrameId& frame) {
  if (!take(Opcode::kEmptyDict) || !take(Opcode::kMark))
    return false;
  Frame read;
  while (!take(Opcode::kSetItems)) {
    const Remembered* const key = read_text();
    if (key == nullptr)
      return false;
    const std::string_view name = key->text;
    if (!(name == "name"       ? read_text_id(read.function)
          : name == "filename" ? read_text_id(read.file)
          : name == "line"     ? read_integer(read.line, 0)
                               : false))
      return false;
  }
  frame = dump_.tables.add_frame(read);
  return remember({.kind = Remembered::kFrame, .id = frame.value, .text = {}});
}

bool RecorderDumpReader::read_sizes(SizesId& sizes) {
  if (!take(Opcode::kEmptyList) || !take(Opcode::kMark))
    return false;
  sizes_.clear();
  while (!take(Opcode::kAppends)) {
    if (!take(Opcode::kEmptyList) || !take(Opcode::kMark))
      return false;
    const std::size_t place = sizes_.size();
    sizes_.push_back(0);
    while (!take(Opcode::kAppends)) {
      std::int64_t size = 0;
      if (sizes_[place] == kMostDimensions || !read_integer(size, -1))
        return false;
      sizes_.push_back(size);
      ++sizes_[place];
    }
    if (!remember({}))
      return false;
  }
  if (sizes_ != last_sizes_) {
    last_sizes_id_ = dump_.tables.add_sizes(sizes_);
    std::swap(sizes_, last_sizes_);
  }
  sizes = last_sizes_id_;
  return remember({});
}

bool RecorderDumpReader::read_dtypes(DtypesId& dtypes) {
  if (!take(Opcode::kEmptyList) || !take(Opcode::kMark))
    return false;
  dtypes_.clear();
  while (!take(Opcode::kAppends)) {
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
  return remember({});
}

bool RecorderDumpReader::read_group_of_entry() {
  has_group_ = true;
  return read_text_id(call_.group_name) &&
         read_text_id(call_.group_description) && take(Opcode::kTuple2) &&
         remember({});
}

bool RecorderDumpReader::read_state() {
  Remembered* const text = read_text();
  if (text == nullptr)
    return false;
  if (text->state == kNotLookedUp) {
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

std::optional<Dump> read_recorder_dump(Bytes bytes) {
  return RecorderDumpReader(bytes).read();
}

}  // namespace postflight
