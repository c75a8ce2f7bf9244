#include "profile/log/log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace postflight {
namespace {

// The format, for the writer and the reader.
constexpr std::string_view kProfileLogMagic = "PFPROF\x02\n";
constexpr std::string_view kOldProfileLogMagic = "PFPROF\x01\n";

// In ns; sums over as many samples as Limits allows stay below 2^64.
constexpr std::uint64_t kMostSampleWeight = 100'000'000'000;

// Eleven days of CPU time of a thousand threads; sums of as many processes as
// there can be texts stay below 2^64.
constexpr std::uint64_t kMostProcessTime = 1'000'000'000'000'000;

enum class LogItem : std::uint8_t {
  kText = 1,
  kFrame = 2,
  kStack = 3,
  kPhase = 4,
  kThread = 5,
  kSample = 6,
  kNote = 7,
  kCounter = 8,
  kProcess = 9,
};

// Bits of a sample's flags.
constexpr unsigned kWaitingFlag = 1;
constexpr unsigned kTornFlag = 2;
constexpr unsigned kCutFlag = 4;
constexpr unsigned kUnreadableFlag = 8;
constexpr unsigned kOutsideFlag = 16;
constexpr unsigned kSystemFlag =
    32;  // a number follows: its time in the kernel
constexpr unsigned kGilFlag = 64;
constexpr unsigned kNoGilFlag = 128;
constexpr unsigned kInterpreterFlag = 256;
constexpr unsigned kLibraryFlag = 512;

constexpr std::uint32_t log_checksum(Bytes bytes) {
  std::uint32_t hash = 2166136261U;
  for (const std::byte byte : bytes)
    hash = (hash ^ std::to_integer<std::uint32_t>(byte)) * 16777619U;
  return hash;
}

Result<> write_all(int descriptor, std::string_view bytes,
                   std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return fail_errno(fmt::format("cannot write {}", name));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

void append_word(std::uint32_t value, std::string& to) {
  std::array<char, sizeof(value)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(value));
  to.append(bytes.data(), bytes.size());
}

}  // namespace

ProfileLogWriter::ProfileLogWriter(Descriptor descriptor, std::string name)
    : descriptor_(std::move(descriptor)), name_(std::move(name)) {}

Result<ProfileLogWriter> ProfileLogWriter::create(
    const std::filesystem::path& path, bool exclusive) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND |
                    (exclusive ? O_EXCL : O_TRUNC);
  // Opening a FIFO would wait for somebody to read it, and the file is read
  // again for the report.
  Descriptor descriptor(::open(path.c_str(), flags | O_NONBLOCK, 0666));
  struct stat status = {};
  const bool is_fifo = descriptor.is_open()
                           ? ::fstat(descriptor.number(), &status) == 0 &&
                                 S_ISFIFO(status.st_mode)
                           : errno == ENXIO;
  if (is_fifo)
    return fail(ErrorKind::kUsage,
                "cannot record to {}, which is a FIFO or a socket: give a file",
                path.native());
  if (!descriptor.is_open())
    return fail_errno(fmt::format("cannot create {}", path.native()));
  TRY(write_all(descriptor.number(), kProfileLogMagic, path.native()));
  return ProfileLogWriter(std::move(descriptor), path.native());
}

void ProfileLogWriter::number(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    block_ += static_cast<char>(value | 0x80);
  block_ += static_cast<char>(value);
}

void ProfileLogWriter::text(std::string_view text) {
  number(text.size());
  block_ += text;
}

void ProfileLogWriter::note(std::string_view key, std::string_view value) {
  block_ += static_cast<char>(LogItem::kNote);
  text(key);
  text(value);
}

void ProfileLogWriter::counter(std::string_view key, std::uint64_t value) {
  block_ += static_cast<char>(LogItem::kCounter);
  text(key);
  number(value);
}

