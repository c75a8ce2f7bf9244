#include "profile/engine/agent_image.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/descriptor.h"

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
namespace {

constexpr std::string_view kAgentFile = "libpostflight_agent.so";

// Other agents, of a profile that this one is part of, would interfere.
std::string without_agents(std::string_view preload) {
  std::string rest;
  while (!preload.empty()) {
    const std::size_t end =
        std::min(preload.find_first_of(": "), preload.size());
    const std::string_view library = preload.substr(0, end);
    preload.remove_prefix(std::min(end + 1, preload.size()));
    if (!library.empty() && !library.ends_with(kAgentFile))
      rest += fmt::format(":{}", library);
  }
  return rest;
}

// The folder may be full, or its file system mounted noexec.
Result<> check_loading(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE,
                            file.number(), 0);
  if (page == MAP_FAILED)
    return fail_errno(fmt::format("cannot load {}", path.native()));
  ::munmap(page, 4096);
  return {};
}

}  // namespace

Result<std::vector<std::string>> install_agent(
    const std::filesystem::path& folder, const AgentArena& arena,
    const Environment& environment) {
  const std::filesystem::path path = folder / kAgentFile;
  {
    const Bytes image(postflight_agent_begin, postflight_agent_end);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(image.data()),
               static_cast<std::streamsize>(image.size()));
    file.close();
    if (!file)
      return fail_errno(fmt::format("cannot write {}", path.native()));
  }
  TRY(check_loading(path));
  const auto before = environment("LD_PRELOAD");
  return std::vector<std::string>{
      fmt::format("LD_PRELOAD={}{}", path.native(),
                  without_agents(before.value_or(""))),
      fmt::format("POSTFLIGHT_AGENT={}:{}{}", arena.setting(), path.native(),
                  arena.is_native() ? ":native" : "")};
}

}  // namespace postflight
