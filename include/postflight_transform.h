/* The interface of plug-ins that add stream transforms to postflight.
 *
 * A plug-in is a shared library, written in C or anything that speaks it, that
 * exports one function, postflight_transforms. It is loaded with
 *
 *     postflight stream decode --plugin ./xor15.so --with stream.xor15@corpus/1
 *
 * examples/xor15_transform.c is a whole one. The interface only grows: a
 * library built with this header keeps working.
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
  POSTFLIGHT_DECODE = 1, /* and back */
};

enum postflight_stage {
  POSTFLIGHT_MORE = 0,  /* there may be more input */
  POSTFLIGHT_FLUSH = 1, /* there may be, but give out what you hold */
  POSTFLIGHT_LAST = 2,  /* nothing follows this input */
};

enum postflight_state {
  POSTFLIGHT_NEEDS_INPUT = 0, /* all input was used */
  POSTFLIGHT_NEEDS_ROOM = 1,  /* there is more to give out */
  POSTFLIGHT_DONE = 2,        /* after LAST: everything was given out */
  POSTFLIGHT_FAILED = 3,      /* message() says why */
};

/* Input is read only, output only written. Each call of step() advances both
 * pointers by what it used and wrote, and lowers both sizes by as much. */
struct postflight_buffers {
  const unsigned char* in;
  size_t in_size;
  unsigned char* out;
  size_t out_size; /* never 0 at a call */
};

struct postflight_transform {
  uint32_t abi;        /* POSTFLIGHT_TRANSFORM_ABI */
  uint32_t version;    /* the major version in descriptors: 1 in "name/1" */
  const char* name;    /* with a domain of your own: "stream.xor15@corpus" */
  const char* summary; /* one line, for `postflight stream list` */
  uint32_t flags;      /* POSTFLIGHT_KEEPS_PLACES or 0 */

  /* Begins a stream; NULL if it cannot. `parameters` is what the user wrote
   * behind the colon, "" if nothing: "level=9,threads=2". */
  void* (*open)(enum postflight_direction direction, const char* parameters);
  enum postflight_state (*step)(void* stream,
                                struct postflight_buffers* buffers,
                                enum postflight_stage stage);
  /* Why the stream failed, or, for NULL, why open() did. May return NULL. */
  const char* (*message)(void* stream);
  void (*close)(void* stream);
};

/* Each byte of output depends on the byte of input at the same place only. */
#define POSTFLIGHT_KEEPS_PLACES 1u

/* Returns an array of `*count` transforms that lives as long as the library.
 * Streams are used by one thread each, several streams by several threads. */
const struct postflight_transform* postflight_transforms(size_t* count);

#ifdef __cplusplus
}
#endif

#endif