void ProfileLogWriter::tables(const Profile& profile) {
  for (; texts_ < profile.texts.size(); ++texts_) {
    block_ += static_cast<char>(LogItem::kText);
    text(profile.texts[texts_]);
  }
  for (; frames_ < profile.frames.size(); ++frames_) {
    const ProfileFrame& frame = profile.frames[frames_];
    block_ += static_cast<char>(LogItem::kFrame);
    for (const std::uint64_t value : {static_cast<std::uint32_t>(frame.kind),
                                      frame.name, frame.file, frame.line})
      number(value);
  }
  for (; stacks_ < profile.stacks.size(); ++stacks_) {
    const StackNode& node = profile.stacks[stacks_];
    block_ += static_cast<char>(LogItem::kStack);
    number(node.parent);
    number(node.frame);
  }
  for (; phases_ < profile.phases.size(); ++phases_) {
    const ProfilePhase& phase = profile.phases[phases_];
    block_ += static_cast<char>(LogItem::kPhase);
    for (const std::uint32_t value : {phase.parent, phase.name, phase.frame_id})
      number(value);
  }
  for (; threads_ < profile.threads.size(); ++threads_) {
    const ProfileThread& thread = profile.threads[threads_];
    block_ += static_cast<char>(LogItem::kThread);
    // The lowest rank is -1: none.
    for (const std::uint32_t value :
         {static_cast<std::uint32_t>(thread.rank + 1),
          static_cast<std::uint32_t>(thread.pid),
          static_cast<std::uint32_t>(thread.tid), thread.process, thread.name})
      number(value);
  }
}

void ProfileLogWriter::sample(const ProfileSample& sample) {
  block_ += static_cast<char>(LogItem::kSample);
  number(sample.time_ns - last_time_);
  last_time_ = sample.time_ns;
  number(std::min(sample.weight_ns, kMostSampleWeight));
  number(sample.thread);
  number(sample.stack);
  number(sample.phase);
  unsigned flags = 0;
  flags |= sample.flags.waiting ? kWaitingFlag : 0U;
  flags |= sample.flags.torn ? kTornFlag : 0U;
  flags |= sample.flags.cut ? kCutFlag : 0U;
  flags |= sample.flags.unreadable ? kUnreadableFlag : 0U;
  flags |= sample.flags.outside ? kOutsideFlag : 0U;
  flags |= sample.system_ns != 0 ? kSystemFlag : 0U;
  flags |= sample.flags.gil ? kGilFlag : 0U;
  flags |= sample.flags.no_gil ? kNoGilFlag : 0U;
  flags |= sample.flags.interpreter ? kInterpreterFlag : 0U;
  flags |= sample.flags.library ? kLibraryFlag : 0U;
  number(flags);
  if (sample.system_ns != 0)
    number(std::min(sample.system_ns, kMostSampleWeight));
}

void ProfileLogWriter::process(const ProfileProcess& process) {
  block_ += static_cast<char>(LogItem::kProcess);
  number(static_cast<std::uint32_t>(process.rank + 1));
  number(static_cast<std::uint32_t>(process.pid));
  number(process.command);
  number(process.user_ns);
  number(process.system_ns);
  number(process.sampled_ns);
  number(process.why);
}

Result<> ProfileLogWriter::flush() {
  if (block_.empty())
    return {};
  std::string framed;
  framed.reserve(block_.size() + 8);
  append_word(static_cast<std::uint32_t>(block_.size()), framed);
  append_word(log_checksum(as_bytes(block_)), framed);
  framed += block_;
  block_.clear();
  return write_all(descriptor_.number(), framed, name_);
}

namespace {

// Reads one log. It has its own numbers, so each table maps them to those of
// the profile that everything is added to.
class LogReader {
 public:
  LogReader(const Limits& limits, ProfileBuilder& into)
      : limits_(limits), into_(into) {}

  Result<> block(Bytes items) {
    Cursor cursor(items);
    while (!cursor.at_end())
      TRY(item(cursor));
    return {};
  }

