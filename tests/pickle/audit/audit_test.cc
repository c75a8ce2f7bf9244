#include "pickle/audit/audit.h"

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

// CPython's reader in Python takes the end of the input for that of a line.
TEST(Audit, CountsANameWithoutANewline) {
  const auto verdict_of = [](std::string_view bytes) {
    Machine machine;
    EXPECT_FALSE(machine.load(as_bytes(bytes)));
    return audit(machine).verdict();
  };
  EXPECT_EQ(verdict_of("(Vid\nios\nsystemX").lead()->message,
            "loading it would call os.system, which runs programs");
  EXPECT_EQ(verdict_of("cos\nsystemX").safety(), Safety::kDangerous);
  EXPECT_EQ(verdict_of("cantigravityX").lead()->message,
            "loading it would import antigravity., which runs programs");
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
        NameCase{"torch._utils", "_import_dotted_name", Trust::kDangerous},
        NameCase{"torch", "FloatStorage", Trust::kTorch},
        NameCase{"torch", "load", Trust::kDangerous},
        NameCase{"torch.hub", "load", Trust::kDangerous},
        NameCase{"torch.nn.modules.linear", "Linear", Trust::kUnknown},
        NameCase{"os.path", "join", Trust::kDangerous},
        NameCase{"osmosis", "join", Trust::kUnknown},
        NameCase{"subprocess", "Popen", Trust::kDangerous},
        NameCase{"__main__", "Model", Trust::kUnknown},
        NameCase{"", "", Trust::kUnknown},
        // dotted, and handed out by a module that imports it
        NameCase{"builtins", "eval.__call__", Trust::kDangerous},
        NameCase{"builtins", "list.__class__", Trust::kDangerous},
        NameCase{"torch", "utils.collect_env.run", Trust::kDangerous},
        NameCase{"torch.serialization", "os.system", Trust::kDangerous},
        NameCase{"torch.serialization", "os", Trust::kDangerous},
        NameCase{"pathlib", "Path.unlink", Trust::kUnknown},
        NameCase{"zoneinfo", "ZoneInfo._unpickle", Trust::kPlain},
        NameCase{"m", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r", Trust::kDangerous},
        // Python 2's names
        NameCase{"copy_reg", "constructor", Trust::kDangerous},
        NameCase{"exceptions", "ValueError", Trust::kPlain},
        NameCase{"commands", "getoutput", Trust::kDangerous},
        NameCase{"__builtin__", "reduce", Trust::kDangerous},
        NameCase{"cPickle", "loads", Trust::kDangerous},
        NameCase{"urllib", "urlopen", Trust::kDangerous},
        NameCase{"urlparse", "ParseResult", Trust::kPlain},
        // by function, not by module
        NameCase{"uuid", "UUID", Trust::kPlain},
        NameCase{"uuid", "_get_command_stdout", Trust::kDangerous},
        NameCase{"imaplib", "IMAP4_stream", Trust::kDangerous},
        NameCase{"logging.config", "listen", Trust::kDangerous},
        NameCase{"logging", "FileHandler", Trust::kDangerous},
        NameCase{"logging", "Handler", Trust::kUnknown},
        NameCase{"numpy.f2py.crackfortran", "getlincoef", Trust::kDangerous},
        NameCase{"torch.utils.collect_env", "run", Trust::kDangerous},
        NameCase{"zipimport", "zipimporter", Trust::kDangerous},
        NameCase{"atexit", "register", Trust::kDangerous},
        NameCase{"pandas", "read_pickle", Trust::kDangerous},
        NameCase{"hydra.utils", "instantiate", Trust::kDangerous},
        NameCase{"subprocess", "CalledProcessError", Trust::kPlain},
        NameCase{"http.client", "RemoteDisconnectedError", Trust::kUnknown},
        // not by a prefix or a suffix
        NameCase{"__torch__evil", "f", Trust::kUnknown},
        NameCase{"__torch__.evil", "f", Trust::kUnknown},
        NameCase{"numpy.dtypes", "Float64DType", Trust::kPlain},
        NameCase{"numpy.dtypes", "EvilDType", Trust::kUnknown},
        NameCase{"builtins", "di", Trust::kUnknown}));

