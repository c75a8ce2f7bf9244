#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/process/memory.h"
#include "profile/python/layout.h"

namespace postflight {

// A frame as it lies in memory.
struct RawFrame {
  std::uint64_t frame = 0;
  std::uint64_t code = 0;
  // A pointer into the code, or an index where there are no such pointers.
  std::uint64_t instruction = 0;
  bool entry = false;  // C called it, so C frames stand before the one below

  bool same_place(const RawFrame& other) const {
    return frame == other.frame && code == other.code;
  }
};

enum class StackState : std::uint8_t {
  kWhole,
  kTorn,        // it kept changing; what is given are the outer frames that
                // did not
  kUnreadable,  // the thread has gone, or its memory made no sense
};

struct RawStack {
  std::vector<RawFrame> frames;  // the innermost first
  StackState state = StackState::kUnreadable;
  bool cut = false;  // deeper than was asked for: the outermost are missing
};

// Reads the Python stack of one thread while that thread runs.
//
// The frames lie one after the other in a few chunks of memory, so all chunks
// are copied in one system call and walked in the copy; frames elsewhere (those
// of generators, and all before 3.11) are asked for in the same call at the
// addresses where they last were. A copy takes microseconds in which calls
// return and others begin. Who knows that the thread stands still needs only
// one (see SharedProcessor); else a stack counts only when two copies in a row
// agree on it, which does not exclude that both are mixtures.
class PythonStackReader {
 public:
  // All have to outlive it. `thread` is the address of the thread's state.
  PythonStackReader(const Memory& memory, const PythonLayout& layout,
                    std::uint64_t thread, std::size_t most_frames);

  // The stack is valid until the next call.
  const RawStack& read();
  // Of a thread that does not run meanwhile.
  const RawStack& read_still();

 private:
  struct Region {
    std::uint64_t address;
    std::size_t size;
    std::size_t offset;  // in buffer_
    bool filled;
  };

  bool read_once(RawStack& stack);
  bool copy_regions(std::uint64_t cframe, std::uint64_t& top);
  bool refresh_chunks(std::uint64_t chunk);
  bool walk(std::uint64_t frame, RawStack& stack);
  // The bytes of the frame at `address`, from the copy or read now.
  const std::byte* frame_bytes(std::uint64_t address);
  void forget();

  const Memory& memory_;
  const PythonLayout& layout_;
  const std::uint64_t thread_;
  const std::size_t most_frames_;
  std::vector<Region> chunks_;     // the topmost first
  std::vector<Region> scattered_;  // frames outside, in the order last met
  std::size_t next_scattered_ = 0;
  bool steady_ = false;             // no call or return during the last copy
  std::vector<std::uint64_t> met_;  // scattered frames of this walk
  std::vector<std::byte> buffer_;
  std::vector<std::byte> scratch_;  // the frame that was not among them
  std::vector<MemoryPiece> pieces_;
  RawStack stack_;
  RawStack other_;
};

}  // namespace postflight
