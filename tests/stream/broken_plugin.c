/* Transforms that break the interface of plug-ins, each in its own way. */

#include "postflight_transform.h"

static void* open_stream(enum postflight_direction direction,
                         const char* parameters) {
  static char stream;
  (void)direction;
  (void)parameters;
  return &stream;
}

static const char* message(void* stream) {
  (void)stream;
  return "it never works";
}

static void close_stream(void* stream) {
  (void)stream;
}

#define STEP(name, body)                                           \
  static enum postflight_state name(void* stream,                  \
                                    struct postflight_buffers* b,  \
                                    enum postflight_stage stage) { \
    (void)stream;                                                  \
    (void)b;                                                       \
    (void)stage;                                                   \
    body                                                           \
  }

STEP(stuck, return POSTFLIGHT_NEEDS_ROOM;)
STEP(lazy, return POSTFLIGHT_NEEDS_INPUT;)
STEP(hasty, return POSTFLIGHT_DONE;)
STEP(untidy, b->out_size -= 1; return POSTFLIGHT_NEEDS_ROOM;)
STEP(odd, return (enum postflight_state)99;)
STEP(failing, return POSTFLIGHT_FAILED;)

#define TRANSFORM(step_name)                                     \
  {                                                              \
    .abi = POSTFLIGHT_TRANSFORM_ABI, .version = 1,               \
    .name = "stream." #step_name "@broken", .open = open_stream, \
    .step = step_name, .message = message, .close = close_stream \
  }

static const struct postflight_transform kTransforms[] = {
    TRANSFORM(stuck),  TRANSFORM(lazy), TRANSFORM(hasty),
    TRANSFORM(untidy), TRANSFORM(odd),  TRANSFORM(failing),
};

const struct postflight_transform* postflight_transforms(size_t* count) {
  *count = sizeof(kTransforms) / sizeof(kTransforms[0]);
  return kTransforms;
}
