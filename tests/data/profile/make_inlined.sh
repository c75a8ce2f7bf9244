#!/bin/sh
# Makes inlined.so and, with compressed debug information, inlined_compressed.so:
# outer() holds middle(), which holds inner(). The address of
# the multiplication in inner() is the symbol `place`.
set -eu
cd "$(dirname "$0")"
cat > inlined.c <<'END'
static inline __attribute__((always_inline)) int inner(int x) {
  __asm__ volatile(".global place\nplace: imull %0, %0" : "+r"(x));
  return x;
}
static inline __attribute__((always_inline)) int middle(int x) {
  return inner(x + 1) + 1;
}
int outer(int x) { return middle(x) * 3; }
int alone(int x) { return x * 5; }
END
make_library() {
  gcc "$2" -g -O1 -shared -fPIC -nostdlib -Wl,--build-id=none \
    -ffile-prefix-map="$PWD"=. -o "$1" inlined.c
}
make_library inlined.so -gz=none
make_library inlined_compressed.so -gz=zlib
rm inlined.c
