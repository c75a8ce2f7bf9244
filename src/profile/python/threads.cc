#include "profile/python/threads.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/bytes.h"

namespace postflight {
namespace {

constexpr std::size_t kMostInterpreters = 1'000;
constexpr std::size_t kMostThreads = 100'000;
// Where glibc's structure behind a pthread_t holds the kernel's number of the
// thread; 720 since 2.10, on x86-64.
constexpr std::uint64_t kTidInPthread = 720;

std::optional<pid_t> tid_of(const Memory& memory, const PythonLayout& layout,
                            const std::byte* state) {
  if (layout.thread.native_thread_id)
    return static_cast<pid_t>(load_little_endian<std::uint64_t>(
        state + *layout.thread.native_thread_id));
  const auto pthread =
      load_little_endian<std::uint64_t>(state + layout.thread.thread_id);
  return memory.load<pid_t>(pthread + kTidInPthread);
}

}  // namespace

std::vector<PythonThread> python_threads(const Memory& memory,
                                         const PythonRuntime& runtime) {
  const PythonLayout& layout = runtime.layout;
  std::vector<PythonThread> threads;
  auto interpreter =
      memory.load<std::uint64_t>(runtime.address + layout.runtime.interpreters);
  const std::size_t size =
      std::max({layout.thread.next + 8, layout.thread.thread_id + 8,
                layout.thread.native_thread_id.value_or(0) + 8});
  std::array<std::byte, kThreadBytes> state;
  if (size > state.size())
    return threads;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < kMostInterpreters && interpreter && *interpreter;
       ++i) {
    auto thread =
        memory.load<std::uint64_t>(*interpreter + layout.interpreter.threads);
    for (; thread && *thread != 0 && seen < kMostThreads; ++seen) {
      if (!memory.read(*thread, std::span(state).first(size)))
        break;
      if (const auto tid = tid_of(memory, layout, state.data()))
        threads.push_back({*thread, *tid});
      thread =
          load_little_endian<std::uint64_t>(state.data() + layout.thread.next);
    }
    interpreter =
        memory.load<std::uint64_t>(*interpreter + layout.interpreter.next);
  }
  return threads;
}

}  // namespace postflight
