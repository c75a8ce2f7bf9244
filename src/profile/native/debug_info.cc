#include "profile/native/debug_info.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <libelf.h>

#include "base/descriptor.h"

namespace postflight {
namespace {

// Deeper inlining is not shown.
constexpr std::size_t kMostInlined = 64;
// DIEs visited for one address: damaged information can have cycles.
constexpr std::size_t kMostEntries = 1'000'000;

// DIEs that contain functions.
bool holds_functions(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
         tag == DW_TAG_structure_type || tag == DW_TAG_module;
}

// DIEs that are parts of functions.
bool is_part(int tag) {
  return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
         tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

// Not by dwarf_getscopes, which leaks memory when it fails.
class Search {
 public:
  explicit Search(std::uint64_t address) : address_(address) {}

  // The function of a unit that contains the address.
  std::optional<Dwarf_Die> function(const Dwarf_Die& unit) {
    std::vector<Dwarf_Die> open = {unit};
    while (!open.empty()) {
      const Dwarf_Die entry = open.back();
      open.pop_back();
      std::optional<Dwarf_Die> found =
          child(entry, [&](Dwarf_Die& inside, int tag) {
            if (holds_functions(tag))
              open.push_back(inside);
            return tag == DW_TAG_subprogram && has_address(inside);
          });
      if (found)
        return found;
    }
    return std::nullopt;
  }

  // The child of a DIE that contains the address.
  std::optional<Dwarf_Die> part(const Dwarf_Die& entry) {
    return child(entry, [&](Dwarf_Die& inside, int tag) {
      return is_part(tag) && has_address(inside);
    });
  }

 private:
  bool has_address(Dwarf_Die& entry) const {
    return ::dwarf_haspc(&entry, address_) > 0;
  }

  template <class Wanted>
  std::optional<Dwarf_Die> child(Dwarf_Die entry, Wanted wanted) {
    Dwarf_Die inside;
    if (::dwarf_child(&entry, &inside) != 0)
      return std::nullopt;
    do {
      if (++entries_ > kMostEntries)
        return std::nullopt;
      if (wanted(inside, ::dwarf_tag(&inside)))
        return inside;
    } while (::dwarf_siblingof(&inside, &inside) == 0);
    return std::nullopt;
  }

  std::uint64_t address_;
  std::size_t entries_ = 0;
};

std::string name_of(Dwarf_Die& entry) {
  Dwarf_Attribute attribute;
  const char* name = nullptr;
  if (::dwarf_attr_integrate(&entry, DW_AT_linkage_name, &attribute) != nullptr)
    name = ::dwarf_formstring(&attribute);
  if (name == nullptr)
    name = ::dwarf_diename(&entry);
  return name == nullptr ? "?" : name;
}

using Place = std::pair<std::string, std::uint32_t>;

// Where an inlined function was called.
Place call_of(Dwarf_Die& entry, Dwarf_Die& unit) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0;
  Dwarf_Word line = 0;
  if (::dwarf_formudata(::dwarf_attr(&entry, DW_AT_call_line, &attribute),
                        &line) != 0 ||
      ::dwarf_formudata(::dwarf_attr(&entry, DW_AT_call_file, &attribute),
                        &file) != 0)
    return {};
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (::dwarf_getsrcfiles(&unit, &files, &count) != 0 || file >= count)
    return {};
  const char* const name = ::dwarf_filesrc(files, file, nullptr, nullptr);
  return {name == nullptr ? "" : name, static_cast<std::uint32_t>(line)};
}

Place line_at(Dwarf_Die& unit, std::uint64_t address) {
  Dwarf_Line* const row = ::dwarf_getsrc_die(&unit, address);
  int line = 0;
  if (row == nullptr || ::dwarf_lineno(row, &line) != 0 || line < 0)
    return {};
  const char* const name = ::dwarf_linesrc(row, nullptr, nullptr);
  return {name == nullptr ? "" : name, static_cast<std::uint32_t>(line)};
}

}  // namespace

struct DebugInfo::Handles {
  Elf* elf = nullptr;
  Dwarf* dwarf = nullptr;

  Handles() = default;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() {
    if (dwarf != nullptr)
      ::dwarf_end(dwarf);
    if (elf != nullptr)
      ::elf_end(elf);
  }
};

std::unique_ptr<DebugInfo> DebugInfo::open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (!file.is_open() || ::fstat(file.number(), &status) != 0 ||
      !S_ISREG(status.st_mode) || status.st_size == 0)
    return nullptr;
  const auto size = static_cast<std::size_t>(status.st_size);
  // A private mapping: elfutils writes to a copy of the page.
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_NORESERVE, file.number(), 0);
  if (memory == MAP_FAILED)
    return nullptr;
  auto info = std::make_unique<DebugInfo>(
      std::span(static_cast<std::byte*>(memory), size));
  info->mapped_ = true;
  return info;
}

DebugInfo::DebugInfo(std::span<std::byte> file) : file_(file) {}

DebugInfo::~DebugInfo() {
  handles_.reset();
  if (mapped_)
    ::munmap(file_.data(), file_.size());
}

void DebugInfo::read() {
  handles_ = std::make_unique<Handles>();
  if (file_.empty() || ::elf_version(EV_CURRENT) == EV_NONE)
    return;
  handles_->elf =
      ::elf_memory(reinterpret_cast<char*>(file_.data()), file_.size());
  if (handles_->elf == nullptr)
    return;
  handles_->dwarf = ::dwarf_begin_elf(handles_->elf, DWARF_C_READ, nullptr);
  if (handles_->dwarf != nullptr)
    list_units();
}

// Not by .debug_aranges, which not all compilers write.
void DebugInfo::list_units() {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die entry;
  std::uint8_t type = 0;
  while (::dwarf_get_units(handles_->dwarf, unit, &unit, nullptr, &type, &entry,
                           nullptr) == 0) {
    if (type != DW_UT_compile)
      continue;
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    for (std::ptrdiff_t at = 0;
         (at = ::dwarf_ranges(&entry, at, &base, &start, &end)) > 0;)
      units_.push_back({start, end, ::dwarf_dieoffset(&entry)});
  }
  std::ranges::sort(units_, {}, &Unit::start);
}

std::vector<SourcePlace> DebugInfo::places_at(std::uint64_t address) {
  if (handles_ == nullptr)
    read();
  std::vector<SourcePlace> places;
  const auto after =
      std::ranges::upper_bound(units_, address, {}, &Unit::start);
  if (after == units_.begin() || address >= std::prev(after)->end)
    return places;
  Dwarf_Die unit;
  if (::dwarf_offdie(handles_->dwarf, std::prev(after)->offset, &unit) ==
      nullptr)
    return places;
  Search search(address);
  std::optional<Dwarf_Die> entry = search.function(unit);
  if (!entry)
    return places;
  // From the outermost in, each with the place of the call to the next.
  places.push_back({.function = name_of(*entry)});
  for (std::size_t depth = 0; entry && depth < kMostInlined; ++depth) {
    entry = search.part(*entry);
    if (!entry || ::dwarf_tag(&*entry) != DW_TAG_inlined_subroutine)
      continue;
    std::tie(places.back().file, places.back().line) = call_of(*entry, unit);
    places.push_back({.function = name_of(*entry)});
  }
  std::tie(places.back().file, places.back().line) = line_at(unit, address);
  std::ranges::reverse(places);
  return places;
}

}  // namespace postflight
