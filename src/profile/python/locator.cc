#include "profile/python/locator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "profile/native/elf_image.h"

namespace postflight {
namespace {

// Opens only files with such names: torch alone maps hundreds of others.
bool could_hold_python(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("libpython");
}

constexpr std::size_t kMostInterpreters = 1'000;
constexpr std::size_t kMostThreads = 100'000;
// The offset of the tid in glibc's struct pthread: 720 since 2.10, on x86-64.
constexpr std::uint64_t kTidInPthread = 720;

std::optional<pid_t> tid_of(const Memory& memory, const PythonLayout& layout,
                            const std::byte* state) {
  if (layout.thread.native_thread_id)
    return static_cast<pid_t>(load_little_endian<std::uint64_t>(
        state + *layout.thread.native_thread_id));
  const auto pthread =
      load_little_endian<std::uint64_t>(state + layout.thread.thread_id);
  return memory.load<pid_t>(pthread + kTidInPthread);
}

}  // namespace

std::optional<PythonVersion> version_in_name(std::string_view path) {
  const std::size_t at = path.rfind("python3.");
  if (at == std::string_view::npos)
    return std::nullopt;
  path.remove_prefix(at + 8);
  PythonVersion version = {.major = 3};
  const auto [end, error] =
      std::from_chars(path.data(), path.data() + path.size(), version.minor);
  if (error != std::errc())
    return std::nullopt;
  return version;
}

bool is_running(const PythonRuntime& runtime, const Memory& memory) {
  const PythonLayout& layout = runtime.layout;
  const auto interpreter =
      memory.load<std::uint64_t>(runtime.address + layout.runtime.interpreters);
  if (!interpreter || *interpreter == 0)
    return false;
  const auto thread =
      memory.load<std::uint64_t>(*interpreter + layout.interpreter.threads);
  if (!thread || *thread == 0)
    return false;
  const auto back =
      memory.load<std::uint64_t>(*thread + layout.thread.interpreter);
  return back == interpreter;
}

const PythonLocator::Image& PythonLocator::image(pid_t pid,
                                                 const Mapping& mapping) {
  if (const auto known = images_.find(mapping.path); known != images_.end())
    return known->second;
  Image& image = images_[mapping.path];
  const Result<MappedFile> file = MappedFile::open(path_inside(pid, mapping));
  if (!file)
    return image;
  const Result<ElfImage> elf = ElfImage::parse(file->bytes());
  if (!elf)
    return image;
  image.runtime = elf->symbol("_PyRuntime");
  // Stripped programs still have the section, which holds nothing else.
  if (!image.runtime)
    if (const ElfSection* const section = elf->section(".PyRuntime"))
      image.runtime = section->address;
  if (!image.runtime)
    return image;
  image.code_type = elf->symbol("PyCode_Type");
  image.version = elf->symbol("Py_Version");
  image.address_of_offset = elf->segment_pages();
  return image;
}

Result<std::optional<PythonRuntime>> PythonLocator::find(pid_t pid,
                                                         const Memory& memory,
                                                         bool starting) {
  const std::vector<Mapping> mappings = TRY(process_mappings(pid));
  for (const Mapping& mapping : mappings) {
    if (mapping.path.empty() || !could_hold_python(mapping.path))
      continue;
    const Image& found = image(pid, mapping);
    const auto address = found.address_of_offset.find(mapping.offset);
    if (!found.runtime || address == found.address_of_offset.end())
      continue;
    const std::uint64_t bias = mapping.start - address->second;
    PythonRuntime runtime = {.address = *found.runtime + bias};
    if (found.code_type)
      runtime.code_type = *found.code_type + bias;
    if (found.version) {
      const auto hex = memory.load<std::uint64_t>(*found.version + bias);
      if (!hex)
        return std::nullopt;
      runtime.version = python_version(*hex);
    } else if (const auto named = version_in_name(mapping.path)) {
      runtime.version = *named;
    }
    std::array<std::byte, kDescribedBytes> front;
    if (!memory.read(runtime.address, front))
      return std::nullopt;
    runtime.layout = TRY(python_layout(runtime.version, front));
    if (!starting && !is_running(runtime, memory))
      return std::nullopt;
    return runtime;
  }
  return std::nullopt;
}

std::vector<PythonThread> python_threads(const Memory& memory,
                                         const PythonRuntime& runtime) {
  const PythonLayout& layout = runtime.layout;
  std::vector<PythonThread> threads;
  auto interpreter =
      memory.load<std::uint64_t>(runtime.address + layout.runtime.interpreters);
  const std::size_t size =
      std::max({layout.thread.next + 8, layout.thread.thread_id + 8,
                layout.thread.native_thread_id.value_or(0) + 8});
  std::array<std::byte, kThreadBytes> state;
  if (size > state.size())
    return threads;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < kMostInterpreters && interpreter && *interpreter;
       ++i) {
    auto thread =
        memory.load<std::uint64_t>(*interpreter + layout.interpreter.threads);
    for (; thread && *thread != 0 && seen < kMostThreads; ++seen) {
      if (!memory.read(*thread, std::span(state).first(size)))
        break;
      if (const auto tid = tid_of(memory, layout, state.data()))
        threads.push_back({*thread, *tid});
      thread =
          load_little_endian<std::uint64_t>(state.data() + layout.thread.next);
    }
    interpreter =
        memory.load<std::uint64_t>(*interpreter + layout.interpreter.next);
  }
  return threads;
}

}  // namespace postflight
