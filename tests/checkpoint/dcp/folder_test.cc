#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_files.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/tensor/reader.h"
#include "checkpoint/tensor/slice.h"
#include "checkpoint/torch_maker.h"
#include "checkpoint/verification/verification.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

fs::path data(std::string_view name) {
  return fs::path(TEST_DATA) / name;
}

std::vector<std::string> shown(const Checkpoint& checkpoint) {
  std::vector<std::string> lines;
  for (const Finding& finding : checkpoint.findings())
    lines.push_back(fmt::format("{} {} [{}]: {}",
                                severity_name(finding.severity), finding.kind,
                                finding.where, finding.message));
  return lines;
}

std::vector<std::string> paths(const Checkpoint& checkpoint) {
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < checkpoint.nodes().size(); ++i)
    if (checkpoint.nodes()[i].kind == NodeKind::kTensor)
      paths.push_back(checkpoint.path_of(i));
  return paths;
}

const Tensor& tensor(const Checkpoint& checkpoint, std::string_view path) {
  for (std::uint32_t i = 0; i < checkpoint.nodes().size(); ++i)
    if (checkpoint.path_of(i) == path)
      return *checkpoint.tensor_at(checkpoint.nodes()[i]);
  throw std::runtime_error("no such tensor");
}

std::string values_of(const Checkpoint& checkpoint, const Tensor& of) {
  std::string bytes(of.bytes(), '?');
  const Result<> done = TensorReader(checkpoint)
                            .read(of, std::as_writable_bytes(std::span(bytes)));
  EXPECT_EQ(message_of(done), "no error");
  return bytes;
}

// A copy of a folder that tests may damage.
class CopiedFolder {
 public:
  explicit CopiedFolder(std::string_view name) {
    fs::copy(data(name), folder_.path() / "c");
  }
  fs::path path() const { return folder_.path() / "c"; }

 private:
  TemporaryFolder folder_ = scratch_folder();
};

TEST(Distributed, RebuildsTheNestingAndTheTensors) {
  const Checkpoint checkpoint = must(Checkpoint::open(data("dcp_plain")));
  EXPECT_EQ(checkpoint.format(), Format::kDistributed);
  EXPECT_THAT(paths(checkpoint), ElementsAre("model.w", "model.u", "model.emb",
                                             "model.rep", "opt[0].m"));
  EXPECT_THAT(shown(checkpoint), IsEmpty());
  EXPECT_THAT(tensor(checkpoint, "model.w").shape, ElementsAre(10, 6));
  EXPECT_EQ(must(digest_tensor(TensorReader(checkpoint),
                               tensor(checkpoint, "model.w"))),
            "39838fa7027d395eafd281067592c37f3e7c39c3373c89f8f6b090ccdd57dba5");
}

TEST(Distributed, ASliceIsThatOfTheWhole) {
  const Checkpoint checkpoint = must(Checkpoint::open(data("dcp_plain")));
  const Tensor& whole = tensor(checkpoint, "model.u");
  const std::string all = values_of(checkpoint, whole);
  const auto columns = static_cast<std::size_t>(whole.shape[1]);
  const TensorSlice part =
      slice_tensor(whole, must(parse_slice("[1:6:2, 3:8]", whole.shape)));
  std::string expected;
  for (const std::size_t row : {1, 3, 5})
    expected += all.substr((row * columns + 3) * 2, 5 * 2);
  EXPECT_EQ(values_of(checkpoint, part.tensor), expected);
}

TEST(Distributed, SaysWhichFileIsMissing) {
  const CopiedFolder folder("dcp_plain");
  fs::remove(folder.path() / "__1_0.distcp");
  const Checkpoint checkpoint = must(Checkpoint::open(folder.path()));
  ASSERT_FALSE(checkpoint.findings().empty());
  EXPECT_EQ(shown(checkpoint).front(),
            "error missing_file [__1_0.distcp]: the metadata names "
            "__1_0.distcp, which is not in the folder");
  EXPECT_EQ(tensor(checkpoint, "model.w").problem,
            "its chunk at (3, 0) of size (3, 6) is unavailable: the metadata "
            "names __1_0.distcp, which is not in the folder");
}

