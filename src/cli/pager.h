#pragma once

#include <memory>
#include <string_view>

#include <sys/types.h>

#include "base/descriptor.h"
#include "base/environment.h"
#include "base/error.h"

namespace postflight {

// Another program that shows a long text: $PAGER, else less, which exits at
// once if the text fits on the screen. While it runs, SIGINT is left to it.
class Pager {
 public:
  // nullptr if $PAGER is "cat" or empty, or the program cannot be started.
  static std::unique_ptr<Pager> start(const Environment& environment);

  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;
  // Waits until the user leaves it.
  ~Pager();

  // False once the pager has exited; the rest of the text is not needed.
  bool write(std::string_view text);

 private:
  Pager(Descriptor input, pid_t process);

  Descriptor input_;
  pid_t process_;
  void (*previous_)(int);  // the handler of SIGINT before
};

}  // namespace postflight
