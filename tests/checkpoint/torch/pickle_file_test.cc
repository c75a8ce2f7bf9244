#include "checkpoint/torch/pickle_file.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "checkpoint/zip_maker.h"
#include "pickle/assembler.h"

namespace postflight {
namespace {

std::vector<std::string> places(const PickleFile& file) {
  std::vector<std::string> names;
  for (const LoadedPickle& loaded : file.pickles)
    names.push_back(loaded.where);
  return names;
}

// A sample of tests/data and what is in it, which points into it.
struct Sample {
  explicit Sample(const std::string& name)
      : bytes(MappedFile::open(std::string(TEST_DATA "/") + name)),
        file(PickleFile::read(bytes->bytes(), {})) {}

  Result<MappedFile> bytes;
  Result<PickleFile> file;
};

Result<PickleFile> read_pickles(std::string_view bytes) {
  return PickleFile::read(as_bytes(bytes), {});
}

TEST(PickleFile, FindsTheRecordOfACheckpoint) {
  const Sample sample("ckpt/basic.pt");
  ASSERT_TRUE(sample.file);
  EXPECT_EQ(places(*sample.file), (std::vector<std::string>{"basic/data.pkl"}));
  EXPECT_FALSE(sample.file->runs_code());
  EXPECT_TRUE(sample.file->intact());
}

TEST(PickleFile, InflatesDeflatedRecords) {
  const Sample sample("ckpt_more/rezipped_deflated.pt");
  ASSERT_TRUE(sample.file);
  ASSERT_EQ(sample.file->pickles.size(), 1u);
  EXPECT_EQ(sample.file->pickles[0].offset, std::nullopt);
  EXPECT_FALSE(sample.file->pickles[0].error);
}

TEST(PickleFile, FindsEveryItemOfADistributedCheckpoint) {
  const Sample sample("dcp_plain/__0_0.distcp");
  ASSERT_TRUE(sample.file);
  ASSERT_GT(sample.file->pickles.size(), 1u);
  EXPECT_EQ(sample.file->pickles[0].where, "item 0: archive/data.pkl");
}

TEST(PickleFile, StopsBeforeTheStoragesOfALegacyFile) {
  const Sample sample("ckpt/legacy.pt");
  ASSERT_TRUE(sample.file);
  EXPECT_EQ(sample.file->pickles.size(), 5u);
  EXPECT_TRUE(sample.file->findings.empty());
}

TEST(PickleFile, SaysWhatTheEvilFileWouldRun) {
  const Sample sample("ckpt/evil_reduce.pt");
  ASSERT_TRUE(sample.file);
  EXPECT_EQ(sample.file->worst(), Trust::kDangerous);
}

TEST(PickleFile, ReadsTheFirstRecordOfATruncatedArchive) {
  const Sample sample("ckpt_more/truncated.pt");
  ASSERT_TRUE(sample.file);
  EXPECT_EQ(places(*sample.file), (std::vector<std::string>{"whole/data.pkl"}));
  EXPECT_FALSE(sample.file->pickles[0].error);
  EXPECT_FALSE(sample.file->intact());
}

TEST(PickleFile, ReadsPicklesBackToBack) {
  const Result<PickleFile> file = read_pickles("N.K\x07.");
  ASSERT_TRUE(file);
  ASSERT_EQ(file->pickles.size(), 2u);
  EXPECT_EQ(file->pickles[1].offset, 2u);
  EXPECT_EQ(file->pickles[1].pickle.root.integer(), 7);
}

TEST(PickleFile, WarnsOfWhatFollowsThePickle) {
  const Result<PickleFile> file = read_pickles(std::string_view("N.\0\0\0", 5));
  ASSERT_TRUE(file);
  ASSERT_EQ(file->findings.size(), 1u);
  EXPECT_EQ(file->findings[0].message,
            "3 zero bytes after the pickle are not a pickle");
  EXPECT_TRUE(file->intact());
}

TEST(PickleFile, KeepsTheAuditOfAPickleThatBreaksOff) {
  const Result<PickleFile> file = read_pickles(
      "\x80\x02"
      "cos\nsystem\n)R");
  ASSERT_TRUE(file);
  EXPECT_EQ(*file->pickles[0].error, "byte 15: the pickle ends without STOP");
  EXPECT_TRUE(file->runs_code());
}

TEST(PickleFile, JudgesAnOldPickleThatBreaksOffByWhatItRan) {
  const Result<PickleFile> file = read_pickles("cos\nsystem\n(S'id'\ntR");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->verdict().safety(), Safety::kDangerous);
  EXPECT_EQ(file->verdict().lead()->message,
            "loading it would call os.system, which runs programs");
  EXPECT_FALSE(read_pickles("class of\n1984\nwas here"));
}

TEST(PickleFile, LooksBehindAFrameThatEndsInsideAnOpcode) {
  const std::string payload = "cos\nsystem\n(Vid\ntR";
  const std::string bytes = std::string("\x80\4\x95\3\0\0\0\0\0\0\0X", 12) +
                            static_cast<char>(payload.size() + 2) +
                            std::string(5, '\0') + payload + ".";
  const Result<PickleFile> file = read_pickles(bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->verdict().safety(), Safety::kDangerous);
  EXPECT_EQ(file->verdict().lead()->message,
            "loading it would call os.system, which runs programs");
}

TEST(PickleFile, LooksIntoATensorThatPython3PickledForPython2) {
  const Result<PickleFile> file = read_pickles(
      "\x80\2ctorch.storage\n_load_from_bytes\nc_codecs\nencode\n"
      "(V\\u0080\\u0002N.\nVlatin1\ntR\x85R.");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pickles.size(), 2u);
  EXPECT_EQ(file->verdict().safety(), Safety::kSafe);
}

