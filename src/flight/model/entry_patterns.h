#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flight/model/entry.h"
#include "flight/model/recorder_cursor.h"

namespace postflight {

// The bytes of entries that were read before. A training loop repeats itself,
// so most entries equal an earlier one except for their numbers and times. It
// is enough to compare the bytes between those; call, stack, thread and state
// are then known.
//
// As the memo only grows, the same bytes mean the same again if reading them
// did not add to the memo. Only such entries are kept.
class EntryPatterns {
 public:
  EntryPatterns();

  // Reads the next entry if it matches one of the patterns that followed the
  // previous one before; otherwise does not move the cursor.
  bool read(RecorderCursor& in, Entry& entry);

  // Records an entry that is read in full: its beginning, the place of each of
  // its numbers, and its end.
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

  // Constant bytes, and the number that follows them.
  struct Part {
    const unsigned char* bytes = nullptr;
    std::size_t size = 0;
    std::int64_t Entry::*number = nullptr;
  };
  struct Pattern {
    std::array<Part, kMostNumbers + 1> parts;  // the last one has no number
    std::size_t numbers = 0;
    Entry entry;
    // The patterns that came after this one, the latest first.
    std::array<std::uint16_t, kFollowers> followers = {kNone, kNone, kNone,
                                                       kNone};
  };

  static bool read_as(const Pattern& pattern, RecorderCursor& in, Entry& entry);
  void follow(std::uint16_t next);

  std::vector<Pattern> patterns_;
  std::vector<std::uint16_t> places_;  // by the hash of meaning()
  std::uint16_t last_ = kNone;

  Pattern learned_;
  const unsigned char* part_begin_ = nullptr;
  std::size_t memo_before_ = 0;
  bool too_many_ = false;
};

}  // namespace postflight
