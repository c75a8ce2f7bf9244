#include "pickle/audit.h"

#include <gtest/gtest.h>

#include "pickle/assembler.h"

namespace postflight {
namespace {

struct Audited {
  Machine machine;
  Audit audit;
};

Audited audited(std::string_view assembly) {
  Audited result;
  const std::string bytes = pickle(assembly);
  static_cast<void>(result.machine.load(as_bytes(bytes)));
  result.audit = audit(result.machine);
  return result;
}

TEST(Audit, FindsNothingInPlainData) {
  const Audit found = audited("PROTO 2 EMPTY_LIST STOP").audit;
  EXPECT_TRUE(found.globals.empty());
  EXPECT_TRUE(found.calls.empty());
  EXPECT_FALSE(found.runs_code());
}

TEST(Audit, CallsADangerousFunctionDangerous) {
  const Audit found =
      audited("GLOBAL 'os' 'system' BINUNICODE 'id' TUPLE1 REDUCE STOP").audit;
  ASSERT_EQ(found.calls.size(), 1u);
  EXPECT_EQ(found.calls[0].callable, "os.system");
  EXPECT_EQ(found.calls[0].reason, "runs programs");
  EXPECT_EQ(found.worst(), Trust::kDangerous);
}

TEST(Audit, CountsACallWhoseResultIsThrownAway) {
  EXPECT_TRUE(audited("GLOBAL 'os' 'system' EMPTY_TUPLE REDUCE POP NONE STOP")
                  .audit.runs_code());
}

TEST(Audit, CountsWhatRunsBeforeThePickleBreaks) {
  EXPECT_TRUE(audited("GLOBAL 'os' 'system' EMPTY_TUPLE REDUCE APPENDS")
                  .audit.runs_code());
}

TEST(Audit, DoesNotTrustTheResultOfACall) {
  const Audit found =
      audited(
          "GLOBAL 'builtins' 'list' EMPTY_TUPLE REDUCE EMPTY_TUPLE REDUCE STOP")
          .audit;
  ASSERT_EQ(found.calls.size(), 2u);
  EXPECT_EQ(found.calls[1].callable, "the result of a call");
  EXPECT_EQ(found.worst(), Trust::kUnknown);
}

TEST(Audit, TellsExtensionCodesApart) {
  const Audit found =
      audited("EXT1 1 EMPTY_TUPLE REDUCE POP EXT1 2 EMPTY_TUPLE REDUCE STOP")
          .audit;
  ASSERT_EQ(found.calls.size(), 2u);
  EXPECT_EQ(found.calls[0].callable, "extension 1");
  EXPECT_EQ(found.calls[1].callable, "extension 2");
  EXPECT_TRUE(found.runs_code());
}

TEST(Audit, CountsUses) {
  const Audit found =
      audited(
          "GLOBAL 'collections' 'OrderedDict' BINPUT 0 EMPTY_TUPLE REDUCE "
          "POP BINGET 0 EMPTY_TUPLE REDUCE STOP")
          .audit;
  ASSERT_EQ(found.calls.size(), 1u);
  EXPECT_EQ(found.calls[0].uses, 2u);
  ASSERT_EQ(found.globals.size(), 1u);
  EXPECT_EQ(found.globals[0].uses, 1u);
  EXPECT_EQ(found.worst(), Trust::kPlain);
}

TEST(Audit, NoticesStateGivenToAnImportedName) {
  const Audit found =
      audited("GLOBAL 'torch' 'Tensor' EMPTY_DICT BUILD STOP").audit;
  ASSERT_EQ(found.calls.size(), 1u);
  EXPECT_EQ(found.calls[0].making, Making::kTouched);
}

struct NameCase {
  const char* module;
  const char* name;
  Trust trust;
};

class TrustOf : public testing::TestWithParam<NameCase> {};

TEST_P(TrustOf, Name) {
  EXPECT_EQ(judge({GetParam().module, GetParam().name}).trust,
            GetParam().trust);
}

INSTANTIATE_TEST_SUITE_P(
    Names, TrustOf,
    testing::Values(
        NameCase{"collections", "OrderedDict", Trust::kPlain},
        NameCase{"__builtin__", "set", Trust::kPlain},
        NameCase{"builtins", "eval", Trust::kDangerous},
        NameCase{"builtins", "getattr", Trust::kDangerous},
        NameCase{"builtins", "print", Trust::kUnknown},
        NameCase{"torch._utils", "_rebuild_tensor_v2", Trust::kTorch},
        NameCase{"torch._utils", "_import_dotted_name", Trust::kUnknown},
        NameCase{"torch", "FloatStorage", Trust::kTorch},
        NameCase{"torch", "load", Trust::kDangerous},
        NameCase{"torch.hub", "load", Trust::kDangerous},
        NameCase{"torch.nn.modules.linear", "Linear", Trust::kUnknown},
        NameCase{"os.path", "join", Trust::kDangerous},
        NameCase{"osmosis", "join", Trust::kUnknown},
        NameCase{"subprocess", "Popen", Trust::kDangerous},
        NameCase{"__main__", "Model", Trust::kUnknown},
        NameCase{"", "", Trust::kUnknown}));

TEST(Audit, ShortensNamesThatNobodyWouldGive) {
  const std::string name(1000, 'x');
  const Audit found =
      audited(fmt::format("GLOBAL 'm' '{0}' EMPTY_TUPLE REDUCE STOP", name))
          .audit;
  const std::string shortened = std::string(200, 'x') + "… (1000 bytes)";
  ASSERT_EQ(found.globals.size(), 1u);
  EXPECT_EQ(found.globals[0].name, shortened);
  ASSERT_EQ(found.calls.size(), 1u);
  EXPECT_EQ(found.calls[0].callable, "m." + shortened);
}

TEST(Audit, CountsNamesPutTogetherOnTheStack) {
  const std::string name(1000, 'x');
  const std::string assembly = fmt::format(
      "BINUNICODE '{0}' MEMOIZE BINUNICODE '{0}' MEMOIZE "
      "BINGET 0 BINGET 0 STACK_GLOBAL BINGET 0 BINGET 0 STACK_GLOBAL "
      "BINGET 0 BINGET 1 STACK_GLOBAL STOP",
      name);
  const Audit found = audited(assembly).audit;
  ASSERT_EQ(found.globals.size(), 1u);
  EXPECT_EQ(found.globals[0].uses, 3u);
}

}  // namespace
}  // namespace postflight
