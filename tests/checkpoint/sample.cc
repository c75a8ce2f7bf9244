#include "checkpoint/sample.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace postflight {

std::string sample(std::string_view name) {
  const std::filesystem::path path = std::filesystem::path(TEST_DATA) / name;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot open " << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> zip_samples() {
  std::vector<std::string> names;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(TEST_DATA)) {
    const std::string extension = file.path().extension();
    if (extension != ".pt" && extension != ".distcp")
      continue;
    const std::string name =
        std::filesystem::relative(file.path(), TEST_DATA).string();
    if (sample(name).starts_with("PK\3\4"))
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace postflight
