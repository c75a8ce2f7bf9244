#include "checkpoint/verification/verification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_files.h"
#include "checkpoint/torch_maker.h"

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string recorded(std::string_view name) {
  return read_file(fmt::format("{}/{}", TEST_DATA, name));
}

// "kind: message (where)" of each finding.
std::vector<std::string> in_words(const std::vector<Finding>& findings) {
  std::vector<std::string> words;
  for (const Finding& finding : findings)
    words.push_back(fmt::format("{} {}: {} ({})",
                                severity_name(finding.severity), finding.kind,
                                finding.message, finding.where));
  return words;
}

class VerificationTest : public testing::Test {
 protected:
  void add(std::string_view name, std::string_view contents) const {
    write_file(folder_.path() / name, contents);
  }
  Checkpoint folder() const { return must(Checkpoint::open(folder_.path())); }
  Verification of(std::string_view contents) const {
    add("made.pt", contents);
    return verify(must(Checkpoint::open(folder_.path() / "made.pt",
                                        {.context = {.threads = 1}})));
  }
  std::string truncation() const {
    return std::string(
        must(Checkpoint::open(folder_.path() / "made.pt")).truncation());
  }
  std::vector<std::string> findings_of(std::string_view contents) const {
    return in_words(of(contents).findings);
  }

  TemporaryFolder folder_ = scratch_folder();
};

// Where the header of a record lies, and where its line of the directory does:
// the first and the last place where its name stands.
std::size_t header_of(const std::string& file, std::string_view name) {
  return file.find(name) - 30;
}
std::size_t entry_of(const std::string& file, std::string_view name) {
  return file.rfind(name) - 46;
}

void flip(std::string& file, std::size_t at, int bit = 1) {
  file[at] = static_cast<char>(file[at] ^ bit);
}

std::string safetensors(std::string_view tensor) {
  const std::string header = fmt::format(
      R"({{"{}":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}})", tensor);
  return bytes_of(std::vector<std::uint64_t>{header.size()}) + header + "x";
}

TEST_F(VerificationTest, SeesEveryFlippedByteOfAnArchive) {
  const std::string whole = recorded("ckpt_more/tied.pt");
  add("made.pt", whole);
  EXPECT_THAT(findings_of(whole), IsEmpty());
  std::vector<std::size_t> unseen;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flip(flipped, i, 1 << i % 8);
    add("made.pt", flipped);
    const Result<Checkpoint> checkpoint = Checkpoint::open(
        folder_.path() / "made.pt", {.context = {.threads = 1}});
    if (!checkpoint)
      continue;
    const Verification found = verify(*checkpoint);
    if (std::ranges::none_of(found.findings, [](const Finding& finding) {
          return finding.severity == Severity::kError;
        }))
      unseen.push_back(i);
  }
  EXPECT_THAT(unseen, IsEmpty());
}

TEST_F(VerificationTest, SeesAHeaderThatStatesOtherSizes) {
  std::string file = recorded("ckpt_more/tied.pt");
  flip(file, header_of(file, "tied/version") + 22);
  EXPECT_THAT(findings_of(file),
              ElementsAre("error header_mismatch: its own header and the "
                          "directory disagree (tied/version)"));
}

TEST_F(VerificationTest, SeesADescriptorThatStatesOtherSizes) {
  std::string file = recorded("ckpt_more/tied.pt");
  flip(file, file.find("PK\7\10") + 12);
  EXPECT_THAT(findings_of(file),
              ElementsAre("error descriptor_mismatch: the data descriptor "
                          "after its bytes does not match the directory "
                          "(tied/data.pkl)"));
}

TEST_F(VerificationTest, SeesWhatTorchWouldNotHaveWritten) {
  std::string file = recorded("ckpt_more/tied.pt");
  flip(file, entry_of(file, "tied/version") + 13);
  EXPECT_THAT(findings_of(file),
              ElementsAre("error header_changed: its time is not as torch "
                          "writes it: it was changed since, or damaged "
                          "(tied/version)"));
}

TEST_F(VerificationTest, TakesWhatAllRecordsShareForAWritersHabit) {
  std::string file = recorded("ckpt_more/tied.pt");
  for (std::size_t at = file.find("PK\1\2"); at != file.npos;
       at = file.find("PK\1\2", at + 1))
    flip(file, at + 13);
  EXPECT_THAT(findings_of(file),
              ElementsAre("note other_writer: the time of all its records is "
                          "not as torch writes it (made.pt)"));
}

