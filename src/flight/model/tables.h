#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "flight/model/id.h"
#include "flight/model/interner.h"

namespace postflight {

struct Frame {
  TextId function;
  TextId file;
  std::int64_t line = 0;

  bool operator==(const Frame&) const = default;
};

struct Thread {
  TextId name;
  TextId id;  // in decimal, as recorded

  bool operator==(const Thread&) const = default;
};

// The part of an entry that many entries share: all but its numbers and times.
struct Call {
  TextId name;        // "nccl:all_reduce", as recorded
  TextId group_name;  // as recorded with the entry
  TextId group_description;
  GroupId group;  // only in a Job
  SizesId inputs;
  SizesId outputs;
  DtypesId input_dtypes;
  DtypesId output_dtypes;
  std::int64_t local_group = 0;  // pg_id, which is valid on its rank only
  std::int64_t timeout_ms = 0;
  std::uint64_t point_to_point = 0;  // is_p2p
};

// Texts, stacks, shapes and the like, each stored once. Id 0 is always the
// empty one. The results of accessors are valid until the next addition.
class Tables {
 public:
  Tables();

  TextId add_text(std::string_view text);
  FrameId add_frame(const Frame& frame);
  StackId add_stack(std::span<const FrameId> frames);
  // For each tensor, the number of its dimensions and then the dimensions.
  SizesId add_sizes(std::span<const std::int64_t> encoded);
  DtypesId add_dtypes(std::span<const TextId> names);
  ThreadId add_thread(const Thread& thread);
  CallId add_call(const Call& call);

  std::string_view text(TextId id) const {
    const std::span<const char> found = texts_[id.value];
    return {found.data(), found.size()};
  }
  const Frame& frame(FrameId id) const { return frames_[id.value][0]; }
  // Innermost first.
  std::span<const FrameId> stack(StackId id) const { return stacks_[id.value]; }
  std::vector<std::span<const std::int64_t>> shapes(SizesId id) const;
  std::span<const std::int64_t> encoded_sizes(SizesId id) const {
    return sizes_[id.value];
  }
  std::span<const TextId> dtypes(DtypesId id) const {
    return dtypes_[id.value];
  }
  const Thread& thread(ThreadId id) const { return threads_[id.value][0]; }
  const Call& call(CallId id) const { return calls_[id.value][0]; }

  std::uint32_t text_count() const { return texts_.size(); }
  std::uint32_t frame_count() const { return frames_.size(); }
  std::uint32_t stack_count() const { return stacks_.size(); }
  std::uint32_t sizes_count() const { return sizes_.size(); }
  std::uint32_t dtypes_count() const { return dtypes_.size(); }
  std::uint32_t thread_count() const { return threads_.size(); }
  std::uint32_t call_count() const { return calls_.size(); }

  std::uint64_t memory_bytes() const;

  // The new ids of the contents of other tables, indexed by the old ones.
  struct Moved {
    std::vector<TextId> texts;
    std::vector<StackId> stacks;
    std::vector<ThreadId> threads;
    std::vector<CallId> calls;
  };
  // Copies the contents of `other`. `group_of` maps the name of a group, as an
  // id of `other`, to the job's group.
  Moved add_all(const Tables& other,
                const std::function<GroupId(TextId)>& group_of);

 private:
  Interner<char> texts_;
  Interner<Frame> frames_;
  Interner<FrameId> stacks_;
  Interner<std::int64_t> sizes_;
  Interner<TextId> dtypes_;
  Interner<Thread> threads_;
  Interner<Call> calls_;
};

}  // namespace postflight
