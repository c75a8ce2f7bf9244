#include "profile/log/log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "profile/log/item.h"

namespace postflight {
namespace {

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
  Descriptor descriptor(::open(path.c_str(), flags, 0666));
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
    // Ranks begin at -1.
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
  number(flags);
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

}  // namespace postflight
