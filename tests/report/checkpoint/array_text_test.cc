#include "report/checkpoint/array_text.h"

#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/test_files.h"
#include "checkpoint/torch_maker.h"
#include "pickle/builder.h"

namespace postflight {
namespace {

std::string text_of_first(const std::filesystem::path& path) {
  const Checkpoint checkpoint = must(Checkpoint::open(path));
  return must(array_text(TensorReader(checkpoint), checkpoint.tensors()[0]));
}

// What torch 2.11 saved, and numpy 2.5 printed of it.
TEST(ArrayText, IsThatOfNumpy) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           fmt::format("{}/numpy_text", TEST_DATA))) {
    std::filesystem::path path = entry.path();
    if (path.extension() != ".pt")
      continue;
    ++files;
    const std::string text = text_of_first(path);
    EXPECT_EQ(text + "\n", read_file(path.replace_extension(".txt"))) << path;
  }
  EXPECT_EQ(files, 16);
}

// One element seen as so many: nobody has to read them all.
TEST(ArrayText, OfManyDimensionsShowsFewOfEach) {
  const auto text_of = [](const std::vector<std::int64_t>& shape) {
    Builder builder;
    const Value root = make_tensor(
        builder, {.count = 1,
                  .shape = shape,
                  .stride = std::vector<std::int64_t>(shape.size(), 0)});
    const TemporaryFolder folder = scratch_folder();
    write_file(folder.path() / "x.pt",
               torch_file(root, {{{"0", std::string(4, '\0')}}}));
    return text_of_first(folder.path() / "x.pt");
  };
  EXPECT_EQ(text_of({std::int64_t{1} << 50}), "[0. 0. 0. ... 0. 0. 0.]");
  EXPECT_TRUE(text_of(std::vector<std::int64_t>(7, 6))
                  .starts_with("[[[[[[[0. 0. ... 0. 0.]\n"));
  EXPECT_TRUE(text_of(std::vector<std::int64_t>(12, 6))
                  .starts_with("[[[[[[[[[[[[0. ... 0.]\n"));
  EXPECT_EQ(text_of(std::vector<std::int64_t>(30, 2)),
            "(1073741824 elements in 30 dimensions; show a slice of them)");
}

}  // namespace
}  // namespace postflight
