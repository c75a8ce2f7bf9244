#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/temporary_folder.h"
#include "profile/agent/sample_ring.h"
#include "profile/engine/agent_ring.h"

namespace postflight {

// The engine's side of the file that agents share with it, see sample_ring.h.
// It is in memory (/dev/shm) where that is possible. Its name and a random
// token are known only to the processes that have inherited the environment of
// the launched program, so whoever claims a slot descends from it.
class AgentArena {
 public:
  // `native`: there will be copies of native stacks. The file is removed with
  // the object.
  static Result<AgentArena> create(std::chrono::nanoseconds interval,
                                   bool native);
  AgentArena(AgentArena&& other) noexcept;
  AgentArena& operator=(AgentArena&&) = delete;
  // Tells the agents that are still there to stop.
  ~AgentArena();

  // What the agent reads from the environment, before the path of its library.
  std::string setting() const;

  bool is_native() const { return ring_bytes_ == kNativeRingBytes; }

  // Makes more slots ready; call it regularly.
  void keep_ready();
  // Those since the last call.
  std::vector<AgentClaim> take_claims();
  // The ring of a claimed slot.
  Result<AgentRing> ring(std::uint32_t slot) const;
  // The slot may be claimed again, once its process has ended and its ring has
  // been drained.
  void release(std::uint32_t slot);

 private:
  explicit AgentArena(TemporaryFolder folder);
  ArenaHeader& header() const;
  std::size_t slot_bytes() const { return kRingDataOffset + ring_bytes_; }

  TemporaryFolder folder_;
  std::filesystem::path path_;
  Descriptor file_;
  std::byte* memory_ = nullptr;  // the header
  std::uint64_t ring_bytes_ = 0;
  std::uint32_t claims_ = 0;         // taken so far
  std::vector<std::uint32_t> seen_;  // the claim of each slot
};

}  // namespace postflight
