#include <cstdio>
#include <new>

#include "base/interrupt.h"
#include "base/truncation_guard.h"
#include "cli/command.h"

int main(int argc, char** argv) {
  // Before any other thread starts, so that all inherit its signal mask.
  const postflight::Result<postflight::InterruptGuard> guard =
      postflight::InterruptGuard::start();
  // If it cannot be started, a file that shrinks ends the program.
  const postflight::Result<postflight::TruncationGuard> truncation =
      postflight::TruncationGuard::start();
  try {
    return postflight::run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("postflight: out of memory\n", stderr);
    return static_cast<int>(postflight::Exit::kCouldNotLook);
  }
}
