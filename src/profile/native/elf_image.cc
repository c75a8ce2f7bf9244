#include "profile/native/elf_image.h"

#include <algorithm>
#include <array>

#include <elf.h>
#include <fmt/format.h>

namespace postflight {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::array<std::uint32_t, 2> kSymbolTables = {SHT_DYNSYM, SHT_SYMTAB};

template <class T>
T load_struct(Bytes bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// The NUL-terminated text at `offset` of a string table.
std::string_view string_at(Bytes table, std::uint64_t offset) {
  if (offset >= table.size())
    return {};
  const std::string_view rest = as_text(table.subspan(offset));
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view()
                                       : rest.substr(0, end);
}

}  // namespace

Result<ElfImage> ElfImage::parse(Bytes file) {
  if (file.size() < sizeof(Elf64_Ehdr))
    return fail(ErrorKind::kCorrupt, "{} bytes are too few for an ELF file",
                file.size());
  const auto header = load_struct<Elf64_Ehdr>(file);
  if (as_text(file.first(SELFMAG)) != ELFMAG)
    return fail(ErrorKind::kCorrupt, "not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB)
    return fail(ErrorKind::kUnsupported, "not a 64-bit little-endian ELF file");
  if ((header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) ||
      (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)))
    return fail(ErrorKind::kCorrupt, "ELF headers of a strange size");

  ElfImage image;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto start = checked_add(header.e_phoff, i * sizeof(Elf64_Phdr));
    const Bytes bytes =
        TRY(slice(file, start.value_or(~std::uint64_t{0}), sizeof(Elf64_Phdr)));
    const auto segment = load_struct<Elf64_Phdr>(bytes);
    if (segment.p_type == PT_LOAD)
      image.segments_.push_back({segment.p_vaddr, segment.p_offset});
  }
  std::vector<std::uint32_t> names;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto start = checked_add(header.e_shoff, i * sizeof(Elf64_Shdr));
    const Bytes bytes =
        TRY(slice(file, start.value_or(~std::uint64_t{0}), sizeof(Elf64_Shdr)));
    const auto section = load_struct<Elf64_Shdr>(bytes);
    ElfSection& added = image.sections_.emplace_back();
    added.address = section.sh_addr;
    added.size = section.sh_size;
    added.type = section.sh_type;
    added.link = section.sh_link;
    // A section beyond the end of a truncated file counts as empty.
    if (section.sh_type != SHT_NOBITS)
      if (const auto inside = slice(file, section.sh_offset, section.sh_size))
        added.bytes = *inside;
    names.push_back(section.sh_name);
  }
  if (header.e_shstrndx < image.sections_.size()) {
    const Bytes table = image.sections_[header.e_shstrndx].bytes;
    for (std::size_t i = 0; i < names.size(); ++i)
      image.sections_[i].name = string_at(table, names[i]);
  }
  return image;
}

const ElfSection* ElfImage::section(std::string_view name) const {
  const auto found = std::ranges::find(sections_, name, &ElfSection::name);
  return found == sections_.end() ? nullptr : &*found;
}

// Calls `visit` with each symbol that is defined in this file, and its name,
// until it returns false.
template <class Visit>
void ElfImage::each_symbol(std::uint32_t table_type, Visit visit) const {
  for (const ElfSection& table : sections_) {
    if (table.type != table_type || table.link >= sections_.size())
      continue;
    const Bytes strings = sections_[table.link].bytes;
    for (Bytes rest = table.bytes; rest.size() >= sizeof(Elf64_Sym);
         rest = rest.subspan(sizeof(Elf64_Sym))) {
      const auto symbol = load_struct<Elf64_Sym>(rest);
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 &&
          !visit(symbol, string_at(strings, symbol.st_name)))
        return;
    }
  }
}

std::optional<std::uint64_t> ElfImage::symbol(std::string_view name) const {
  std::optional<std::uint64_t> address;
  for (const std::uint32_t type : kSymbolTables) {
    each_symbol(type, [&](const Elf64_Sym& symbol, std::string_view its_name) {
      if (its_name == name)
        address = symbol.st_value;
      return !address;
    });
    if (address)
      break;
  }
  return address;
}

std::vector<ElfFunction> ElfImage::functions() const {
  std::vector<ElfFunction> functions;
  for (const std::uint32_t type : kSymbolTables)
    each_symbol(type, [&](const Elf64_Sym& symbol, std::string_view name) {
      const auto kind = ELF64_ST_TYPE(symbol.st_info);
      if ((kind == STT_FUNC || kind == STT_GNU_IFUNC) && !name.empty())
        functions.push_back({symbol.st_value, symbol.st_size, name});
      return true;
    });
  std::ranges::stable_sort(functions, {}, &ElfFunction::address);
  const auto same = std::unique(functions.begin(), functions.end(),
                                [](const ElfFunction& a, const ElfFunction& b) {
                                  return a.address == b.address;
                                });
  functions.erase(same, functions.end());
  return functions;
}

std::string ElfImage::build_id() const {
  const ElfSection* const note = section(".note.gnu.build-id");
  std::string text;
  // Three words (sizes and type) and "GNU\0" precede the bytes.
  if (note != nullptr && note->bytes.size() > 16)
    for (const std::byte byte : note->bytes.subspan(16))
      text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

std::map<std::uint64_t, std::uint64_t> ElfImage::segment_pages() const {
  std::map<std::uint64_t, std::uint64_t> pages;
  for (const ElfSegment& segment : segments_)
    pages.emplace(segment.offset & ~(kPage - 1),
                  segment.address & ~(kPage - 1));
  return pages;
}

}  // namespace postflight
