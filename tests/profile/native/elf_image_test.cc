#include "profile/native/elf_image.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <elf.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "profile/process/map.h"

extern "C" int postflight_elf_landmark(int value) {
  return value + 1;
}

namespace postflight {
namespace {

// A small file with one section of names and one symbol, "found".
std::vector<std::byte> small_elf() {
  const std::string names("\0.shstrtab\0.symtab\0found\0", 25);
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_phoff = sizeof(header);
  Elf64_Phdr segment = {};
  segment.p_type = PT_LOAD;
  segment.p_offset = 0x1234;
  segment.p_vaddr = 0x5234;
  Elf64_Sym symbol = {};
  symbol.st_name = 19;
  symbol.st_shndx = 1;
  symbol.st_value = 0x5678;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  std::vector<Elf64_Shdr> sections(3);
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sizeof(header) + sizeof(segment);
  sections[1].sh_size = names.size();
  sections[2].sh_name = 11;
  sections[2].sh_type = SHT_SYMTAB;
  sections[2].sh_link = 1;
  sections[2].sh_offset = sections[1].sh_offset + names.size();
  sections[2].sh_size = sizeof(symbol);
  header.e_shoff = sections[2].sh_offset + sizeof(symbol);
  std::vector<std::byte> file;
  const auto add = [&file](const void* data, std::size_t size) {
    const auto* const bytes = static_cast<const std::byte*>(data);
    file.insert(file.end(), bytes, bytes + size);
  };
  add(&header, sizeof(header));
  add(&segment, sizeof(segment));
  add(names.data(), names.size());
  add(&symbol, sizeof(symbol));
  add(sections.data(), sections.size() * sizeof(Elf64_Shdr));
  return file;
}

TEST(ElfImage, FindsSymbolsAndSegments) {
  const std::vector<std::byte> file = small_elf();
  const Result<ElfImage> image = ElfImage::parse(file);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->symbol("found"), 0x5678U);
  EXPECT_EQ(image->symbol("lost"), std::nullopt);
  ASSERT_NE(image->section(".symtab"), nullptr);
  EXPECT_EQ(image->segment_pages(),
            (std::map<std::uint64_t, std::uint64_t>{{0x1000, 0x5000}}));
  ASSERT_EQ(image->functions().size(), 1U);
  EXPECT_EQ(image->functions()[0].name, "found");
}

TEST(ElfImage, ReadsThisProgram) {
  const Result<MappedFile> file = MappedFile::open("/proc/self/exe");
  ASSERT_TRUE(file);
  const Result<ElfImage> image = ElfImage::parse(file->bytes());
  ASSERT_TRUE(image);
  const auto address = image->symbol("postflight_elf_landmark");
  ASSERT_TRUE(address);
  const auto here = reinterpret_cast<std::uint64_t>(&postflight_elf_landmark);
  const Result<std::vector<Mapping>> mappings = process_mappings(::getpid());
  ASSERT_TRUE(mappings);
  const auto mapping =
      std::ranges::find_if(*mappings, [here](const Mapping& candidate) {
        return candidate.start <= here && here < candidate.end;
      });
  ASSERT_NE(mapping, mappings->end());
  const auto pages = image->segment_pages();
  const auto page = pages.find(mapping->offset);
  ASSERT_NE(page, pages.end());
  EXPECT_EQ(*address + mapping->start - page->second, here);
  EXPECT_FALSE(image->build_id().empty());
}

TEST(ElfImage, SaysWhatIsNoElfFile) {
  const auto message = [](Bytes bytes) {
    const Result<ElfImage> image = ElfImage::parse(bytes);
    return image ? std::string("parsed") : std::string(image.error().message());
  };
  EXPECT_EQ(message(as_bytes("abc")), "3 bytes are too few for an ELF file");
  EXPECT_EQ(message(as_bytes(std::string(64, 'x'))), "not an ELF file");
  std::vector<std::byte> narrow = small_elf();
  narrow[EI_CLASS] = std::byte{ELFCLASS32};
  EXPECT_EQ(message(narrow), "not a 64-bit little-endian ELF file");
}

void use(Bytes bytes) {
  const std::vector<std::byte> exact(bytes.begin(), bytes.end());
  if (const Result<ElfImage> image = ElfImage::parse(exact)) {
    static_cast<void>(image->symbol("found"));
    static_cast<void>(image->functions());
    static_cast<void>(image->build_id());
  }
}

TEST(ElfImage, SurvivesEveryPrefix) {
  const std::vector<std::byte> file = small_elf();
  for (std::size_t size = 0; size < file.size(); ++size)
    use(Bytes(file).first(size));
}

TEST(ElfImage, SurvivesEveryFlippedByte) {
  std::vector<std::byte> file = small_elf();
  for (std::byte& byte : file) {
    byte ^= std::byte{0xff};
    use(file);
    byte ^= std::byte{0xff};
  }
}

}  // namespace
}  // namespace postflight
