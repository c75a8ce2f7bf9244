#include "checkpoint/writing/pipeline.h"

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace postflight {
namespace {

class Pieces {
 public:
  explicit Pieces(PieceRoom& slots) : slots_(slots) {}

  // False if nobody wants more.
  bool put(Bytes piece) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return filled_ < kRoom || abandoned_; });
    if (abandoned_)
      return false;
    std::vector<std::byte>& slot = slots_[(first_ + filled_) % kRoom];
    lock.unlock();  // a slot that is not filled is the producer's
    slot.assign(piece.begin(), piece.end());
    lock.lock();
    ++filled_;
    changed_.notify_all();
    return true;
  }

  // nullptr at the end. Valid until release().
  const std::vector<std::byte>* take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return filled_ > 0 || ended_; });
    return filled_ == 0 ? nullptr : &slots_[first_];
  }

  void release() {
    const std::scoped_lock lock(mutex_);
    first_ = (first_ + 1) % kRoom;
    --filled_;
    changed_.notify_all();
  }

  void end() {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  void abandon() {
    const std::scoped_lock lock(mutex_);
    abandoned_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr std::size_t kRoom = std::tuple_size_v<PieceRoom>;
  std::mutex mutex_;
  std::condition_variable changed_;
  PieceRoom& slots_;
  std::size_t first_ = 0;
  std::size_t filled_ = 0;
  bool ended_ = false;
  bool abandoned_ = false;
};

}  // namespace

Result<> overlap(const std::function<Result<>(const PieceSink& sink)>& produce,
                 const PieceSink& consume, PieceRoom& room) {
  Pieces pieces(room);
  Result<> produced;
  Result<> consumed;
  {
    const std::jthread producer([&] {
      produced = produce([&pieces](Bytes piece) -> Result<> {
        if (!pieces.put(piece))
          return fail(ErrorKind::kIo, "the output could not be written");
        return {};
      });
      pieces.end();
    });
    while (const std::vector<std::byte>* const piece = pieces.take()) {
      consumed = consume(*piece);
      pieces.release();
      if (!consumed) {
        pieces.abandon();
        break;
      }
    }
  }
  TRY(std::move(consumed));
  return produced;
}

}  // namespace postflight
