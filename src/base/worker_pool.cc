#include "base/worker_pool.h"

#include "base/interruption.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include <sched.h>

namespace postflight {

namespace {

// More threads would only cost stacks.
constexpr std::size_t kMaxThreads = 1024;

std::size_t usable_processors() {
  cpu_set_t processors;
  // Fails on machines with more processors than a cpu_set_t has bits.
  if (::sched_getaffinity(0, sizeof(processors), &processors) == 0)
    return static_cast<std::size_t>(CPU_COUNT(&processors));
  return std::thread::hardware_concurrency();
}

// State shared by the workers and the consumer. The outcome of job i is in slot
// i % window, which is free again once job i has been consumed.
class Run {
 public:
  Run(std::size_t count, std::size_t window,
      const std::function<void(std::size_t)>& work)
      : count_(count), work_(work), slots_(window) {}

  void work_until_done() {
    std::unique_lock lock(mutex_);
    for (;;) {
      slot_free_.wait(lock, [&] {
        return stopped_ || next_ == count_ || next_ < consumed_ + slots_.size();
      });
      if (stopped_ || next_ == count_)
        return;
      const std::size_t index = next_++;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        work_(index);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      slots_[index % slots_.size()] = {.finished = true,
                                       .thrown = std::move(thrown)};
      if (index == consumed_)
        next_finished_.notify_one();
    }
  }

  // Waits for job `index`, the next to consume; rethrows what it threw.
  Result<> await(std::size_t index) {
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[index % slots_.size()];
    const auto finished = [&slot] { return slot.finished; };
    if (Interruption::current() == nullptr)
      next_finished_.wait(lock, finished);
    while (!next_finished_.wait_for(lock, Interruption::kPause, finished)) {
      lock.unlock();
      TRY(check_interruption());
      lock.lock();
    }
    if (slot.thrown)
      std::rethrow_exception(slot.thrown);
    lock.unlock();
    return check_interruption();
  }

  void consumed(std::size_t index) {
    const std::lock_guard lock(mutex_);
    slots_[index % slots_.size()] = {};
    consumed_ = index + 1;
    slot_free_.notify_one();
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    slot_free_.notify_all();
  }

 private:
  struct Slot {
    bool finished = false;
    std::exception_ptr thrown;
  };

  const std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::mutex mutex_;
  std::condition_variable slot_free_;
  std::condition_variable next_finished_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;      // the first job that is not started
  std::size_t consumed_ = 0;  // the first job that is not consumed
  bool stopped_ = false;
};

// Stops the workers before they are joined, on every path out of the caller.
class Workers {
 public:
  Workers(Run& run, std::size_t wanted) : run_(run) {
    threads_.reserve(wanted);
    try {
      while (threads_.size() < wanted)
        threads_.emplace_back([&run, call = Interruption::current()] {
          const InterruptionScope working(call);
          run.work_until_done();
        });
    } catch (const std::system_error&) {
      // Thread limit reached; the threads already running do the work.
    }
  }
  ~Workers() { run_.stop(); }

  bool none() const { return threads_.empty(); }

 private:
  Run& run_;
  std::vector<std::jthread> threads_;
};

}  // namespace

WorkerPool::WorkerPool(std::size_t threads)
    : threads_(std::clamp<std::size_t>(
          threads == 0 ? usable_processors() : threads, 1, kMaxThreads)) {}

Result<> WorkerPool::run(
    std::size_t count, std::size_t window,
    const std::function<void(std::size_t)>& work,
    const std::function<Result<>(std::size_t)>& consume) const {
  Run run(count, window, work);
  const Workers workers(run, std::min(threads_, count));
  for (std::size_t index = 0; index < count; ++index) {
    if (workers.none())
      work(index);
    else
      TRY(run.await(index));
    TRY(consume(index));
    run.consumed(index);
  }
  return {};
}

}  // namespace postflight
