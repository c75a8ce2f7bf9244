#pragma once

#include "base/error.h"
#include "base/interruption.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace postflight {

// Runs independent jobs on several threads and delivers their results in order.
// The threads live for one call: the jobs are files and archives, compared to
// which starting a thread costs nothing.
class WorkerPool {
 public:
  // 0 threads means one for each processor this process may run on.
  explicit WorkerPool(std::size_t threads = 0);

  std::size_t threads() const { return threads_; }

  // Calls `work(index)` concurrently for each index below `count`, and
  // `consume(index, result)` on the calling thread, in order. To bound memory,
  // a job starts only while its index is less than twice the number of threads
  // ahead of the next one to consume.
  //
  // An error from `consume` is returned; running jobs are finished and no more
  // are started. What `work` throws (bad_alloc) is rethrown here, in order.
  // With one thread everything runs on the calling thread. If the call is
  // interrupted, see Interruption, that is an error, too.
  template <class Work, class Consume>
  Result<> map_ordered(std::size_t count, Work&& work,
                       Consume&& consume) const {
    using T = std::invoke_result_t<Work&, std::size_t>;
    if (threads_ == 1 || count <= 1) {
      for (std::size_t index = 0; index < count; ++index) {
        TRY(check_interruption());
        TRY(consume(index, work(index)));
      }
      return {};
    }
    const std::size_t window = std::min(count, 2 * threads_);
    std::vector<std::optional<T>> results(window);
    return run(
        count, window,
        [&](std::size_t index) {
          results[index % window].emplace(work(index));
        },
        [&](std::size_t index) -> Result<> {
          T result = *std::move(results[index % window]);
          results[index % window].reset();
          return consume(index, std::move(result));
        });
  }

 private:
  Result<> run(std::size_t count, std::size_t window,
               const std::function<void(std::size_t)>& work,
               const std::function<Result<>(std::size_t)>& consume) const;

  std::size_t threads_;
};

}  // namespace postflight