// What torch's weights-only reader allows by itself.
TEST(Audit, TrustsWhatTorchAllows) {
  const auto trusted = [](const std::string& module, const std::string& name) {
    EXPECT_EQ(audited(fmt::format("GLOBAL '{}' '{}' STOP", module, name))
                  .audit.verdict()
                  .safety(),
              Safety::kSafe)
        << module << " " << name;
  };
  const std::vector<std::string> types = {
      "Double", "Float", "Half", "BFloat16", "Long",
      "Int",    "Short", "Char", "Byte",     "Bool"};
  for (const std::string& type : types) {
    for (const char* const module :
         {"torch", "torch.cuda", "torch.sparse", "torch.cuda.sparse"})
      trusted(module, type + "Tensor");
    trusted("torch", type + "Storage");
    trusted("torch.cuda", type + "Storage");
  }
  for (const char* const name :
       {"strided", "sparse_coo", "channels_last", "contiguous_format",
        "preserve_format", "float8_e8m0fnu", "uint7", "per_tensor_affine",
        "Size", "device", "ComplexFloatStorage", "QUInt4x2Storage"})
    trusted("torch", name);
  trusted("torch._tensor", "_rebuild_from_type_v2");
  trusted("torch.storage", "UntypedStorage");
  trusted("torch.nn.parameter", "Parameter");
}

struct EffectCase {
  const char* assembly;
  Safety safety;
};

class EffectOf : public testing::TestWithParam<EffectCase> {};

TEST_P(EffectOf, Call) {
  EXPECT_EQ(audited(GetParam().assembly).audit.verdict().safety(),
            GetParam().safety)
      << GetParam().assembly;
}

