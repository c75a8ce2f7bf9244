#include "profile/native/unwinder.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <cxxabi.h>
#include <sys/stat.h>

#include <fmt/format.h>

namespace postflight {
namespace {

constexpr std::size_t kMostNativeFrames = 512;
// Unknown addresses must not make us read the maps again and again.
constexpr int kMostRefreshes = 1000;

std::string demangled(std::string_view name) {
  const std::string text(name);
  int status = 0;
  char* const plain =
      abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && plain != nullptr ? plain : text;
  std::free(plain);
  return result;
}

// Functions that callers know by name alone: where every stack starts, and the
// interpreter's loop, which stands for the Python functions it runs. Reading
// debug information takes a tenth of a second for a library.
bool is_known_by_name(std::string_view function) {
  return function == "_start" || function == "start_thread" ||
         function.starts_with("__libc_start_") ||
         function.starts_with("_PyEval_EvalFrameDefault");
}

std::string file_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

NativeModule::NativeModule(MappedFile file, ElfImage image, std::string name)
    : file_(std::move(file)),
      image_(std::move(image)),
      table_(UnwindTable::parse(image_)),
      functions_(image_.functions()),
      name_(std::move(name)) {
  add_debug_file();
}

Result<std::unique_ptr<NativeModule>> NativeModule::open(
    const std::string& path, std::string name) {
  MappedFile file = TRY(MappedFile::open(path));
  ElfImage image = TRY(ElfImage::parse(file.bytes()));
  auto module = std::make_unique<NativeModule>(
      std::move(file), std::move(image), std::move(name));
  // The file may have been deleted by the time it is needed.
  if (module->image().section(".debug_info") != nullptr)
    module->debug_info_ = DebugInfo::open(path);
  return module;
}

// Where Debian's -dbgsym packages install them. A debug file names all
// functions, also those stripped from the file itself.
void NativeModule::add_debug_file() {
  const std::string id = image_.build_id();
  if (id.size() < 4)
    return;
  const std::string path = fmt::format("/usr/lib/debug/.build-id/{}/{}.debug",
                                       id.substr(0, 2), id.substr(2));
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return;
  const Result<ElfImage> image = ElfImage::parse(file->bytes());
  if (!image || image->build_id() != id)
    return;
  std::vector<ElfFunction> functions = image->functions();
  if (functions.size() > functions_.size())
    functions_ = std::move(functions);
  debug_file_.emplace(*std::move(file));
  debug_info_ = DebugInfo::open(path);
}

std::string NativeModule::function(std::uint64_t address) const {
  const auto after =
      std::ranges::upper_bound(functions_, address, {}, &ElfFunction::address);
  if (after == functions_.begin())
    return {};
  const ElfFunction& function = *std::prev(after);
  if (address - function.address >= function.size)
    return {};
  return demangled(function.name);
}

std::vector<SourcePlace> NativeModule::places(std::uint64_t address) {
  if (debug_info_ == nullptr)
    return {};
  std::vector<SourcePlace> places = debug_info_->places_at(address);
  for (SourcePlace& place : places)
    place.function = demangled(place.function);
  return places;
}

const std::vector<NativeFrame>& NativeModule::frames(std::uint64_t address) {
  const auto [known, fresh] = frames_.try_emplace(address);
  std::vector<NativeFrame>& frames = known->second;
  if (!fresh)
    return frames;
  std::string name = function(address);
  if (!is_known_by_name(name))
    for (SourcePlace& place : places(address))
      frames.push_back({.function = std::move(place.function),
                        .file = place.file.empty() ? name_ : place.file,
                        .line = place.line});
  if (frames.empty())
    frames.push_back({.function = {}, .file = name_});
  // A function without a name gets that of its library and its address.
  if (name.empty())
    name = fmt::format("{}+{:#x}", name_,
                       table_.function_start(address).value_or(address));
  frames.back().function = std::move(name);
  return frames;
}

NativeModule* NativeModules::find(pid_t pid, const Mapping& mapping) {
  const std::string path = path_inside(pid, mapping);
  struct stat status;
  if (::stat(path.c_str(), &status) != 0)
    return nullptr;
  const auto [known, fresh] =
      modules_.try_emplace({status.st_dev, status.st_ino,
                            static_cast<std::uint64_t>(status.st_mtim.tv_sec)});
  if (fresh)
    if (auto module = NativeModule::open(path, file_part(mapping.path)))
      known->second = *std::move(module);
  return known->second.get();
}

void NativeUnwinder::refresh() {
  if (refreshes_++ >= kMostRefreshes)
    return;
  const Result<std::vector<Mapping>> mappings = process_mappings(pid_);
  if (!mappings)
    return;
  placed_.clear();
  for (const Mapping& mapping : *mappings) {
    if (!mapping.executable || mapping.path.empty())
      continue;
    NativeModule* const module = modules_.find(pid_, mapping);
    if (module == nullptr)
      continue;
    const auto pages = module->image().segment_pages();
    if (const auto page = pages.find(mapping.offset); page != pages.end())
      placed_.push_back(
          {mapping.start, mapping.end, mapping.start - page->second, module});
  }
  rows_.clear();
}

const NativeUnwinder::Placed* NativeUnwinder::find(std::uint64_t address) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto found =
        std::ranges::find_if(placed_, [address](const Placed& placed) {
          return placed.start <= address && address < placed.end;
        });
    if (found != placed_.end())
      return &*found;
    if (attempt == 0)
      refresh();
  }
  return nullptr;
}

