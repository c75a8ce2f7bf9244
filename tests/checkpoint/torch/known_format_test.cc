#include "checkpoint/torch/known_format.h"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "checkpoint/torch/chat_template.h"
#include "checkpoint/torch/script_code.h"

namespace postflight {
namespace {

using namespace std::string_literals;

// "SAFE title" or the first doubt.
std::string judged(std::string_view bytes, std::string_view name = "") {
  const auto format = known_format(as_bytes(bytes), name);
  if (!format)
    return "unknown";
  if (format->doubts.empty())
    return fmt::format("SAFE {}", format->title);
  const Reason& first = format->doubts[0];
  return fmt::format("{} {}", safety_name(first.safety), first.message);
}

std::string number(std::uint64_t value, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i)
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

std::string counted(std::string_view text) {
  return number(text.size(), 8) + std::string(text);
}

std::string reach(std::string_view text) {
  return reach_of_template(text).value_or("nothing");
}

TEST(ChatTemplate, ReachesNothingIfItOnlyShowsMessages) {
  EXPECT_EQ(reach("{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' }}"
                  "{{ m.content | trim }}{% endfor %}"),
            "nothing");
  EXPECT_EQ(reach("{{ messages | selectattr('role', 'equalto', 'user') | "
                  "map(attribute='content') | list }}"),
            "nothing");
  EXPECT_EQ(reach("{{- tools | tojson(indent=4) }}{{ messages[loop.index0 - 1]"
                  ".tool_calls[0]['function'] }}"),
            "nothing");
  EXPECT_EQ(reach("__class__ outside of braces is text"), "nothing");
  EXPECT_EQ(reach("{# __class__ #}"), "nothing");
  EXPECT_EQ(reach(""), "nothing");
  EXPECT_EQ(reach("{"), "nothing");
}

TEST(ChatTemplate, ReachesPythonInManySpellings) {
  EXPECT_EQ(reach("{{ ''.__class__ }}"), "'__'");
  EXPECT_EQ(reach("{{ x['__class__'] }}"), "'__'");
  EXPECT_EQ(reach("{{ x |  attr('a') }}"), "the filter attr");
  EXPECT_EQ(reach("{{ x['\\x5f'] }}"), "an escaped character");
  EXPECT_EQ(reach("{{ x['\\u005f'] }}"), "an escaped character");
  EXPECT_EQ(reach("{{ '%c%c' % (95, 95) }}"), "'%c'");
  EXPECT_EQ(reach("{{ x['_' ~ 'class'] }}"), "a text of underscores");
  EXPECT_EQ(reach("{{ x[a ~ b] }}"), "an attribute whose name is put together");
  EXPECT_EQ(reach("{{ [x] | map(attribute=a ~ b) }}"),
            "an attribute whose name is put together");
  EXPECT_EQ(reach("{% include '/etc/passwd' %}"), "the statement include");
  EXPECT_EQ(reach("{%- import 'a' as b %}"), "the statement import");
  // What closes the block may be in a text, or open a comment.
  EXPECT_EQ(reach("{{ '}}' ~ x.__class__ }}"), "'__'");
  EXPECT_EQ(reach("{{ {'a': {'b': 1}}.__class__ }}"), "'__'");
  EXPECT_EQ(reach("{# {{ ' #}{{ x|attr(y) }}{# ' #}"), "the filter attr");
}

std::string gguf(std::string_view pairs, std::uint64_t count,
                 std::string_view tensors = "",
                 std::uint64_t tensor_count = 0) {
  return "GGUF" + number(3, 4) + number(tensor_count, 8) + number(count, 8) +
         std::string(pairs) + std::string(tensors);
}

TEST(GgufFile, IsJudgedByItsTemplates) {
  const std::string key = counted("tokenizer.chat_template");
  EXPECT_EQ(judged(gguf(key + number(8, 4) + counted("{{ m.content }}"), 1)),
            "SAFE a GGUF file, which holds no pickles");
  const std::string message =
      "RUNS CODE its chat template has '__', by which a template reaches "
      "Python";
  EXPECT_EQ(judged(gguf(key + number(8, 4) + counted("{{ a.__b__ }}"), 1)),
            message);
  EXPECT_EQ(
      judged(gguf(counted("tokenizer.chat_templates") + number(9, 4) +
                      number(8, 4) + number(1, 8) + counted("{{ a.__b__ }}"),
                  1)),
      message);
}

TEST(GgufFile, AccountsForAllItsBytes) {
  const std::string tensor =
      counted("w") + number(1, 4) + number(8, 8) + number(0, 4) + number(0, 8);
  const std::string front = gguf("", 0, tensor, 1);
  const std::string whole =
      front + std::string(31 - (front.size() + 31) % 32 + 32, '\0');
  EXPECT_EQ(judged(whole), "SAFE a GGUF file, which holds no pickles");
  EXPECT_EQ(judged(whole + "evil"), "UNKNOWN 4 bytes follow the last tensor");
  EXPECT_EQ(judged(front),
            "UNKNOWN what it says of itself and its tensors at its front is "
            "damaged");
}

std::string field(int number, std::string_view bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) +
         static_cast<char>(bytes.size()) + std::string(bytes);
}

TEST(OnnxModel, IsJudgedByWhereItsWeightsAre) {
  const std::string version = "\x08\x08";
  const auto model = [&](std::string_view location) {
    return version + field(2, "p") +
           field(7, field(5, field(13,
                                   field(1, "location") + field(2, location))));
  };
  EXPECT_EQ(judged(model("weights.bin")),
            "SAFE an ONNX model, which holds no pickles");
  EXPECT_EQ(judged(model("../w")),
            "DANGEROUS loading it would read ../w, outside its folder");
  EXPECT_EQ(judged(model("/etc/passwd")),
            "DANGEROUS loading it would read /etc/passwd, outside its folder");
}

TEST(OnnxModel, IsReadInAnyOrderAndToItsLastPart) {
  const std::string version = "\x08\x08";
  const std::string swapped =
      field(13, field(2, "/etc/passwd") + field(1, "location"));
  const std::string message =
      "DANGEROUS loading it would read /etc/passwd, outside its folder";
  EXPECT_EQ(judged(field(7, field(5, swapped)) + version + field(2, "p")),
            message);
  EXPECT_EQ(judged(version + field(7, field(15, field(1, swapped)))), message);
}

TEST(KerasModel, IsJudgedByWhatItWouldImport) {
  const auto layer = [](std::string_view module, std::string_view name) {
    return judged(fmt::format(
        R"({{"module":"{}","class_name":"{}","config":{{}}}})", module, name));
  };
  EXPECT_EQ(layer("keras.layers", "Dense"),
            "SAFE the configuration of a Keras model");
  EXPECT_EQ(layer("keras.layers", "Lambda"),
            "RUNS CODE loading it with Keras would run the code of a Lambda "
            "layer");
  EXPECT_EQ(layer("keras.layers", "TorchModuleWrapper"),
            "RUNS CODE loading it with Keras would run the code of a "
            "TorchModuleWrapper layer");
  EXPECT_EQ(layer("os", "system"),
            "RUNS CODE loading it with Keras would import os");
  // It downloads a file and unpacks it.
  EXPECT_EQ(layer("keras.utils", "get_file"),
            "RUNS CODE loading it with Keras would import keras.utils");
  EXPECT_EQ(judged("{\"class_name\":\"\\u004cambda\"}"),
            "RUNS CODE loading it with Keras would run the code of a Lambda "
            "layer");
}

TEST(ModelSettings, AreJudgedByTheCodeTheyName) {
  EXPECT_EQ(judged(R"({"hidden_size": 8})"), "unknown");
  EXPECT_EQ(judged(R"({"auto_map": {"AutoModel": "modeling_x.X"}})"),
            "UNKNOWN loading it with trust_remote_code would import "
            "modeling_x.X, which is not looked into");
  EXPECT_EQ(judged(R"({"chat_template": "{{ m.content }}"})"),
            "SAFE the configuration of a tokenizer");
  EXPECT_EQ(judged(R"({"chat_template": [{"name": "a", "template":
                       "{{ m.__class__ }}"}]})"),
            "RUNS CODE its chat template has '__', by which a template reaches "
            "Python");
  EXPECT_EQ(judged("a: 1\nmodel:\n  _target_: os.system\n", "m/config.yaml"),
            "DANGEROUS loading it with Hydra would call os.system, which runs "
            "programs");
  EXPECT_EQ(judged("_target_: my.Model\n", "config.yml"),
            "RUNS CODE loading it with Hydra would call my.Model");
  EXPECT_EQ(judged("_target_: torch.optim.Adam\n", "config.yml"),
            "SAFE settings in YAML");
}

TEST(ScriptCode, IsJudgedByTheOperatorsItCalls) {
  const auto harm = [](std::string_view code) {
    const auto reason = harm_of_script(as_bytes(code));
    return reason ? reason->message : "none";
  };
  EXPECT_TRUE(is_script_code("m/code/__torch__/a.py"));
  EXPECT_FALSE(is_script_code("m/data.py"));
  EXPECT_EQ(harm("    _0 = torch.add(x, y)\n    return ops.prim.f(_0)\n"),
            "none");
  EXPECT_EQ(harm("    torch.save(x, \"/tmp/a\")\n"),
            "its TorchScript calls torch.save, which reads or writes files");
  EXPECT_EQ(harm("  _1 = ops.aten.from_file(\"/etc/passwd\")"),
            "its TorchScript calls ops.aten.from_file, which reads or writes "
            "files");
  EXPECT_EQ(harm("  _1 = ops.mine.run(x)"),
            "its TorchScript calls operators of mine, which another library "
            "brings along");
}

}  // namespace
}  // namespace postflight
