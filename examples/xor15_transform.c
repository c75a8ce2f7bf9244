/* A stream transform that XORs each byte with 0x15, as a plug-in.
 *
 *   cc -shared -fPIC -Iinclude -o xor15.so examples/xor15_transform.c
 */

#include "postflight_transform.h"

static void* open_stream(enum postflight_direction direction,
                         const char* parameters) {
  static char stream; /* no state */
  (void)direction;    /* it is its own inverse */
  return parameters[0] == '\0' ? &stream : NULL;
}

static enum postflight_state step(void* stream,
                                  struct postflight_buffers* buffers,
                                  enum postflight_stage stage) {
  (void)stream;
  for (; buffers->in_size > 0 && buffers->out_size > 0;
       --buffers->in_size, --buffers->out_size)
    *buffers->out++ = (unsigned char)(*buffers->in++ ^ 0x15);
  if (buffers->in_size > 0)
    return POSTFLIGHT_NEEDS_ROOM;
  return stage == POSTFLIGHT_LAST ? POSTFLIGHT_DONE : POSTFLIGHT_NEEDS_INPUT;
}

static const char* message(void* stream) {
  return stream == NULL ? "it has no parameters" : NULL;
}

static void close_stream(void* stream) {
  (void)stream;
}

static const struct postflight_transform kTransforms[] = {{
    .abi = POSTFLIGHT_TRANSFORM_ABI,
    .version = 1,
    .name = "stream.xor15@corpus",
    .summary = "XORs each byte with 0x15",
    .flags = POSTFLIGHT_KEEPS_PLACES,
    .open = open_stream,
    .step = step,
    .message = message,
    .close = close_stream,
}};

const struct postflight_transform* postflight_transforms(size_t* count) {
  *count = sizeof(kTransforms) / sizeof(kTransforms[0]);
  return kTransforms;
}