NativeStack NativeUnwinder::unwind(std::span<const std::uint64_t> registers,
                                   Bytes stack) {
  if (registers.size() < 8)
    return {};
  RegisterValues values = {};
  values[kReturnAddress] = registers[0];
  values[kRsp] = registers[1];
  values[kRbp] = registers[2];
  values[kRbx] = registers[3];
  for (std::size_t i = 0; i < 4; ++i)
    values[kR12 + i] = registers[4 + i];
  return unwind(values, stack);
}

NativeStack NativeUnwinder::unwind(RegisterValues values, Bytes stack) {
  NativeStack result;
  std::vector<std::uint64_t>& found = result.frames;
  const std::uint64_t bottom = *values[kRsp];
  const auto load = [&](std::uint64_t address) -> std::optional<std::uint64_t> {
    if (address < bottom || address - bottom > stack.size() ||
        stack.size() - (address - bottom) < 8) {
      result.cut = result.cut || address >= bottom;
      return std::nullopt;
    }
    return load_little_endian<std::uint64_t>(stack.data() + (address - bottom));
  };
  while (found.size() < kMostNativeFrames) {
    const std::uint64_t pc = *values[kReturnAddress];
    const Placed* const placed = find(found.empty() ? pc : pc - 1);
    if (placed == nullptr)
      break;
    found.push_back(pc);
    // The call is just before its return address.
    const std::uint64_t inside = found.size() == 1 ? pc : pc - 1;
    const auto [known, fresh] = rows_.try_emplace(inside);
    if (fresh)
      known->second = placed->module->table().row(inside - placed->bias);
    if (!known->second)
      break;
    const UnwindRow& row = *known->second;
    std::optional<std::uint64_t> frame;
    if (row.frame == UnwindRow::Frame::kRegister && values[row.frame_register])
      frame = *values[row.frame_register] +
              static_cast<std::uint64_t>(row.frame_offset);
    else if (row.frame == UnwindRow::Frame::kPlt)
      frame = *values[kRsp] + 8 + ((inside & 15) >= 11 ? 8 : 0);
    // Callers are at higher addresses; anything else could be a cycle.
    if (!frame || *frame <= *values[kRsp])
      break;
    RegisterValues caller = values;
    for (std::size_t i = 0; i < kUnwindRegisters; ++i) {
      const UnwindRule& rule = row.rules[i];
      if (rule.kind == UnwindRule::Kind::kAtOffset)
        caller[i] = load(*frame + static_cast<std::uint64_t>(rule.offset));
      else if (rule.kind != UnwindRule::Kind::kSame)
        caller[i] = std::nullopt;
    }
    caller[kRsp] = frame;
    if (row.rules[kReturnAddress].kind != UnwindRule::Kind::kAtOffset ||
        !caller[kReturnAddress] || *caller[kReturnAddress] == 0)
      break;
    values = caller;
  }
  result.cut = result.cut || found.size() == kMostNativeFrames;
  return result;
}

const std::vector<NativeFrame>& NativeUnwinder::frames(std::uint64_t address) {
  if (const Placed* const placed = find(address))
    return placed->module->frames(address - placed->bias);
  const auto [known, fresh] = unknown_.try_emplace(address);
  if (fresh)
    known->second.push_back(
        {.function = fmt::format("{:#x}", address), .file = {}});
  return known->second;
}

}  // namespace postflight
