#include "checkpoint/tensor/export.h"

#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/test_files.h"
#include "checkpoint/model/checkpoint.h"
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

class NamesTest : public testing::Test {
 protected:
  // What is written, or why nothing can be.
  std::string exported(ExportFormat format,
                       const std::vector<std::string>& names,
                       const Tensor& tensor) const {
    std::vector<NamedTensor> named;
    for (const std::string& name : names)
      named.push_back({name, &tensor});
    std::string written;
    const Result<> done = export_tensors(TensorReader(checkpoint_), format,
                                         named, [&](Bytes piece) -> Result<> {
                                           written += as_text(piece);
                                           return {};
                                         });
    return done ? written : std::string(done.error().message());
  }

  const TemporaryFolder folder_ = scratch_folder();
  const Checkpoint checkpoint_ = [this] {
    Builder builder;
    write_file(
        folder_.path() / "x.pt",
        torch_file(
            make_tensor(builder, {.count = 1, .shape = {1}, .stride = {1}}),
            {{{"0", std::string(4, 'x')}}}));
    return must(Checkpoint::open(folder_.path() / "x.pt"));
  }();
};

TEST_F(NamesTest, AreThoseOfOneTensorEach) {
  const Tensor& tensor = checkpoint_.tensors()[0];
  EXPECT_EQ(exported(ExportFormat::kSafetensors, {"a.b", "a.b"}, tensor),
            "safetensors cannot have a tensor called a.b, or would have two; "
            "select others by --keys, or write .npz");
  EXPECT_EQ(exported(ExportFormat::kSafetensors, {"__metadata__"}, tensor),
            "safetensors cannot have a tensor called __metadata__, or would "
            "have two; select others by --keys, or write .npz");
  EXPECT_EQ(exported(ExportFormat::kNpz, {std::string(70'000, 'k')}, tensor),
            "a key of 70000 bytes is too long for a name in an .npz, which has "
            "up to 65535; write safetensors or raw bytes");
}

TEST_F(NamesTest, LeaveRoomForVeryManyDimensions) {
  const std::vector<std::int64_t> ones(30'000, 1);
  Tensor tensor = checkpoint_.tensors()[0];
  tensor.shape = ones;
  tensor.stride = ones;
  const std::string written = exported(ExportFormat::kNpy, {"a"}, tensor);
  ASSERT_TRUE(written.starts_with("\x93NUMPY\2"));
  const auto length = load_little_endian<std::uint32_t>(
      as_bytes(std::string_view(written).substr(8)).data());
  EXPECT_EQ(written.size(), 12 + length + 4);
  EXPECT_EQ((12 + length) % 64, 0U);
  EXPECT_EQ(written[12 + length - 1], '\n');
}

}  // namespace
}  // namespace postflight
