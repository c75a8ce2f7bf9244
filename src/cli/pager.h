#pragma once

#include <memory>
#include <string_view>

#include <sys/types.h>

#include "base/descriptor.h"
#include "base/environment.h"
#include "base/error.h"

namespace postflight {

// Another program that shows a long text: what $PAGER says, else less, which
// ends at once if the text fits on the screen. Until it has ended, an interrupt
// from the keyboard is for it alone.
class Pager {
 public:
  // Nothing if $PAGER is "cat" or empty, or if the program can't be started.
  static std::unique_ptr<Pager> start(const Environment& environment);

  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;
  // Waits until the user has read enough.
  ~Pager();

  // False once the pager has gone: the rest of the text is not wanted.
  bool write(std::string_view text);

 private:
  Pager(Descriptor input, pid_t process);

  Descriptor input_;
  pid_t process_;
  void (*previous_)(int);  // what an interrupt did before
};

}  // namespace postflight