TEST_F(VerificationTest, NamesTheTensorsOfABadRecord) {
  std::string file = recorded("ckpt_more/whole.pt");
  const std::size_t header = header_of(file, "whole/data/2");
  const std::size_t next = header_of(file, "whole/data/3");
  flip(file, (header + next) / 2);
  const std::vector<std::string> found = findings_of(file);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0],
              testing::EndsWith("its bytes have changed; it holds tensor w2 "
                                "(whole/data/2)"));
}

TEST_F(VerificationTest, CountsATensorWhoseRecordIsLost) {
  std::string file = recorded("ckpt_more/whole.pt");
  flip(file, file.find("whole/data/2"), 4);
  const Verification found = of(file);
  EXPECT_EQ(found.tensors, 6U);
  EXPECT_EQ(found.unreadable, 1U);
  EXPECT_THAT(
      in_words(found.findings),
      ElementsAre("error record_unreadable: entry 'whole/data/2': its own "
                  "header calls it 'shole/data/2'; the archive was damaged or "
                  "tampered with (whole/data/2)",
                  "error tensor_unreadable: its record whole/data/2 cannot be "
                  "read (w2)"));
}

// Its items went through a transform that only a plug-in knows.
TEST_F(VerificationTest, CountsATensorWhoseItemsCannotBeOpened) {
  const Verification found =
      verify(must(Checkpoint::open(fmt::format("{}/dcp_chain", TEST_DATA))));
  EXPECT_EQ(found.tensors, 9U);
  EXPECT_EQ(found.unreadable, 9U);
}

TEST_F(VerificationTest, SeesATensorInTwoShards) {
  add("a.safetensors", safetensors("w"));
  add("b.safetensors", safetensors("w"));
  EXPECT_THAT(in_words(verify(folder()).findings),
              ElementsAre("error duplicate_tensor: tensor 'w' is in both "
                          "a.safetensors and b.safetensors (b.safetensors)"));
}

TEST_F(VerificationTest, SeesAShardThatTheIndexDoesNotName) {
  add("a.safetensors", safetensors("w"));
  add("b.safetensors", safetensors("v"));
  add("model.safetensors.index.json",
      R"({"weight_map":{"w":"a.safetensors"}})");
  EXPECT_THAT(in_words(verify(folder()).findings),
              ElementsAre("warning unnamed_shard: the index does not name it, "
                          "so loaders skip it (b.safetensors)"));
}

TEST_F(VerificationTest, MissesNoRank) {
  for (const int rank : {0, 2})
    add(fmt::format("checkpoint_{}.pt", rank),
        recorded(fmt::format("ckpt/ranks/checkpoint_{}.pt", rank)));
  EXPECT_THAT(in_words(verify(folder()).findings),
              ElementsAre("error missing_rank: rank 1 has no file, though rank "
                          "2 has one (checkpoint_1.pt)"));
}

TEST_F(VerificationTest, SaysOnlyOnceThatARankCannotBeRead) {
  for (const int rank : {0, 2})
    add(fmt::format("checkpoint_{}.pt", rank),
        recorded(fmt::format("ckpt/ranks/checkpoint_{}.pt", rank)));
  add("checkpoint_1.pt", "PK");
  const Verification found = verify(folder());
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings[0].kind, "unreadable_rank");
  EXPECT_EQ(found.findings[0].where, "checkpoint_1.pt");
}

TEST_F(VerificationTest, TakesTheRankFileThatTorchWouldTake) {
  add("checkpoint_00.pt", "anything");
  add("checkpoint_0.pt", recorded("ckpt/ranks/checkpoint_0.pt"));
  EXPECT_THAT(in_words(verify(folder()).findings),
              ElementsAre("warning odd_rank_file: torch does not recognise it "
                          "as a rank's file, as its number is not written as "
                          "torch writes it (checkpoint_00.pt)"));
}