 private:
  static Result<std::uint64_t> number(Cursor& cursor) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = TRY(cursor.little_endian<std::uint8_t>());
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0)
        return value;
    }
    return fail(ErrorKind::kCorrupt, "unterminated number");
  }

  static Result<std::uint32_t> small(Cursor& cursor) {
    const std::uint64_t value = TRY(number(cursor));
    if (value > INT32_MAX)
      return fail(ErrorKind::kCorrupt, "number too large");
    return static_cast<std::uint32_t>(value);
  }

  // Reads a number of this log and maps it to that of the profile.
  static Result<std::uint32_t> entry(Cursor& cursor,
                                     const std::vector<std::uint32_t>& table) {
    return table[TRY(index(cursor, table))];
  }

  static Result<std::size_t> index(Cursor& cursor,
                                   const std::vector<std::uint32_t>& table) {
    const std::uint64_t value = TRY(number(cursor));
    if (value >= table.size())
      return fail(ErrorKind::kCorrupt, "index beyond its table");
    return value;
  }

  // Adds the depth of a child of `parent`.
  static Result<> deepen(std::vector<std::uint32_t>& depths, std::size_t parent,
                         std::uint32_t deepest) {
    if (depths[parent] >= deepest)
      return fail(ErrorKind::kRefused, "stack nested deeper than {}", deepest);
    depths.push_back(depths[parent] + 1);
    return {};
  }

  static Result<std::string_view> text(Cursor& cursor) {
    const std::uint64_t size = TRY(number(cursor));
    const Bytes bytes = TRY(cursor.take(size));
    return as_text(bytes);
  }

  Result<> item(Cursor& cursor) {
    const auto kind = TRY(cursor.little_endian<std::uint8_t>());
    switch (static_cast<LogItem>(kind)) {
      case LogItem::kText:
        texts_.push_back(into_.text(TRY(text(cursor))));
        return {};
      case LogItem::kFrame:
        return frame(cursor);
      case LogItem::kStack:
        return stack(cursor);
      case LogItem::kPhase:
        return phase(cursor);
      case LogItem::kThread:
        return thread(cursor);
      case LogItem::kSample:
        return sample(cursor);
      case LogItem::kNote: {
        const std::string_view key = TRY(text(cursor));
        const std::string_view value = TRY(text(cursor));
        into_.profile().notes.emplace(key, value);
        return {};
      }
      case LogItem::kCounter:
        return counter(cursor);
      case LogItem::kProcess:
        return process(cursor);
    }
    return fail(ErrorKind::kUnsupported,
                "unknown item kind {}; written by a newer postflight", kind);
  }

  Result<> frame(Cursor& cursor) {
    const std::uint32_t kind = TRY(small(cursor));
    if (kind > static_cast<std::uint32_t>(FrameKind::kMarker))
      return fail(ErrorKind::kCorrupt, "unknown frame kind {}", kind);
    const std::uint32_t name = TRY(entry(cursor, texts_));
    const std::uint32_t file = TRY(entry(cursor, texts_));
    const std::uint32_t line = TRY(small(cursor));
    frames_.push_back(
        into_.frame({static_cast<FrameKind>(kind), name, file, line}));
    return {};
  }

  Result<> stack(Cursor& cursor) {
    const std::size_t parent = TRY(index(cursor, stacks_));
    const std::uint32_t its_frame = TRY(entry(cursor, frames_));
    TRY(deepen(stack_depths_, parent, kDeepestStack));
    stacks_.push_back(into_.stack(stacks_[parent], its_frame));
    return {};
  }

  Result<> phase(Cursor& cursor) {
    const std::size_t parent = TRY(index(cursor, phases_));
    const std::uint32_t name = TRY(entry(cursor, texts_));
    const std::uint32_t frame_id = TRY(entry(cursor, texts_));
    TRY(deepen(phase_depths_, parent, kDeepestPhase));
    phases_.push_back(into_.phase({phases_[parent], name, frame_id}));
    return {};
  }

  Result<> thread(Cursor& cursor) {
    const auto rank = static_cast<std::int32_t>(TRY(small(cursor))) - 1;
    const auto pid = static_cast<pid_t>(TRY(small(cursor)));
    const auto tid = static_cast<pid_t>(TRY(small(cursor)));
    const std::uint32_t process = TRY(entry(cursor, texts_));
    const std::uint32_t name = TRY(entry(cursor, texts_));
    threads_.push_back(into_.thread({rank, pid, tid, process, name}));
    return {};
  }

  Result<> sample(Cursor& cursor) {
    std::vector<ProfileSample>& samples = into_.profile().samples;
    if (samples.size() >= limits_.max_profile_samples)
      return fail(ErrorKind::kRefused,
                  "more than {} samples (Limits::max_profile_samples)",
                  limits_.max_profile_samples);
    ProfileSample sample;
    const std::uint64_t passed = TRY(number(cursor));
    // Centuries in nanoseconds, which no clock gives, would wrap around.
    if (passed > INT64_MAX || time_ > INT64_MAX)
      return fail(ErrorKind::kCorrupt, "time too large");
    time_ += passed;
    sample.time_ns = time_;
    sample.weight_ns = TRY(number(cursor));
    if (sample.weight_ns > kMostSampleWeight)
      return fail(ErrorKind::kCorrupt, "sample weight too large");
    sample.thread = TRY(entry(cursor, threads_));
    sample.stack = TRY(entry(cursor, stacks_));
    sample.phase = TRY(entry(cursor, phases_));
    const std::uint64_t flags = TRY(number(cursor));
    sample.flags = {.waiting = (flags & kWaitingFlag) != 0,
                    .torn = (flags & kTornFlag) != 0,
                    .cut = (flags & kCutFlag) != 0,
                    .unreadable = (flags & kUnreadableFlag) != 0,
                    .outside = (flags & kOutsideFlag) != 0,
                    .gil = (flags & kGilFlag) != 0,
                    .no_gil = (flags & kNoGilFlag) != 0,
                    .interpreter = (flags & kInterpreterFlag) != 0,
                    .library = (flags & kLibraryFlag) != 0};
    if ((flags & kSystemFlag) != 0)
      sample.system_ns = TRY(number(cursor));
    if (sample.system_ns > sample.weight_ns)
      return fail(ErrorKind::kCorrupt, "time in the kernel too large");
    samples.push_back(sample);
    return {};
  }

  Result<> process(Cursor& cursor) {
    ProfileProcess process;
    process.rank = static_cast<std::int32_t>(TRY(small(cursor))) - 1;
    process.pid = static_cast<pid_t>(TRY(small(cursor)));
    process.command = TRY(entry(cursor, texts_));
    process.user_ns = TRY(number(cursor));
    process.system_ns = TRY(number(cursor));
    process.sampled_ns = TRY(number(cursor));
    for (const std::uint64_t time :
         {process.user_ns, process.system_ns, process.sampled_ns})
      if (time > kMostProcessTime)
        return fail(ErrorKind::kCorrupt, "process time too large");
    process.why = TRY(entry(cursor, texts_));
    into_.profile().processes.push_back(process);
    return {};
  }

  Result<> counter(Cursor& cursor) {
    const std::string_view key = TRY(text(cursor));
    const std::uint64_t value = TRY(number(cursor));
    // Absolute within a log; summed over several logs.
    std::uint64_t& last =
        counted_.try_emplace(std::string(key), 0).first->second;
    std::uint64_t& sum = into_.profile().counters[std::string(key)];
    sum += value - last;
    last = value;
    return {};
  }

  // No profiler writes deeper nesting, and walking it for every sample would
  // take too long.
  static constexpr std::uint32_t kDeepestStack = 10'000;
  static constexpr std::uint32_t kDeepestPhase = 100;

  const Limits& limits_;
  ProfileBuilder& into_;
  std::vector<std::uint32_t> texts_ = {0};
  std::vector<std::uint32_t> frames_;
  std::vector<std::uint32_t> stacks_ = {0};
  std::vector<std::uint32_t> phases_ = {0};
  std::vector<std::uint32_t> threads_;
  // The depth of each stack and phase.
  std::vector<std::uint32_t> stack_depths_ = {0};
  std::vector<std::uint32_t> phase_depths_ = {0};
  std::map<std::string, std::uint64_t> counted_;
  std::uint64_t time_ = 0;
};

