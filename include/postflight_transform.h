/* The interface of plug-ins that add stream transforms to postflight.
 *
 * A plug-in is a shared library, in C or any language with a C ABI, that
 * exports one function, postflight_transforms. It is loaded with
 *
 *     postflight stream decode --plugin ./xor15.so --with stream.xor15@corpus/1
 *
 * examples/xor15_transform.c is a complete example. The interface is only ever
 * extended: a library built with this header keeps working.
 */

#ifndef POSTFLIGHT_TRANSFORM_H
#define POSTFLIGHT_TRANSFORM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POSTFLIGHT_TRANSFORM_ABI 1

enum postflight_direction {
  POSTFLIGHT_ENCODE = 0, /* on the way to the disk */
  POSTFLIGHT_DECODE = 1, /* on the way back */
};

enum postflight_stage {
  POSTFLIGHT_MORE = 0,  /* there may be more input */
  POSTFLIGHT_FLUSH = 1, /* there may be, but write buffered output */
  POSTFLIGHT_LAST = 2,  /* nothing follows this input */
};

enum postflight_state {
  POSTFLIGHT_NEEDS_INPUT = 0, /* all input was used */
  POSTFLIGHT_NEEDS_ROOM = 1,  /* there is more output */
  POSTFLIGHT_DONE = 2,        /* after LAST: all output was written */
  POSTFLIGHT_FAILED = 3,      /* message() returns the reason */
};

/* Each call of step() advances `in` and `out` by the number of bytes consumed
 * and written, and reduces both sizes accordingly. It must not write to the
 * input. */
struct postflight_buffers {
  const unsigned char* in;
  size_t in_size;
  unsigned char* out;
  size_t out_size; /* not 0 when step() is called */
};

struct postflight_transform {
  uint32_t abi;        /* POSTFLIGHT_TRANSFORM_ABI */
  uint32_t version;    /* the major version in descriptors: 1 in "name/1" */
  const char* name;    /* with a domain of your own: "stream.xor15@corpus" */
  const char* summary; /* one line, for `postflight stream list` */
  uint32_t flags;      /* POSTFLIGHT_KEEPS_PLACES or 0 */

  /* Begins a stream; NULL on failure. `parameters` is the text after the colon,
   * e.g. "level=9,threads=2", or "". */
  void* (*open)(enum postflight_direction direction, const char* parameters);
  enum postflight_state (*step)(void* stream,
                                struct postflight_buffers* buffers,
                                enum postflight_stage stage);
  /* Why the stream failed, or with NULL, why open() failed. May return NULL. */
  const char* (*message)(void* stream);
  void (*close)(void* stream);
};

/* Each output byte depends only on the input byte at the same offset. */
#define POSTFLIGHT_KEEPS_PLACES 1u

/* Returns an array of `*count` transforms that is valid as long as the library
 * is loaded. A stream is used by one thread at a time, but different streams
 * may be used by different threads concurrently. */
const struct postflight_transform* postflight_transforms(size_t* count);

#ifdef __cplusplus
}
#endif

#endif