Safety verdict_of(const std::string& bytes) {
  return read_pickles(bytes)->verdict().safety();
}

// An array of two bytes as joblib writes it: how many bytes fill up to the
// alignment, these, and the elements.
std::string joblib_array(std::string_view elements,
                         std::string_view reads_as = "u1") {
  return pickle(fmt::format(
      "PROTO 2 GLOBAL 'joblib.numpy_pickle' 'NumpyArrayWrapper' EMPTY_TUPLE "
      "NEWOBJ EMPTY_DICT MARK BINUNICODE 'subclass' GLOBAL 'numpy' 'ndarray' "
      "BINUNICODE 'shape' BININT1 2 TUPLE1 BINUNICODE 'order' BINUNICODE 'C' "
      "BINUNICODE 'dtype' GLOBAL 'numpy' 'dtype' BINUNICODE '{}' NEWFALSE "
      "NEWTRUE TUPLE3 REDUCE BINUNICODE 'allow_mmap' NEWTRUE BINUNICODE "
      "'numpy_array_alignment_bytes' BININT1 16 SETITEMS BUILD RAW '{}' STOP",
      reads_as, elements));
}

TEST(PickleFile, ReadsArraysAsJoblibDoes) {
  const std::string padding = "\\x02\\xff\\xff";
  EXPECT_EQ(verdict_of(joblib_array(padding + "ab")), Safety::kSafe);
  // What follows is read, too.
  EXPECT_EQ(verdict_of(joblib_array(padding + "ab") + "cos\nsystem\n)R."),
            Safety::kDangerous);
  EXPECT_EQ(verdict_of(joblib_array(padding + "abcos\\nsystem\\n)R")),
            Safety::kDangerous);
  // Shorter than it says, and a type that is none.
  EXPECT_EQ(verdict_of(joblib_array(padding)), Safety::kRunsCode);
  EXPECT_EQ(verdict_of(joblib_array(padding + "ab", "x")), Safety::kRunsCode);
}

// To pickle.load, the elements are opcodes.
TEST(PickleFile, ReadsArraysOfJoblibAsPlainReadersDo) {
  EXPECT_EQ(
      verdict_of(joblib_array("(cos\\nsystem\\n)R" + std::string(29, '0'))),
      Safety::kDangerous);
}

// An i or a c at the front would be followed by the name of a function.
TEST(PickleFile, TakesTheNumbersOfAStorageForNumbers) {
  const auto pickles_with = [](std::string_view storage) {
    const std::string file =
        make_zip({{.name = "a/data.pkl", .contents = "\x80\2}."},
                  {.name = "a/data/0", .contents = std::string(storage)}});
    return read_pickles(file)->pickles.size();
  };
  EXPECT_EQ(pickles_with("i\x99\x01\xc0\x02\xd7\x06\xbf"), 1u);
  EXPECT_EQ(pickles_with("cabc"), 1u);
  EXPECT_EQ(pickles_with("N]b?"), 1u);
  EXPECT_EQ(pickles_with("(ios\nsystem\n"), 2u);
}

TEST(PickleFile, WarnsOfBillionLaughs) {
  std::string bytes = "]";
  for (int i = 0; i < 40; ++i)
    bytes += "2\x86";
  const Result<PickleFile> file = read_pickles(bytes + ".");
  ASSERT_TRUE(file);
  ASSERT_EQ(file->findings.size(), 1u);
  EXPECT_EQ(file->findings[0].kind, "expands");
  EXPECT_TRUE(file->verdict().is_safe());
}

TEST(PickleFile, DoubtsBytesAfterThePickle) {
  EXPECT_EQ(read_pickles("N.????")->verdict().safety(), Safety::kUnknown);
}

TEST(PickleFile, IsUnknownIfThereIsADoubt) {
  Result<PickleFile> file = read_pickles("N.");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->verdict().is_safe());
  file->doubts.push_back({Safety::kUnknown, "kind", "sentence", "place"});
  EXPECT_EQ(file->verdict().safety(), Safety::kUnknown);
}

// As pickle.dumps(tensor) writes it.
std::string nested(std::string_view inner) {
  std::string bytes =
      "\x80\x03"
      "ctorch.storage\n_load_from_bytes\nC";
  bytes += static_cast<char>(inner.size());
  bytes += inner;
  return bytes + "\x85R.";
}

TEST(PickleFile, JudgesNestedPicklesByWhatTheyHold) {
  const std::string harmless = nested("\x80\x02N.");
  const Result<PickleFile> good = read_pickles(harmless);
  ASSERT_TRUE(good);
  EXPECT_EQ(good->pickles.size(), 2u);
  EXPECT_EQ(good->pickles[1].where, "nested pickle 0");
  EXPECT_FALSE(good->runs_code());

  const std::string hostile = nested(
      "\x80\x02"
      "cos\nsystem\n)R.");
  EXPECT_EQ(read_pickles(hostile)->worst(), Trust::kDangerous);

  const std::string unreadable = nested("\xff\xff");
  EXPECT_EQ(read_pickles(unreadable)->worst(), Trust::kDangerous);
}

struct Refusal {
  std::string_view bytes;
  std::string_view message;
};

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, WithAHint) {
  const Result<PickleFile> file = read_pickles(GetParam().bytes);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Refused,
    testing::Values(
        Refusal{"", "the file is empty; was its writer killed?"},
        Refusal{"\x1f\x8b\x08 and so on",
                "no pickle starts here; it seems to be a gzip file; unpack it "
                "first (gzip -d)"},
        Refusal{"<html>",
                "no pickle starts here; it seems to be a web page or XML; was "
                "it downloaded from the right address?"},
        Refusal{"hello",
                "no pickle starts here; it seems to be something else"}));

}  // namespace
}  // namespace postflight