TEST_F(VerificationTest, TakesNoOtherMetadataForADistributedCheckpoint) {
  add("a.safetensors", safetensors("w"));
  add("tokenizer.metadata", "{}");
  const Checkpoint checkpoint = folder();
  EXPECT_EQ(checkpoint.format(), Format::kShards);
  EXPECT_EQ(checkpoint.tensors().size(), 1U);
}

TEST_F(VerificationTest, SaysWhereAFileWasCut) {
  const std::string whole = recorded("ckpt_more/tied.pt");
  const auto cut = [&](std::size_t size) {
    add("made.pt", whole.substr(0, size));
    return truncation();
  };
  constexpr std::string_view kAfter =
      " tensors are whole; the writer was probably killed, or the copy was "
      "interrupted";
  EXPECT_EQ(
      cut(entry_of(whole, "tied/version") + 10),
      fmt::format("the file ends inside its directory; 3 of 3{}", kAfter));
  EXPECT_EQ(
      cut(entry_of(whole, "tied/version")),
      fmt::format("the file ends inside its directory; 3 of 3{}", kAfter));
  EXPECT_EQ(
      cut(whole.size() - 1),
      fmt::format("the file ends just after its directory; 3 of 3{}", kAfter));
  EXPECT_EQ(
      cut(header_of(whole, "tied/version") + 10),
      fmt::format("the file ends just before its directory; 3 of 3{}", kAfter));
}

TEST_F(VerificationTest, TakesADamagedDirectoryForNoCut) {
  std::string file = recorded("ckpt_more/tied.pt");
  flip(file, entry_of(file, "tied/version"));
  add("made.pt", file);
  EXPECT_EQ(truncation(),
            "the file has an end record, but its directory is damaged; 3 of 3 "
            "tensors were found whole without it");
}

// What is damaged in the archive of an item is the checkpoint's trouble.
TEST_F(VerificationTest, SeesTheDamagedDirectoryOfAnItem) {
  for (const std::string_view name :
       {".metadata", "__1_0.distcp", "__2_0.distcp", "__3_0.distcp"})
    add(name, recorded(fmt::format("dcp_plain/{}", name)));
  std::string file = recorded("dcp_plain/__0_0.distcp");
  flip(file, file.find("PK\1\2"));
  add("__0_0.distcp", file);
  EXPECT_THAT(in_words(verify(folder()).findings),
              ElementsAre("error truncated: the file has an end record, but "
                          "its directory is damaged; 1 of 1 tensors were found "
                          "whole without it (model.u at (0, 0): "
                          "__0_0.distcp)"));
}

TEST_F(VerificationTest, NamesTheFileThatBreaksOff) {
  const std::string whole = recorded("ckpt_more/tied.pt");
  add("checkpoint_0.pt", whole);
  add("checkpoint_1.pt",
      std::string_view(whole).substr(0, entry_of(whole, "tied/version")));
  EXPECT_THAT(std::string(folder().truncation()),
              testing::StartsWith(
                  "checkpoint_1.pt: the file ends inside its directory; "));
}

// Other writers than torch's state sizes before the bytes and write nothing
// after them.
TEST_F(VerificationTest, CountsWhatIsLeftOfAnArchiveThatWasPackedAgain) {
  Builder builder;
  const Value root = builder.dict();
  for (const std::string_view key : {"0", "1", "2"})
    builder.set_item(
        root, key,
        make_tensor(builder,
                    {.key = key, .count = 100, .shape = {100}, .stride = {1}}));
  std::string file =
      torch_file(root, {.storages = {{"0", std::string(400, 'x')},
                                     {"1", std::string(400, 'y')},
                                     {"2", std::string(400, 'z')}}});
  for (std::size_t at = file.find("PK\3\4"); at != file.npos;
       at = file.find("PK\3\4", at + 1)) {
    // The directory's line has the same name, and CRC and sizes before it.
    const std::size_t size = static_cast<unsigned char>(file[at + 26]);
    const std::string name = file.substr(at + 30, size);
    file.replace(at + 14, 12, file, entry_of(file, name) + 16, 12);
  }
  const std::size_t last = header_of(file, "made/data/2");
  add("made.pt", std::string_view(file).substr(0, last + 100));
  EXPECT_EQ(
      truncation(),
      "the file ends about 492 B before its directory; 2 of 3 tensors "
      "are whole; the writer was probably killed, or the copy was interrupted");
}

}  // namespace
}  // namespace postflight
