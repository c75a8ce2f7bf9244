#include "pickle/audit/effect.h"

#include <gtest/gtest.h>

#include "pickle/assembler.h"
#include "pickle/audit/audit.h"

namespace postflight {
namespace {

SafetyVerdict verdict_on(std::string_view assembly) {
  const std::string bytes = pickle(assembly);
  Machine machine;
  EXPECT_TRUE(machine.load(as_bytes(bytes))) << assembly;
  return audit(machine).verdict();
}

struct CallCase {
  const char* assembly;
  const char* message;  // of what is worst; empty if it is safe
};

class Effects : public testing::TestWithParam<CallCase> {};

TEST_P(Effects, AreThoseOfTheCallWithItsArguments) {
  const SafetyVerdict verdict = verdict_on(GetParam().assembly);
  const Reason* const lead = verdict.lead();
  EXPECT_EQ(lead == nullptr ? "" : lead->message, GetParam().message)
      << GetParam().assembly;
}

// Issue 16: by NumPy, bytes of the pickle as the addresses of objects.
INSTANTIATE_TEST_SUITE_P(
    Numpy, Effects,
    testing::Values(
        CallCase{"GLOBAL 'numpy' 'ndarray' BININT1 1 TUPLE1 GLOBAL 'numpy' "
                 "'dtype' UNICODE 'O' TUPLE1 REDUCE SHORT_BINBYTES 'AAAAAAAA' "
                 "TUPLE3 REDUCE STOP",
                 "loading it would call numpy.ndarray, which is an array over "
                 "memory of its choice"},
        CallCase{"GLOBAL 'copyreg' '__newobj__' MARK GLOBAL 'numpy' 'ndarray' "
                 "BININT1 1 TUPLE1 NONE SHORT_BINBYTES 'A' TUPLE REDUCE STOP",
                 "loading it would call copyreg.__newobj__, which is an array "
                 "over memory of its choice"},
        CallCase{"GLOBAL 'numpy' 'ndarray' BININT1 1 TUPLE1 TUPLE1 REDUCE STOP",
                 ""}));

// A module's own attributes lead out of it; constructors of records do more
// than unpickling does.
INSTANTIATE_TEST_SUITE_P(
    Names, Effects,
    testing::Values(
        CallCase{"UNICODE 'math' UNICODE '__loader__.load_module' STACK_GLOBAL "
                 "UNICODE 'a' TUPLE1 REDUCE STOP",
                 "loading it would call math.__loader__.load_module, which "
                 "reaches any function by its name"},
        CallCase{"GLOBAL 'math' 'sqrt' BININT1 4 TUPLE1 REDUCE STOP", ""},
        CallCase{"GLOBAL 'torch.distributed.device_mesh' 'DeviceMesh' "
                 "EMPTY_TUPLE NEWOBJ STOP",
                 ""},
        CallCase{"GLOBAL 'torch.distributed.device_mesh' 'DeviceMesh' UNICODE "
                 "'cuda' EMPTY_LIST TUPLE2 REDUCE STOP",
                 "loading it would call "
                 "torch.distributed.device_mesh.DeviceMesh"},
        CallCase{"GLOBAL 'itertools' 'dropwhile' GLOBAL 'builtins' 'bool' "
                 "EMPTY_LIST TUPLE2 REDUCE BININT1 1 BUILD STOP",
                 ""},
        CallCase{"GLOBAL 'builtins' 'getattr' GLOBAL 'ssl' 'TLSVersion' "
                 "UNICODE 'TLSv1_2' TUPLE2 REDUCE STOP",
                 ""},
        CallCase{"GLOBAL 'builtins' 'getattr' GLOBAL 'ssl' 'TLSVersion' "
                 "UNICODE 'mro' TUPLE2 REDUCE STOP",
                 "loading it would call builtins.getattr, which talks to the "
                 "network"}));

// An attribute of one plain value, called by another: each would run any method
// of a path if a class could be made of attrgetters.
INSTANTIATE_TEST_SUITE_P(
    Composed, Effects,
    testing::Values(
        CallCase{"MARK GLOBAL 'operator' 'attrgetter' UNICODE 'a' TUPLE1 "
                 "REDUCE LIST STOP",
                 ""},
        CallCase{"GLOBAL 'collections' 'deque' GLOBAL 'operator' 'attrgetter' "
                 "UNICODE 'unlink' TUPLE1 REDUCE TUPLE1 TUPLE1 REDUCE STOP",
                 "loading it would call operator.attrgetter, which reads any "
                 "attribute for whatever is given it"},
        CallCase{"GLOBAL 'argparse' 'Namespace' EMPTY_TUPLE REDUCE EMPTY_DICT "
                 "UNICODE 'key' GLOBAL 'operator' 'attrgetter' UNICODE "
                 "'unlink' TUPLE1 REDUCE SETITEM BUILD STOP",
                 "loading it would call operator.attrgetter, which reads any "
                 "attribute for whatever is given it"},
        CallCase{"GLOBAL 'enum' 'Enum' UNICODE 'C' EMPTY_LIST TUPLE2 REDUCE "
                 "STOP",
                 "loading it would call enum.Enum"},
        CallCase{"GLOBAL 'copyreg' '__newobj__' GLOBAL 'collections' 'Counter' "
                 "TUPLE1 REDUCE STOP",
                 ""},
        CallCase{"GLOBAL 'copyreg' '__newobj__' GLOBAL 'builtins' 'type' "
                 "BININT1 1 TUPLE1 REDUCE TUPLE1 REDUCE STOP",
                 "loading it would call builtins.type"},
        CallCase{"GLOBAL 'copyreg' '__newobj__' GLOBAL 'operator' 'getitem' "
                 "EMPTY_TUPLE REDUCE TUPLE1 REDUCE STOP",
                 "loading it would call copyreg.__newobj__, which makes an "
                 "object of whatever class it is given"},
        CallCase{"GLOBAL 'copy_reg' '_reconstructor' GLOBAL 'collections' "
                 "'Counter' GLOBAL '__builtin__' 'dict' EMPTY_DICT TUPLE3 "
                 "REDUCE STOP",
                 ""},
        CallCase{"GLOBAL 'copy_reg' '_reconstructor' GLOBAL 'm' 'C' GLOBAL "
                 "'__builtin__' 'object' NONE TUPLE3 REDUCE STOP",
                 "loading it would call copy_reg._reconstructor"},
        CallCase{"GLOBAL '_codecs' 'encode' UNICODE 'a' UNICODE 'latin1' "
                 "TUPLE2 REDUCE STOP",
                 ""},
        CallCase{"GLOBAL '_codecs' 'encode' UNICODE 'a' UNICODE 'mine' TUPLE2 "
                 "REDUCE STOP",
                 "loading it would call _codecs.encode, which looks a codec up "
                 "by its name"},
        CallCase{"GLOBAL 'traceback' 'FrameSummary' UNICODE '/etc/passwd' "
                 "BININT1 1 UNICODE 'f' TUPLE3 REDUCE STOP",
                 "loading it would call traceback.FrameSummary"}));

// Looked up in the object itself, whatever its class.
INSTANTIATE_TEST_SUITE_P(
    SpecialNames, Effects,
    testing::Values(
        CallCase{"GLOBAL 'types' 'SimpleNamespace' EMPTY_TUPLE REDUCE "
                 "EMPTY_DICT UNICODE '__array_interface__' BININT1 1 SETITEM "
                 "BUILD STOP",
                 "loading it would call types.SimpleNamespace, which replaces "
                 "a method that is called later"},
        CallCase{"GLOBAL 'types' 'SimpleNamespace' EMPTY_DICT UNICODE "
                 "'__array_interface__' BININT1 1 SETITEM TUPLE1 REDUCE STOP",
                 "loading it would call types.SimpleNamespace, which replaces "
                 "a method that is called later"},
        CallCase{"GLOBAL 'argparse' 'Namespace' EMPTY_TUPLE REDUCE GLOBAL "
                 "'builtins' 'dict' EMPTY_LIST TUPLE1 REDUCE BUILD STOP",
                 "loading it would call argparse.Namespace, which replaces a "
                 "method that is called later"},
        CallCase{"GLOBAL 'argparse' 'Namespace' EMPTY_TUPLE REDUCE NONE "
                 "EMPTY_DICT UNICODE '__dict__' EMPTY_DICT SETITEM TUPLE2 "
                 "BUILD STOP",
                 "loading it would call argparse.Namespace, which replaces a "
                 "method that is called later"}));

constexpr const char* kOdd =
    "loading it would call numpy.dtype, which has a state that NumPy never "
    "writes and would believe";

#define DTYPE(type, state)                                             \
  "GLOBAL 'numpy' 'dtype' UNICODE '" type                              \
  "' NEWFALSE NEWTRUE TUPLE3 REDUCE MARK BININT1 3 UNICODE '|' " state \
  " TUPLE BUILD "
#define OBJECT DTYPE("O8", "NONE NONE NONE BININT -1 BININT -1 BININT1 63")
#define FIELDS(fields) \
  "NONE MARK UNICODE 'a' TUPLE EMPTY_DICT MARK " fields " SETITEMS "

INSTANTIATE_TEST_SUITE_P(
    NumpyDtypes, Effects,
    testing::Values(
        CallCase{OBJECT "STOP", ""},
        CallCase{
            DTYPE("f8", "NONE NONE NONE BININT -1 BININT -1 BININT1 0") "STOP",
            ""},
        CallCase{
            DTYPE("U3", "NONE NONE NONE BININT1 12 BININT1 4 BININT1 8") "STOP",
            ""},
        // An object that is not said to be one: its bytes are an address.
        CallCase{
            DTYPE("O8", "NONE NONE NONE BININT -1 BININT -1 BININT1 0") "STOP",
            kOdd},
        CallCase{
            DTYPE("i8", "NONE NONE NONE BININT -1 BININT -1 BININT1 63") "STOP",
            kOdd},
        CallCase{DTYPE("V8", FIELDS("UNICODE 'a' " OBJECT
                                    "BININT1 0 TUPLE2") "BININT1 8 BININT1 1 "
                                                        "BININT1 27") "STOP",
                 ""},
        CallCase{
            DTYPE(
                "V8",
                FIELDS(
                    "UNICODE 'a' " OBJECT
                    "BININT1 0 TUPLE2") "BININT1 8 BININT1 1 BININT1 0") "STOP",
            kOdd},
        CallCase{DTYPE("V8", FIELDS("UNICODE 'a' " OBJECT
                                    "BININT1 4 TUPLE2") "BININT1 8 BININT1 1 "
                                                        "BININT1 27") "STOP",
                 kOdd},
        // Two fields in one place.
        CallCase{
            DTYPE(
                "V8",
                FIELDS(
                    "UNICODE 'a' " OBJECT "BININT1 0 TUPLE2 UNICODE 'b' " DTYPE(
                        "i8",
                        "NONE NONE NONE BININT -1 BININT -1 "
                        "BININT1 0") "BININT1 0 TUPLE2") "BININT1 8 BININT1 1 "
                                                         "BININT1 27") "STOP",
            kOdd},
        CallCase{
            "GLOBAL 'numpy.core.multiarray' 'scalar' " DTYPE(
                "V8", FIELDS("UNICODE 'a' " OBJECT
                             "BININT1 0 TUPLE2") "BININT1 8 BININT1 1 BININT1 "
                                                 "27") "BINBYTES '12345678' "
                                                       "TUPLE2 REDUCE STOP",
            "loading it would call numpy.core.multiarray.scalar, which "
            "has a state that NumPy never writes and would believe"},
        CallCase{"GLOBAL 'numpy.core.multiarray' '_reconstruct' GLOBAL 'numpy' "
                 "'ndarray' BININT1 0 TUPLE1 UNICODE 'b' TUPLE3 REDUCE STOP",
                 ""},
        CallCase{"GLOBAL 'numpy.core.multiarray' '_reconstruct' GLOBAL 'numpy' "
                 "'ndarray' BININT1 9 TUPLE1 UNICODE 'b' TUPLE3 REDUCE STOP",
                 "loading it would call numpy.core.multiarray._reconstruct"},
        CallCase{"GLOBAL 'numpy.core.multiarray' '_reconstruct' GLOBAL 'numpy' "
                 "'ndarray' BININT1 0 TUPLE1 UNICODE 'b' TUPLE3 REDUCE "
                 "EMPTY_TUPLE BUILD EMPTY_TUPLE BUILD STOP",
                 "loading it would call numpy.core.multiarray._reconstruct"}));

}  // namespace
}  // namespace postflight
