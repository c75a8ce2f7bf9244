// Real files come back byte for byte: CPython and torch wrote them.

#include "checkpoint/zip/directory.h"
#include "pickle/machine.h"
#include "pickle/writing/writer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace postflight {
namespace {

namespace fs = std::filesystem;

std::string contents_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// All files below a folder of tests/data for which `wanted` holds.
template <class Wanted>
std::vector<fs::path> samples(std::string_view folder, Wanted wanted) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(fs::path(TEST_DATA) / folder))
    if (entry.is_regular_file() && wanted(entry.path()))
      found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

// Reads the pickle at the front of `bytes` and writes it again in its own
// protocol. Returns how long it was.
std::uint64_t expect_same_bytes(Bytes bytes, Dialect dialect) {
  Machine machine;
  const Result<Pickle> read = machine.load(bytes);
  if (!read) {
    ADD_FAILURE() << read.error().message();
    return 0;
  }
  const Result<std::string> again = write_pickle(
      read->root, {.protocol = read->protocol, .dialect = dialect});
  if (!again) {
    ADD_FAILURE() << again.error().message();
    return 0;
  }
  const std::string_view original = as_text(bytes).substr(0, read->size);
  const auto differ = std::ranges::mismatch(original, *again).in1;
  EXPECT_TRUE(original == *again)
      << "differs from byte " << differ - original.begin() << " on";
  return read->size;
}

TEST(RecorderWriter, WritesRealDumpsByteForByte) {
  const std::vector<fs::path> dumps = samples("flight", [](const fs::path& p) {
    return p.filename().string().find("_trace_rank_") != std::string::npos;
  });
  EXPECT_GE(dumps.size(), 144u);
  for (const fs::path& dump : dumps) {
    SCOPED_TRACE(dump);
    const std::string bytes = contents_of(dump);
    EXPECT_EQ(expect_same_bytes(as_bytes(bytes), Dialect::kRecorder),
              bytes.size());
  }
}

TEST(Writer, WritesRealCheckpointsByteForByte) {
  const auto is_wanted = [](const fs::path& path) {
    // Cut off, so it has no directory; written by torch in C++; in protocols
    // that are only read.
    constexpr std::string_view kLeftOut[] = {
        "truncated.pt",   "torchscript.pt", "proto5.pt",
        "pyvalues_p1.pt", "pyvalues_p3.pt", "pyvalues_p5.pt"};
    return path.extension() == ".pt" &&
           std::ranges::count(kLeftOut, path.filename()) == 0 &&
           contents_of(path).starts_with("PK");
  };
  int protocol_4 = 0;
  std::vector<fs::path> files = samples("ckpt", is_wanted);
  std::ranges::copy(samples("ckpt_more", is_wanted), std::back_inserter(files));
  EXPECT_GE(files.size(), 50u);
  for (const fs::path& file : files) {
    SCOPED_TRACE(file);
    const std::string archive = contents_of(file);
    const Result<ZipDirectory> directory =
        ZipDirectory::read(as_bytes(archive), {});
    ASSERT_TRUE(directory.has_value()) << directory.error().message();
    const ZipEntry* const entry =
        directory->find(std::string(directory->root().value()) + "/data.pkl");
    if (entry == nullptr)
      continue;
    const Result<Contents> contents = directory->contents(*entry);
    ASSERT_TRUE(contents.has_value()) << contents.error().message();
    const Bytes bytes = contents->bytes();
    EXPECT_EQ(expect_same_bytes(bytes, Dialect::kPython), bytes.size());
    protocol_4 += as_text(bytes)[1] == 4;
  }
  EXPECT_GE(protocol_4, 2);
}

TEST(Writer, WritesLegacyCheckpointsByteForByte) {
  // Five pickles one after the other, then the storages.
  for (const char* name : {"ckpt/legacy.pt", "ckpt/legacy_list.pt"}) {
    SCOPED_TRACE(name);
    const std::string bytes = contents_of(fs::path(TEST_DATA) / name);
    Bytes rest = as_bytes(bytes);
    for (int i = 0; i < 5; ++i)
      rest = rest.subspan(expect_same_bytes(rest, Dialect::kPython));
    EXPECT_LT(rest.size(), bytes.size());
  }
}

TEST(Writer, WritesDistributedMetadataByteForByte) {
  const std::vector<fs::path> files = samples("", [](const fs::path& path) {
    return path.filename().string().ends_with(".metadata");
  });
  EXPECT_GE(files.size(), 11u);
  for (const fs::path& file : files) {
    SCOPED_TRACE(file);
    const std::string bytes = contents_of(file);
    EXPECT_EQ(expect_same_bytes(as_bytes(bytes), Dialect::kPython),
              bytes.size());
  }
}

TEST(Writer, WritesAnalyzersDatabasesByteForByte) {
  // Hundreds of kilobytes of protocol 4, so that there are several frames.
  const std::vector<fs::path> files = samples(
      "flight", [](const fs::path& path) { return path.extension() == ".db"; });
  EXPECT_GE(files.size(), 40u);
  for (const fs::path& file : files) {
    SCOPED_TRACE(file);
    const std::string bytes = contents_of(file);
    EXPECT_EQ(expect_same_bytes(as_bytes(bytes), Dialect::kPython),
              bytes.size());
  }
}

}  // namespace
}  // namespace postflight
