// Runs a fuzz target over every file of the given folders, without libFuzzer,
// so that the corpus is replayed as an ordinary test.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size);

namespace {

// False if the file could not be read.
bool replay(const std::filesystem::path& path) {
  const std::size_t size = std::filesystem::file_size(path);
  // Exactly as long as the file, so that AddressSanitizer detects overreads.
  const auto copy = std::make_unique<std::uint8_t[]>(size);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(copy.get()),
            static_cast<std::streamsize>(size));
  if (!file)
    return false;
  LLVMFuzzerTestOneInput(copy.get(), size);
  return true;
}

}  // namespace

int main(int count, char** folders) {
  int replayed = 0;
  for (int i = 1; i < count; ++i) {
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(folders[i])) {
      if (!file.is_regular_file())
        continue;
      if (!replay(file.path())) {
        std::fprintf(stderr, "cannot read %s\n", file.path().c_str());
        return 1;
      }
      ++replayed;
    }
  }
  std::printf("replayed %d inputs\n", replayed);
  return replayed > 0 ? 0 : 1;
}
