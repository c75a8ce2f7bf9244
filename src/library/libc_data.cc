// The objects of the library are those of the program, whose compiler takes
// variables of the C library to be in the program itself. These stand for them.

#include <cstdio>

#include <dlfcn.h>

// Whether reference counts may do without atomic operations: never, as the
// program that loads the library may start threads later.
extern "C" {
char postflight_single_threaded __asm__("__libc_single_threaded") = 0;

// libbzip2 writes to them when it finds a mistake in itself.
FILE* postflight_stdin __asm__("stdin") = nullptr;
FILE* postflight_stdout __asm__("stdout") = nullptr;
FILE* postflight_stderr __asm__("stderr") = nullptr;
}

namespace {

FILE* of_the_program(const char* name) {
  const auto* const found =
      static_cast<FILE* const*>(::dlsym(RTLD_DEFAULT, name));
  return found == nullptr ? nullptr : *found;
}

[[gnu::constructor]] void find_streams() {
  postflight_stdin = of_the_program("stdin");
  postflight_stdout = of_the_program("stdout");
  postflight_stderr = of_the_program("stderr");
}

}  // namespace