// What lies in the other files is still there.
TEST(Distributed, ReadsSlicesOfWhatIsThere) {
  const CopiedFolder folder("dcp_plain");
  fs::remove(folder.path() / "__1_0.distcp");
  const Checkpoint checkpoint = must(Checkpoint::open(folder.path()));
  const Checkpoint good = must(Checkpoint::open(data("dcp_plain")));
  const Tensor& broken = tensor(checkpoint, "model.w");
  const Tensor& whole = tensor(good, "model.w");
  const auto rows = [](const Tensor& of, const char* text) {
    return slice_tensor(of, must(parse_slice(text, of.shape)));
  };
  for (const char* text : {"[0:3]", "[6:]", "[:3, 1:4]", "[3:3]"})
    EXPECT_EQ(values_of(checkpoint, rows(broken, text).tensor),
              values_of(good, rows(whole, text).tensor))
        << text;
  std::string room(2 * 6 * 4, '?');
  EXPECT_EQ(message_of(TensorReader(checkpoint)
                           .read(rows(broken, "[2:4]").tensor,
                                 std::as_writable_bytes(std::span(room)))),
            "model.w at (3, 0): the metadata names __1_0.distcp, which is not "
            "in the folder");
}

TEST(Distributed, SaysThatAFileIsTooShort) {
  const CopiedFolder folder("dcp_plain");
  fs::resize_file(folder.path() / "__3_0.distcp", 4500);
  const Checkpoint checkpoint = must(Checkpoint::open(folder.path()));
  std::vector<std::string> problems;
  for (const Tensor& each : checkpoint.tensors())
    if (!each.problem.empty())
      problems.emplace_back(each.problem);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems.front(),
            "its chunk at (9, 0) of size (1, 6) is unavailable: its 1577 bytes "
            "at byte 4415 of __3_0.distcp are beyond that file's end at 4500; "
            "it is probably truncated");
}

// Megatron's torch_dist folders have one.
TEST(Distributed, ShowsWhatIsCommonBesideTheTensors) {
  Builder builder;
  const auto common = [&](std::string_view key) {
    return torch_file(
        builder.dict({{builder.string("iteration"), builder.integer(100)},
                      {builder.string(key), builder.boolean(true)}}),
        {});
  };
  const CopiedFolder folder("dcp_plain");
  const auto tops = [&] {
    const Checkpoint checkpoint = must(Checkpoint::open(folder.path()));
    EXPECT_THAT(shown(checkpoint), IsEmpty());
    std::vector<std::string> names;
    for (std::uint32_t at = 1; at < checkpoint.nodes().size();
         at = checkpoint.nodes()[at].end)
      names.push_back(checkpoint.path_of(at));
    return names;
  };
  std::vector<std::string> expected = tops();
  const std::vector<std::string> distributed = expected;
  write_file(folder.path() / "common.pt", common("args"));
  expected.insert(expected.end(), {"iteration", "args"});
  EXPECT_EQ(tops(), expected);
  // A key that is in both would hide one of the two.
  write_file(folder.path() / "common.pt", common("model"));
  expected = distributed;
  expected.emplace_back("common.pt");
  EXPECT_EQ(tops(), expected);
}

TEST(Distributed, SaysThatWhatIsCommonIsDamaged) {
  const CopiedFolder folder("dcp_plain");
  write_file(folder.path() / "common.pt", "");
  const Checkpoint checkpoint = must(Checkpoint::open(folder.path()));
  EXPECT_THAT(shown(checkpoint),
              ElementsAre("error unreadable_file [common.pt]: " +
                          (folder.path() / "common.pt").string() +
                          ": the file is empty; was its writer killed?"));
  EXPECT_THAT(paths(checkpoint), ElementsAre("model.w", "model.u", "model.emb",
                                             "model.rep", "opt[0].m"));
}

TEST(Distributed, ReportsWhatIsLeftOver) {
  const CopiedFolder folder("dcp_plain");
  fs::copy(folder.path() / "__3_0.distcp", folder.path() / "__9_0.distcp");
  EXPECT_THAT(shown(must(Checkpoint::open(folder.path()))),
              ElementsAre("note leftover_file [__9_0.distcp]: nothing refers "
                          "to __9_0.distcp; it may be left over from another "
                          "save"));
}

