#include "stream/extension/registry.h"

#include "stream/codec/built_in.h"
#include "stream/round_trip.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;

std::vector<std::string> names(const ExtensionRegistry& registry) {
  std::vector<std::string> names;
  for (const ExtensionType& type : registry.types())
    names.push_back(type.registry_name);
  return names;
}

std::string refusal(std::string_view descriptor,
                    std::string_view parameters = "") {
  static const ExtensionRegistry registry = built_in_registry();
  TransformSettings settings;
  settings.parameters = must(TransformParameters::parse(parameters));
  return message_of(registry.from_descriptor(descriptor, settings));
}

TEST(ExtensionDescriptor, HasANameADomainAndAVersion) {
  EXPECT_EQ(must(parse_descriptor("stream.zstd/1")),
            (ExtensionDescriptor{"stream.zstd", "1"}));
  EXPECT_EQ(must(parse_descriptor("stream.x-y_z@my.org/1.2")),
            (ExtensionDescriptor{"stream.x-y_z@my.org", "1.2"}));
  EXPECT_EQ(must(parse_descriptor("stream.zstd")),
            (ExtensionDescriptor{"stream.zstd", ""}));
  for (const std::string bad :
       {"", "/1", "a/", "a b/1", "@d/1", "a@/1", "a@b@c/1", "a/1/2", "a/\n"})
    EXPECT_EQ(message_of(parse_descriptor(bad)),
              "\"" + bad +
                  "\" is not a transform; write name/version, such as "
                  "stream.zstd/1");
}

TEST(ExtensionRegistry, KnowsWhatIsBuiltIn) {
  EXPECT_THAT(
      names(built_in_registry()),
      ElementsAre("stream.aead@postflight", "stream.checksum@postflight",
                  "stream.lz4@postflight", "stream.rot13", "stream.zstd"));
}

TEST(ExtensionRegistry, MakesThemFromDescriptors) {
  const ExtensionRegistry registry = built_in_registry();
  const std::vector<std::string> descriptors = {"stream.zstd/1",
                                                "stream.rot13/1.7"};
  const auto made = must(registry.from_descriptor_list(descriptors));
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0]->descriptor(), "stream.zstd/1");
  EXPECT_EQ(made[1]->descriptor(), "stream.rot13/1.7");
}

TEST(ExtensionRegistry, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(
      refusal("stream.zst/1"),
      "unknown transform stream.zst; known are "
      "stream.aead@postflight, stream.checksum@postflight, "
      "stream.lz4@postflight, stream.rot13, stream.zstd; plug-ins can add "
      "others");
  EXPECT_EQ(refusal("stream.zstd@other/1").substr(0, 36),
            "unknown transform stream.zstd@other;");
  EXPECT_EQ(refusal("stream.zstd"),
            "stream.zstd has no version; write stream.zstd/1");
  EXPECT_EQ(refusal("stream.zstd/2"),
            "version 2 of stream.zstd is unsupported; use 1");
  EXPECT_EQ(refusal("stream.zstd/10"),
            "version 10 of stream.zstd is unsupported; use 1");
  EXPECT_EQ(refusal("stream.zstd/one"),
            "stream.zstd/one: the version is not a number");
  EXPECT_EQ(refusal("stream.zstd/99999999999999999999"),
            "stream.zstd/99999999999999999999: the version is not a number");
  EXPECT_EQ(refusal("stream.zstd/1"), "no error");
  EXPECT_EQ(refusal("stream.zstd/1.0.9"), "no error");
}

TEST(ExtensionRegistry, ChecksParameters) {
  EXPECT_EQ(refusal("stream.rot13/1", "level=1"),
            "stream.rot13 has no parameters");
  EXPECT_EQ(refusal("stream.zstd/1", "lvl=1"),
            "stream.zstd has no parameter lvl, only level, threads, long, "
            "checksum");
  EXPECT_EQ(
      refusal("stream.zstd/1", "level=23"),
      "stream.zstd: level=23 is out of range; level must be a number from "
      "-50 to 22");
  EXPECT_EQ(
      refusal("stream.zstd/1", "threads=many"),
      "stream.zstd: threads=many is out of range; threads must be a number "
      "from 1 to 256");
  EXPECT_EQ(refusal("stream.lz4@postflight/1", "level=13"),
            "stream.lz4@postflight: level=13 is out of range; level must be a "
            "number from 0 to 12");
  EXPECT_EQ(
      refusal("stream.checksum@postflight/1", "block=0"),
      "stream.checksum@postflight: block=0 is out of range; block must be a "
      "number from 1 to 16777216");
  EXPECT_EQ(refusal("stream.aead@postflight/1"),
            "stream.aead@postflight needs a key; give --key-file FILE or set "
            "POSTFLIGHT_KEY");
  const ExtensionRegistry registry = built_in_registry();
  EXPECT_EQ(message_of(registry.from_descriptor(
                "stream.aead@postflight/1",
                {.parameters = must(TransformParameters::parse("cipher=des")),
                 .key = &test_key()})),
            "stream.aead@postflight: cipher=des is unknown; cipher must be "
            "aes-256-gcm or chacha20-poly1305");
}

TEST(TransformParameters, AreNamesAndValues) {
  EXPECT_EQ(message_of(TransformParameters::parse("level")),
            "\"level\" is not a parameter; write name=value, such as level=9");
  EXPECT_EQ(message_of(TransformParameters::parse("level=1,level=2")),
            "level is given twice");
  EXPECT_EQ(must(TransformParameters::parse("a=1,b=c=d")).all().back().second,
            "c=d");
}

// A registry for tests, with nothing but the example registered.
TEST(ExtensionRegistry, TakesOthers) {
  ExtensionRegistry registry;
  ExtensionType type = {.registry_name = "stream.example@test",
                        .version = 3,
                        .summary = "an example"};
  const ExtensionRegistry known = built_in_registry();
  for (const ExtensionType& built_in : known.types())
    if (built_in.registry_name == "stream.rot13")
      type.from_descriptor = built_in.from_descriptor;
  EXPECT_EQ(message_of(registry.add(type)), "no error");
  EXPECT_EQ(message_of(registry.add(type)),
            "there already is a transform stream.example@test");
  type.registry_name = "stream.example/1";
  EXPECT_EQ(message_of(registry.add(type)),
            "stream.example/1 is not a transform name: it must not include a "
            "version");
  EXPECT_EQ(message_of(registry.from_descriptor("stream.example@test/3")),
            "no error");
  EXPECT_EQ(message_of(registry.from_descriptor("stream.rot13/1")),
            "unknown transform stream.rot13; known are "
            "stream.example@test; plug-ins can add others");
}

}  // namespace
}  // namespace postflight
