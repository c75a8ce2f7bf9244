#include "profile/agent/settings.h"

#include <cstdlib>

namespace postflight {
namespace {

std::uint64_t number(const char* text) {
  std::uint64_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text)
    value = value * 10 + static_cast<std::uint64_t>(*text - '0');
  return value;
}

// Moves `text` behind the field. One that is too long is left empty.
void take_field(const char*& text, char* to, std::size_t most) {
  std::size_t size = 0;
  for (; *text != 0 && *text != ':'; ++text, ++size)
    if (size + 1 < most)
      to[size] = *text;
  to[size + 1 < most ? size : 0] = 0;
  if (*text == ':')
    ++text;
}

}  // namespace

bool Settings::read() {
  const char* text = std::getenv("POSTFLIGHT_AGENT");
  if (text == nullptr)
    return false;
  char field[24];
  take_field(text, field, sizeof(field));
  interval_ns = number(field);
  take_field(text, field, sizeof(field));
  token = number(field);
  take_field(text, arena, sizeof(arena));
  take_field(text, library, sizeof(library));
  native = *text != 0;
  refuse_perf = std::getenv("POSTFLIGHT_NO_PERF") != nullptr;
  refuse_trap = std::getenv("POSTFLIGHT_NO_TRAP") != nullptr;
  return interval_ns != 0 && arena[0] != 0 && library[0] != 0;
}

}  // namespace postflight
