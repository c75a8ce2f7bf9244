#pragma once

#include <array>
#include <functional>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace postflight {

// Something one process waits for and another lets happen.
class Gate {
 public:
  Gate() { static_cast<void>(::pipe(ends_.data()) == 0); }
  ~Gate() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() { static_cast<void>(::write(ends_[1], "x", 1) == 1); }
  // False if it can't be opened any more.
  bool wait() {
    char byte;
    return ::read(ends_[0], &byte, 1) == 1;
  }
  // To be called where open() is not, so that wait() sees the other side die.
  void only_wait() { ::close(std::exchange(ends_[1], -1)); }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

// A forked process that ends with what `body` returns.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body) : id_(::fork()) {
    if (id_ == 0)
      ::_exit(body());
  }

  pid_t id() const { return id_; }
  // The exit status, or 1000 and the number of the signal that ended it.
  int wait() const {
    int status = 0;
    ::waitpid(id_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  pid_t id_;
};

}  // namespace postflight
