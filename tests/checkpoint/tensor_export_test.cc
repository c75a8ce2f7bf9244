#include "checkpoint/tensor_export.h"

#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/test_files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/torch_maker.h"

namespace postflight {
namespace {

TEST(TensorExport, HandsSmallTensorsOnTogetherAndAllInOrder) {
  constexpr std::int64_t kCount = 300'000;
  constexpr std::int64_t kSmall = 1'000;
  std::vector<std::int32_t> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 0);
  Builder builder;
  const TemporaryFolder folder = scratch_folder();
  write_file(folder.path() / "x.pt",
             torch_file(make_tensor(builder, {.storage_class = "IntStorage",
                                              .count = kCount,
                                              .shape = {kCount},
                                              .stride = {1}}),
                        {{{"0", bytes_of(numbers)}}, "little", true}));
  const Result<Checkpoint> checkpoint =
      Checkpoint::open(folder.path() / "x.pt");
  ASSERT_TRUE(checkpoint);
  const Tensor whole = checkpoint->tensors()[0];
  const std::int64_t shape[] = {kSmall};
  std::vector<Tensor> parts(300, whole);
  std::string expected;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::uint64_t count = kCount;
    if (i != 150) {  // a large one among the small
      parts[i].shape = shape;
      parts[i].offset = i * kSmall;
      count = kSmall;
    }
    expected.append(
        reinterpret_cast<const char*>(numbers.data() + parts[i].offset),
        count * sizeof(std::int32_t));
  }
  std::vector<NamedTensor> named;
  for (const Tensor& part : parts)
    named.push_back({"t", &part});
  std::string written;
  std::size_t calls = 0;
  const TensorReader reader(*checkpoint, {.threads = 1});
  ASSERT_TRUE(export_tensors(reader, ExportFormat::kRaw, named,
                             [&](Bytes piece) -> Result<> {
                               written += as_text(piece);
                               ++calls;
                               return {};
                             }));
  EXPECT_TRUE(written == expected);
  EXPECT_LT(calls, 12u);

  const Result<> refused =
      export_tensors(reader, ExportFormat::kRaw, named, [](Bytes) -> Result<> {
        return fail(ErrorKind::kIo, "the disk is full");
      });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "the disk is full");
}

}  // namespace
}  // namespace postflight
