#include "stream/codec/sealed_blocks.h"

#include "stream/round_trip.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace postflight {
namespace {

constexpr std::size_t kChecksumFront = 4;
constexpr std::size_t kChecksumBlock = 4 + 4 + 8;  // size, contents, tag

TransformChain checksum() {
  return chain({"stream.checksum@postflight/1:block=4"});
}

// "aaaabbbbcc" as blocks "aaaa", "bbbb" and "cc".
std::string three_blocks() {
  return encoded(checksum(), "aaaabbbbcc");
}

std::string block(int number) {
  return three_blocks().substr(
      kChecksumFront + static_cast<std::size_t>(number) * kChecksumBlock,
      kChecksumBlock);
}

TEST(Checksum, IsLaidOutAsDescribed) {
  const std::string data = three_blocks();
  EXPECT_EQ(data.size(), kChecksumFront + 2 * kChecksumBlock + 4 + 2 + 8);
  EXPECT_EQ(data.substr(0, 4), "PFc1");
  EXPECT_EQ(block(0).substr(0, 8), std::string("\4\0\0\0aaaa", 8));
  EXPECT_EQ(block(2).substr(0, 6), std::string("\2\0\0\x80"
                                               "cc",
                                               6));
}

TEST(Checksum, SaysWhichBlockIsDamaged) {
  std::string data = three_blocks();
  data[kChecksumFront + kChecksumBlock + 5] ^= 1;
  EXPECT_EQ(decoded(checksum(), data),
            (Drained{"aaaa",
                     "block 1, 4 bytes at byte 24: checksum mismatch: it was "
                     "damaged or moved"}));
}

TEST(Checksum, NoticesBlocksThatAreMovedRepeatedOrMissing) {
  const std::string front = "PFc1";
  const auto error = [&](const std::string& blocks) {
    return decoded(checksum(), front + blocks).error;
  };
  EXPECT_EQ(error(block(0) + block(1) + block(2)), "");
  EXPECT_EQ(error(block(1) + block(0) + block(2)),
            "block 0, 4 bytes at byte 8: checksum mismatch: it was "
            "damaged or moved");
  EXPECT_EQ(error(block(0) + block(0) + block(2)),
            "block 1, 4 bytes at byte 24: checksum mismatch: it was "
            "damaged or moved");
  EXPECT_EQ(error(block(0) + block(2)),
            "block 1, 2 bytes at byte 24: checksum mismatch: it was "
            "damaged or moved");
  EXPECT_EQ(error(block(0) + block(1)),
            "the stream is truncated in block 2 after byte 36, decoded to 8 "
            "bytes");
  EXPECT_EQ(error(block(0) + block(1) + block(2) + block(2)),
            "bytes follow the last block at byte 50");
}

TEST(Checksum, SaysThatAStreamIsAnother) {
  EXPECT_EQ(decoded(checksum(), "something else"),
            (Drained{"",
                     "not a checksum stream: it does not begin with "
                     "\"PFc1\""}));
}

TEST(Checksum, RefusesBlocksThatAreTooLarge) {
  EXPECT_EQ(
      decoded(checksum(), std::string("PFc1\1\0\0\1rest", 12)),
      (Drained{
          "",
          "block 0 at byte 4 claims 16777217 bytes, more than the "
          "16777216 allowed; it is damaged, or not a stream of this kind"}));
}

TransformChain aead(const std::string& cipher) {
  return chain({"stream.aead@postflight/1:block=4,cipher=" + cipher});
}

TEST(Aead, ShowsNothingOfItsInput) {
  const std::string text(4000, 'a');
  for (const char* cipher : {"aes-256-gcm", "chacha20-poly1305"}) {
    const std::string data = encoded(
        chain({fmt::format("stream.aead@postflight/1:cipher={}", cipher)}),
        text);
    EXPECT_EQ(data.size(), 40 + 4 + text.size() + 16);
    EXPECT_EQ(data.find("aaa"), data.npos);
  }
}

TEST(Aead, UsesAFreshKeyForEachStream) {
  EXPECT_NE(encoded(aead("aes-256-gcm"), "same"),
            encoded(aead("aes-256-gcm"), "same"));
}

TEST(Aead, IsReadWhateverCipherTheReaderWasTold) {
  EXPECT_EQ(decoded(aead("aes-256-gcm"),
                    encoded(aead("chacha20-poly1305"), "some text")),
            Drained{"some text"});
}

TEST(Aead, NoticesAWrongKey) {
  const SecretKey other = must(SecretKey::from_hex(std::string(64, 'f')));
  const TransformChain wrong =
      chain({"stream.aead@postflight/1"}, {.key = &other});
  EXPECT_EQ(
      decoded(wrong, encoded(aead("aes-256-gcm"), "some text")),
      (Drained{"",
               "block 0, 4 bytes at byte 44: authentication failed: the key "
               "is wrong, or it was damaged or moved"}));
}

TEST(Aead, NoticesBlocksThatAreMovedRepeatedOrMissing) {
  for (const char* cipher : {"aes-256-gcm", "chacha20-poly1305"}) {
    const std::string data = encoded(aead(cipher), "aaaabbbbcc");
    const std::string front = data.substr(0, 40);
    const std::string a = data.substr(40, 24);
    const std::string b = data.substr(64, 24);
    const std::string c = data.substr(88);
    const auto error = [&](const std::string& blocks) {
      return decoded(aead(cipher), front + blocks).error;
    };
    EXPECT_EQ(error(a + b + c), "");
    EXPECT_EQ(error(b + a + c),
              "block 0, 4 bytes at byte 44: authentication failed: the key is "
              "wrong, or it was damaged or moved");
    EXPECT_EQ(
        error(a + a + c),
        "block 1, 4 bytes at byte 68: authentication failed: it was damaged "
        "or moved");
    EXPECT_EQ(
        error(a + c),
        "block 1, 2 bytes at byte 68: authentication failed: it was damaged "
        "or moved");
    EXPECT_EQ(error(a + b),
              "the stream is truncated in block 2 after byte 88, decoded to 8 "
              "bytes");
    // A stream of its own is not joined to another.
    const std::string other = encoded(aead(cipher), "aaaabbbbcc");
    EXPECT_NE(error(a + other.substr(64)), "");
  }
}

TEST(Aead, RefusesACipherItDoesNotKnow) {
  std::string data = encoded(aead("aes-256-gcm"), "text");
  data[4] = 9;
  EXPECT_EQ(decoded(aead("aes-256-gcm"), data),
            (Drained{"",
                     "the stream is encrypted with an unknown cipher, "
                     "number 9"}));
  EXPECT_EQ(decoded(aead("aes-256-gcm"), std::string(40, 'x')),
            (Drained{"",
                     "not an encrypted stream: it does not begin with "
                     "\"PFa1\""}));
}

TEST(SecretKey, IsReadFromAFileOfBytesOrDigits) {
  const TemporaryFolder folder = scratch_folder();
  const std::string digits = std::string(62, '0') + "fF";
  std::string raw(32, '\0');
  raw.back() = '\xff';
  write_file(folder.path() / "digits", digits);
  write_file(folder.path() / "line", digits + "\n");
  write_file(folder.path() / "raw", raw);
  for (const char* name : {"digits", "line", "raw"})
    EXPECT_EQ(as_text(must(SecretKey::read(folder.path() / name)).bytes()),
              raw);
  for (const std::string& bad : {std::string(), raw.substr(1), raw + "more",
                                 digits + "\n\n", std::string(64, 'g')}) {
    write_file(folder.path() / "bad", bad);
    EXPECT_EQ(
        message_of(SecretKey::read(folder.path() / "bad")),
        (folder.path() / "bad").string() +
            " is not a key file: it must contain 32 bytes or 64 hexadecimal "
            "digits; make one with: openssl rand -hex 32");
  }
}

TEST(SecretKey, SaysWhatIsWrongWithoutShowingIt) {
  EXPECT_EQ(message_of(SecretKey::from_hex("abc")),
            "a key is 64 hexadecimal digits, not 3 characters; make one with: "
            "openssl rand -hex 32");
  EXPECT_EQ(message_of(SecretKey::from_hex(std::string(63, 'a') + "g")),
            "a key is 64 hexadecimal digits; character 63 or 64 is not one");
}

}  // namespace
}  // namespace postflight
