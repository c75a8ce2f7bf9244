#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <postflight/postflight.h>

#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/reader.h"
#include "checkpoint/verification/safety.h"
#include "library/context.h"

namespace postflight {

// A checkpoint as its handles and what was made with them share it: callers
// free them in any order.
struct SharedCheckpoint {
  SharedCheckpoint(std::shared_ptr<SharedContext> with, Checkpoint opened,
                   std::string path);
  SharedCheckpoint(const SharedCheckpoint&) = delete;
  SharedCheckpoint& operator=(const SharedCheckpoint&) = delete;

  ~SharedCheckpoint();

  // The tree as C sees it, made when it is first asked for.
  const std::vector<postflight_node>& nodes() const;
  Result<const Tensor*> tensor(std::uint32_t index) const;
  TensorReader reader(std::uint32_t flags) const;
  // The bytes of a tensor in a mapped file or in memory.
  Result<Bytes> view(std::uint32_t index) const;

  std::shared_ptr<SharedContext> context;
  Checkpoint checkpoint;
  std::string name;  // as it was given, for answers
  // Judged when it is opened: the file may be truncated later.
  SafetyVerdict safety;

 private:
  struct Nodes {
    std::vector<postflight_node> nodes = {};
    std::deque<std::string> texts = {};  // that nodes point to
  };

  // Without a lock, which a forked child might find locked.
  mutable std::atomic<const Nodes*> nodes_ = nullptr;
};

}  // namespace postflight

struct postflight_checkpoint {
  std::shared_ptr<const postflight::SharedCheckpoint> shared;
};