Result<Bytes> next_block(Cursor& cursor, const Limits& limits) {
  const auto size = TRY(cursor.little_endian<std::uint32_t>());
  const auto checksum = TRY(cursor.little_endian<std::uint32_t>());
  if (size > limits.max_profile_block_bytes)
    return fail(ErrorKind::kRefused,
                "block of {} bytes (Limits::max_profile_block_bytes)", size);
  const Bytes items = TRY(cursor.take(size));
  if (log_checksum(items) != checksum)
    return fail(ErrorKind::kCorrupt, "block checksum mismatch");
  return items;
}

}  // namespace

Result<> read_profile_log(Bytes log, std::string_view where,
                          const Limits& limits, ProfileBuilder& into) {
  Cursor cursor(log);
  const auto known = [](std::string_view magic) {
    return magic == kProfileLogMagic || magic == kOldProfileLogMagic;
  };
  if (log.size() < kProfileLogMagic.size() ||
      !known(as_text(TRY(cursor.take(kProfileLogMagic.size())))))
    return fail(ErrorKind::kCorrupt,
                "not a profile; postflight profile -o FILE writes one");
  LogReader reader(limits, into);
  while (!cursor.at_end()) {
    const std::size_t start = cursor.offset();
    const std::size_t before = cursor.remaining();
    Result<Bytes> items = next_block(cursor, limits);
    const Result<> read =
        items ? reader.block(*items)
              : Result<>(tl::unexpected(std::move(items).error()));
    if (read)
      continue;
    into.profile().findings.push_back(
        {.kind = "damaged_profile",
         .severity = Severity::kWarning,
         .message = fmt::format(
             "the profile is damaged at byte {}; ignored the last {} bytes: {}",
             start, before, read.error().message()),
         .where = std::string(where)});
    break;
  }
  return {};
}

}  // namespace postflight
