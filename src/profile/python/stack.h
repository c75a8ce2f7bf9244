#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/process/memory.h"
#include "profile/python/layout.h"

namespace postflight {

// A frame as it is in memory.
struct RawFrame {
  std::uint64_t frame = 0;
  std::uint64_t code = 0;
  // A pointer into the code, or before 3.11 an index.
  std::uint64_t instruction = 0;
  bool entry = false;  // called by C: native frames follow it

  bool same_place(const RawFrame& other) const {
    return frame == other.frame && code == other.code;
  }
};

enum class StackState : std::uint8_t {
  kWhole,
  kTorn,        // it kept changing; has only the outer frames that did not
  kUnreadable,  // the thread has ended, or its memory was not valid
};

struct RawStack {
  std::vector<RawFrame> frames;  // the innermost first
  StackState state = StackState::kUnreadable;
  bool cut = false;  // truncated: the outermost frames are missing
};

// Whether the PyThreadState at `thread` runs Python code.
bool has_python_frames(const Memory& memory, const PythonLayout& layout,
                       std::uint64_t thread);

// Reads the Python stack of one thread while that thread runs.
//
// Frames are contiguous in a few chunks of memory, so all chunks are copied by
// one system call and walked in the copy. Frames elsewhere (those of
// generators, and all before 3.11) are copied by the same call from the
// addresses where they were last time. A copy takes microseconds, in which
// calls return and others begin. If the thread is known to stand still (see
// SharedProcessor), one copy is enough; otherwise two consecutive copies must
// agree, which does not prove that they are not both mixtures.
class PythonStackReader {
 public:
  // `memory` and `layout` must outlive it. `thread` is the address of the
  // PyThreadState.
  PythonStackReader(const Memory& memory, const PythonLayout& layout,
                    std::uint64_t thread, std::size_t most_frames);

  // The stack is valid until the next call.
  const RawStack& read();
  // For a thread that is known to stand still meanwhile.
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
  // The bytes of the frame at `address`, from the copy or else read now.
  const std::byte* frame_bytes(std::uint64_t address);
  void forget();

  const Memory& memory_;
  const PythonLayout& layout_;
  const std::uint64_t thread_;
  const std::size_t most_frames_;
  std::vector<Region> chunks_;     // the topmost first
  std::vector<Region> scattered_;  // other frames, in the order last met
  std::size_t next_scattered_ = 0;
  bool steady_ = false;             // no call or return during the last copy
  std::vector<std::uint64_t> met_;  // scattered frames of this walk
  std::vector<std::byte> buffer_;
  std::vector<std::byte> scratch_;  // a frame outside all regions
  std::vector<MemoryPiece> pieces_;
  RawStack stack_;
  RawStack other_;
};

}  // namespace postflight