INSTANTIATE_TEST_SUITE_P(
    Calls, EffectOf,
    testing::Values(
        // a callable as an argument is a call in waiting
        EffectCase{"GLOBAL 'functools' 'partial' GLOBAL 'builtins' 'int' "
                   "TUPLE1 REDUCE STOP",
                   Safety::kSafe},
        EffectCase{"GLOBAL 'functools' 'partial' GLOBAL 'm' 'f' TUPLE1 REDUCE "
                   "STOP",
                   Safety::kRunsCode},
        EffectCase{"GLOBAL 'functools' 'partial' GLOBAL 'builtins' 'int' "
                   "TUPLE1 REDUCE MARK GLOBAL 'builtins' 'getattr' EMPTY_TUPLE "
                   "EMPTY_DICT NONE TUPLE BUILD STOP",
                   Safety::kDangerous},
        EffectCase{"GLOBAL 'functools' 'reduce' GLOBAL 'operator' 'or_' "
                   "GLOBAL 'builtins' 'int' GLOBAL 'builtins' 'str' TUPLE2 "
                   "TUPLE2 REDUCE STOP",
                   Safety::kSafe},
        EffectCase{"GLOBAL 'functools' 'reduce' GLOBAL 'operator' 'attrgetter' "
                   "EMPTY_LIST TUPLE2 REDUCE STOP",
                   Safety::kDangerous},
        EffectCase{"GLOBAL 'builtins' 'map' GLOBAL 'builtins' 'str' EMPTY_LIST "
                   "TUPLE2 REDUCE STOP",
                   Safety::kSafe},
        EffectCase{"GLOBAL 'builtins' 'map' GLOBAL 'os' 'system' EMPTY_LIST "
                   "TUPLE2 REDUCE STOP",
                   Safety::kDangerous},
        EffectCase{"GLOBAL 'torch.storage' '_load_from_bytes' STOP",
                   Safety::kDangerous},
        EffectCase{"GLOBAL 'operator' 'attrgetter' UNICODE 'a.b' TUPLE1 REDUCE "
                   "STOP",
                   Safety::kSafe},
        EffectCase{"GLOBAL 'operator' 'attrgetter' UNICODE 'a.__globals__' "
                   "TUPLE1 REDUCE STOP",
                   Safety::kDangerous},
        EffectCase{"GLOBAL 'operator' 'methodcaller' UNICODE 'a' TUPLE1 REDUCE "
                   "STOP",
                   Safety::kDangerous},
        // members of enumerations, and attributes of unknown classes
        EffectCase{"GLOBAL 'builtins' 'getattr' GLOBAL 're' 'RegexFlag' "
                   "UNICODE 'IGNORECASE' TUPLE2 REDUCE STOP",
                   Safety::kSafe},
        EffectCase{"GLOBAL 'builtins' 'getattr' GLOBAL 'mmengine' 'Config' "
                   "UNICODE 'fromfile' TUPLE2 REDUCE STOP",
                   Safety::kRunsCode},
        EffectCase{"GLOBAL 'builtins' 'getattr' GLOBAL 'pathlib' 'Path' "
                   "UNICODE 'unlink' TUPLE2 REDUCE STOP",
                   Safety::kRunsCode},
        EffectCase{"GLOBAL 'builtins' 'getattr' GLOBAL 'builtins' 'list' "
                   "UNICODE '__class__' TUPLE2 REDUCE STOP",
                   Safety::kDangerous},
        EffectCase{"GLOBAL 'builtins' 'getattr' GLOBAL 'zoneinfo' 'ZoneInfo' "
                   "UNICODE '_unpickle' TUPLE2 REDUCE UNICODE 'UTC' NEWTRUE "
                   "TUPLE2 REDUCE STOP",
                   Safety::kSafe},
        // what a class, a function or everybody's value is changed to
        EffectCase{"GLOBAL 'collections' 'Counter' NONE EMPTY_DICT TUPLE2 "
                   "BUILD STOP",
                   Safety::kDangerous},
        EffectCase{"GLOBAL 'operator' 'getitem' GLOBAL 'typing' 'List' "
                   "GLOBAL 'builtins' 'int' TUPLE2 REDUCE NONE EMPTY_DICT "
                   "TUPLE2 BUILD STOP",
                   Safety::kDangerous},
        EffectCase{"GLOBAL 'torch.jit._pickle' 'restore_type_tag' GLOBAL "
                   "'fractions' 'Fraction' UNICODE '' TUPLE2 REDUCE NONE "
                   "EMPTY_DICT TUPLE2 BUILD STOP",
                   Safety::kDangerous},
        EffectCase{"GLOBAL 'logging' 'getLogger' UNICODE 'a' TUPLE1 REDUCE "
                   "STOP",
                   Safety::kSafe},
        EffectCase{"GLOBAL 'logging' 'getLogger' UNICODE 'a' TUPLE1 REDUCE "
                   "EMPTY_DICT BUILD STOP",
                   Safety::kDangerous},
        EffectCase{"GLOBAL 'collections' 'OrderedDict' EMPTY_TUPLE REDUCE "
                   "EMPTY_DICT UNICODE 'extend' GLOBAL 'builtins' 'list' "
                   "SETITEM BUILD STOP",
                   Safety::kRunsCode},
        EffectCase{"GLOBAL 'collections' 'OrderedDict' EMPTY_TUPLE REDUCE "
                   "EMPTY_DICT UNICODE 'kind' GLOBAL 'builtins' 'list' "
                   "SETITEM BUILD STOP",
                   Safety::kSafe},
        EffectCase{"GLOBAL 'builtins' 'type' NONE TUPLE1 REDUCE STOP",
                   Safety::kSafe},
        EffectCase{"GLOBAL 'builtins' 'type' BININT1 1 TUPLE1 REDUCE STOP",
                   Safety::kRunsCode},
        EffectCase{"GLOBAL 'builtins' 'type' UNICODE 'X' EMPTY_TUPLE "
                   "EMPTY_DICT TUPLE3 REDUCE STOP",
                   Safety::kRunsCode},
        // torch's
        EffectCase{"GLOBAL 'torch._tensor' '_rebuild_from_type_v2' GLOBAL "
                   "'torch._utils' '_rebuild_tensor_v2' GLOBAL 'torch' "
                   "'Tensor' EMPTY_TUPLE TUPLE3 REDUCE STOP",
                   Safety::kSafe},
        EffectCase{"GLOBAL 'torch._tensor' '_rebuild_from_type_v2' GLOBAL "
                   "'builtins' 'type' GLOBAL 'torch' 'Tensor' EMPTY_TUPLE "
                   "TUPLE3 REDUCE STOP",
                   Safety::kRunsCode},
        EffectCase{"UNICODE 'storage' GLOBAL 'torch' 'FloatStorage' TUPLE2 "
                   "BINPERSID STOP",
                   Safety::kSafe},
        EffectCase{"UNICODE 'mine' BINPERSID STOP", Safety::kUnknown},
        // what readers take differently
        EffectCase{"GLOBAL 'builtins' 'list' EMPTY_LIST REDUCE STOP",
                   Safety::kUnknown},
        EffectCase{"GLOBAL 'builtins' 'list' MARK APPENDS STOP",
                   Safety::kRunsCode}));

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
