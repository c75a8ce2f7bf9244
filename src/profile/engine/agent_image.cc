#include "profile/engine/agent_image.h"

#include <fmt/format.h>

#include "base/atomic_file.h"

// The agent's library as built; POSTFLIGHT_AGENT is its path.
asm(".section .rodata\n"
    ".global postflight_agent_begin\n"
    ".global postflight_agent_end\n"
    "postflight_agent_begin:\n"
    ".incbin \"" POSTFLIGHT_AGENT
    "\"\n"
    "postflight_agent_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const std::byte postflight_agent_begin[];  // NOLINT: the linker's
extern const std::byte postflight_agent_end[];    // NOLINT: names
}

namespace postflight {

Result<std::vector<std::string>> install_agent(
    const std::filesystem::path& folder, std::chrono::nanoseconds interval,
    const Environment& environment) {
  const std::filesystem::path path = folder / "libpostflight_agent.so";
  AtomicFile file = TRY(AtomicFile::create(path));
  TRY(file.write(Bytes(postflight_agent_begin, postflight_agent_end)));
  TRY(file.commit());
  std::string preload = path.native();
  if (const auto before = environment("LD_PRELOAD"); before && !before->empty())
    preload += ":" + *before;
  return std::vector<std::string>{
      fmt::format("LD_PRELOAD={}", preload),
      fmt::format("POSTFLIGHT_AGENT_NS={}", interval.count())};
}

}  // namespace postflight
