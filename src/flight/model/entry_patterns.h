#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flight/model/entry.h"
#include "flight/model/recorder_cursor.h"

namespace postflight {

// The entries of a dump that were read before, as bytes. A training loop does
// the same things over and over, so most entries equal an earlier one but for
// their numbers and times: the bytes between those are compared, and what they
// mean (call, stack, thread, state) is known.
//
// The memo only grows, so the same bytes mean the same again if reading them
// did not add to it; only such entries are kept.
class EntryPatterns {
 public:
  EntryPatterns();

  // Reads the next entry if it is like one that is likely to come here; leaves
  // the cursor where it was if not.
  bool read(RecorderCursor& in, Entry& entry);

  // What is read in full is learned: where it begins, where each of its
  // numbers was, and where it ends.
  void begin(const RecorderCursor& in);
  // `number` is nullptr for the duration.
  void note(const unsigned char* place, const RecorderCursor& in,
            std::int64_t Entry::*number);
  void end(const RecorderCursor& in, const Entry& entry);

 private:
  static constexpr std::size_t kMostNumbers = 8;
  static constexpr std::size_t kMostPatterns = 256;
  static constexpr std::size_t kFollowers = 4;
  static constexpr std::uint16_t kNone = 0xffff;

  // Bytes that stay, and the number behind them.
  struct Part {
    const unsigned char* bytes = nullptr;
    std::size_t size = 0;
    std::int64_t Entry::*number = nullptr;
  };
  struct Pattern {
    std::array<Part, kMostNumbers + 1> parts;  // the last has no number
    std::size_t numbers = 0;
    Entry entry;
    // Which patterns came after this one, the latest first.
    std::array<std::uint16_t, kFollowers> followers = {kNone, kNone, kNone,
                                                       kNone};
  };

  static bool read_as(const Pattern& pattern, RecorderCursor& in, Entry& entry);
  void follow(std::uint16_t next);

  std::vector<Pattern> patterns_;
  std::vector<std::uint16_t> places_;  // by the hash of what they mean
  std::uint16_t last_ = kNone;

  Pattern learned_;
  const unsigned char* part_begin_ = nullptr;
  std::size_t memo_before_ = 0;
  bool too_many_ = false;
};

}  // namespace postflight