TEST(Distributed, IsVerifiedItemByItem) {
  const Verification good = verify(must(Checkpoint::open(data("dcp_plain"))));
  EXPECT_THAT(good.findings, IsEmpty());
  EXPECT_GT(good.crc_good, 20u);
  EXPECT_EQ(good.unreadable, 0u);
  const CopiedFolder folder("dcp_plain");
  std::string file = read_file(folder.path() / "__3_0.distcp");
  // The data of the item at byte 5992: behind the header of its record, the
  // record's name and its padding.
  const std::size_t header =
      file.rfind("PK\x03\x04", file.find("data/0", 5992));
  const auto size_at = [&](std::size_t place) {
    return static_cast<unsigned char>(file[place]) +
           256u * static_cast<unsigned char>(file[place + 1]);
  };
  const std::size_t at =
      header + 30 + size_at(header + 26) + size_at(header + 28);
  file[at] = static_cast<char>(~file[at]);
  write_file(folder.path() / "__3_0.distcp", file);
  const Verification bad = verify(must(Checkpoint::open(folder.path())));
  EXPECT_EQ(good.records, bad.records);
  EXPECT_FALSE(bad.findings.empty());
}

// Issue 16: its chunks referred to a file that was not kept, or to the next.
TEST(Distributed, APartThatDoesNotFitIsNoOtherPart) {
  const TemporaryFolder folder = scratch_folder();
  const auto part = [](std::string_view header, std::string_view bytes) {
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size() & 0xff);
    file[1] = static_cast<char>(header.size() >> 8);
    return file + std::string(header) + std::string(bytes);
  };
  const auto write = [&](std::string_view name, std::string_view file) {
    write_file(folder.path() / name, std::string(file));
  };
  write("1.safetensors",
        part(R"({"__metadata__":{"DCP_SHARDING_INFO":"{}"},)"
             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
             "aaaabbbb"));
  write("2.safetensors",
        part(R"({"__metadata__":{"DCP_SHARDING_INFO":)"
             R"("{\"a\":{\"saved_offsets\":[1]}}"},)"
             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("b":{"dtype":"I32","shape":[1],"data_offsets":[4,8]}})",
             "AAAABBBB"));
  write("3.safetensors",
        part(R"({"__metadata__":{"DCP_SHARDING_INFO":"{}"},)"
             R"("c":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             "cccc"));
  const Checkpoint checkpoint = must(Checkpoint::open(folder.path()));
  const std::string problem =
      "2.safetensors has another dtype or number of dimensions for it than the "
      "files before";
  EXPECT_THAT(shown(checkpoint),
              ElementsAre("error bad_chunks [b]: " + problem));
  EXPECT_EQ(values_of(checkpoint, tensor(checkpoint, "a")), "aaaaAAAA");
  EXPECT_EQ(tensor(checkpoint, "b").problem, problem);
  EXPECT_EQ(values_of(checkpoint, tensor(checkpoint, "c")), "cccc");
}

TEST(Distributed, EveryPrefixOfTheMetadataIsRefused) {
  const CopiedFolder folder("dcp_plain");
  const std::string metadata = read_file(data("dcp_plain") / ".metadata");
  for (std::size_t size = 0; size < metadata.size(); size += 7) {
    write_file(folder.path() / ".metadata", metadata.substr(0, size));
    EXPECT_FALSE(Checkpoint::open(folder.path())) << size;
  }
}

// Neither a crash nor bytes outside the folder, whatever it says.
TEST(Distributed, AFlippedByteOfTheMetadataDoesNoHarm) {
  const CopiedFolder folder("dcp_plain");
  const std::string metadata = read_file(data("dcp_plain") / ".metadata");
  for (std::size_t at = 0; at < metadata.size(); ++at) {
    std::string flipped = metadata;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x11);
    write_file(folder.path() / ".metadata", flipped);
    const Result<Checkpoint> checkpoint = Checkpoint::open(folder.path());
    if (!checkpoint)
      continue;
    for (const Tensor& each : checkpoint->tensors())
      if (each.readable() && each.bytes() < 10'000)
        (void)digest_tensor(TensorReader(*checkpoint), each);
  }
}

}  // namespace
}  // namespace postflight
