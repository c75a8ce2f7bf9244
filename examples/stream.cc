// Compresses with two transforms, the second of which is this program's own,
// and back.
//
//     c++ -std=c++17 stream.cc $(pkg-config --cflags --libs postflight)

#include <cstddef>
#include <cstdio>
#include <string>

#include <postflight/stream.h>

namespace {

// Inverts every bit.
void* open_stream(postflight_direction, const char*) {
  static char state;
  return &state;
}

postflight_state step(void*, postflight_buffers* buffers,
                      postflight_stage stage) {
  while (buffers->in_size > 0 && buffers->out_size > 0) {
    *buffers->out++ = static_cast<unsigned char>(~*buffers->in++);
    --buffers->in_size;
    --buffers->out_size;
  }
  if (buffers->in_size > 0)
    return POSTFLIGHT_NEEDS_ROOM;
  return stage == POSTFLIGHT_LAST ? POSTFLIGHT_DONE : POSTFLIGHT_NEEDS_INPUT;
}

const char* message(void*) {
  return nullptr;
}

void close_stream(void*) {}

const postflight_transform kInvert = {POSTFLIGHT_TRANSFORM_ABI,
                                      1,
                                      "stream.invert@example",
                                      "inverts every bit",
                                      POSTFLIGHT_KEEPS_PLACES,
                                      open_stream,
                                      step,
                                      message,
                                      close_stream};

}  // namespace

int main() {
  try {
    postflight::Registry registry;
    registry.add(kInvert);
    const postflight::Chain chain(
        registry, {"stream.zstd/1:level=9", "stream.invert@example/1"});
    const std::string text(100000, 'x');
    const std::string encoded = chain.encode(text);
    const bool same = chain.decode(encoded) == text;
    std::printf("%s: %zu bytes, %s\n", chain.descriptors().c_str(),
                encoded.size(), same ? "and back" : "but not back");
    return same ? 0 : 1;
  } catch (const postflight::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
