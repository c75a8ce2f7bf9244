#include "pickle/names/known_names.h"

#include <array>

namespace postflight {
namespace {

using namespace known;

// Functions of numbers, which pickle by their names.
constexpr std::string_view kUniversalFunctions =
    "add subtract multiply divide true_divide floor_divide "
    "negative positive power float_power remainder mod fmod "
    "divmod absolute fabs rint sign heaviside conjugate conj "
    "exp exp2 log log2 log10 expm1 log1p sqrt square cbrt "
    "reciprocal gcd lcm sin cos tan arcsin arccos arctan "
    "arctan2 hypot sinh cosh tanh arcsinh arccosh arctanh "
    "degrees radians deg2rad rad2deg bitwise_and bitwise_or "
    "bitwise_xor invert left_shift right_shift greater "
    "greater_equal less less_equal not_equal equal logical_and "
    "logical_or logical_xor logical_not maximum minimum fmax "
    "fmin isfinite isinf isnan isnat signbit copysign nextafter "
    "spacing modf ldexp frexp floor ceil trunc matmul logaddexp "
    "logaddexp2";

// Kept apart from what makes empty arrays to be given a state.
constexpr KnownName kStateless{Trust::kPlain, Rule::kStateless, {}};

constexpr std::array kPackageNames = {
    NameRow{"numpy", kUniversalFunctions, kPlainShared},
    NameRow{"numpy.core._multiarray_umath", kUniversalFunctions, kPlainShared},
    NameRow{"numpy._core._multiarray_umath", kUniversalFunctions, kPlainShared},
    NameRow{
        "numpy",
        "bool bool_ bool8 byte bytes_ cdouble cfloat clongdouble "
        "complex128 complex256 complex64 csingle datetime64 double flexible "
        "float128 float16 float32 float64 floating generic half inexact int16 "
        "int32 int64 int8 int_ intc integer intp long longdouble longlong "
        "number object_ short signedinteger single str_ string_ timedelta64 "
        "ubyte uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong "
        "unicode_ unsignedinteger ushort void character complexfloating "
        "record poly1d",
        kPlain},
    NameRow{"numpy", "dtype", {Trust::kPlain, Rule::kDtype, {}}},
    NameRow{"numpy.core.multiarray", "_reconstruct", depends(Rule::kArray)},
    NameRow{"numpy.core.multiarray",
            "scalar",
            {Trust::kPlain, Rule::kScalar, {}, true}},
    NameRow{"numpy._core.multiarray", "_reconstruct", depends(Rule::kArray)},
    NameRow{"numpy._core.multiarray",
            "scalar",
            {Trust::kPlain, Rule::kScalar, {}, true}},
    NameRow{"numpy.core.numeric", "_frombuffer", kPlain},
    NameRow{"numpy._core.numeric", "_frombuffer", kPlain},
    NameRow{"numpy.core._internal", "_convert_to_stringdtype_kwargs", kPlain},
    NameRow{"numpy._core._internal", "_convert_to_stringdtype_kwargs", kPlain},
    NameRow{"numpy.core._multiarray_umath", "_ufunc_reconstruct", kReaches},
    NameRow{"numpy._core._multiarray_umath", "_ufunc_reconstruct", kReaches},
    NameRow{"numpy.core", "_ufunc_reconstruct _ufunc_reduce", kReaches},
    NameRow{"numpy._core", "_ufunc_reconstruct _ufunc_reduce", kReaches},
    NameRow{"numpy", "ndarray recarray matrix", kStateless},
    NameRow{"numpy.matrixlib.defmatrix", "matrix", kStateless},
    NameRow{"numpy.core.records", "record", kPlain},
    NameRow{"numpy.core.records", "recarray", kStateless},
    NameRow{"numpy._core.records", "record", kPlain},
    NameRow{"numpy._core.records", "recarray", kStateless},
    NameRow{"numpy.rec", "record", kPlain},
    NameRow{"numpy.rec", "recarray", kStateless},
    NameRow{"numpy.ma.core", "MaskedArray mvoid", kStateless},
    NameRow{"numpy.ma.core", "MaskedConstant", kPlain},
    NameRow{"numpy.ma.core", "_mareconstruct", depends(Rule::kMaskedArray)},
    NameRow{"numpy.ma", "MaskedArray", kStateless},
    NameRow{"numpy.lib.polynomial", "poly1d", kPlain},
    NameRow{"numpy.lib._polynomial_impl", "poly1d", kPlain},
    NameRow{"numpy.random._pickle", "__bit_generator_ctor", kPlain},
    NameRow{"numpy.random._pickle", "__generator_ctor __randomstate_ctor",
            depends(Rule::kCallsSecond)},
    NameRow{"numpy.random",
            "__RandomState_ctor RandomState Generator SeedSequence", kPlain},
    NameRow{"numpy.random.mtrand", "RandomState _rand", kPlain},
    NameRow{"numpy.random._generator", "Generator", kPlain},
    NameRow{"numpy.random._mt19937", "MT19937", kPlain},
    NameRow{"numpy.random._pcg64", "PCG64 PCG64DXSM", kPlain},
    NameRow{"numpy.random._philox", "Philox", kPlain},
    NameRow{"numpy.random._sfc64", "SFC64", kPlain},
    NameRow{"numpy.random", "MT19937 PCG64 PCG64DXSM Philox SFC64", kPlain},
    NameRow{"numpy.random.bit_generator",
            "SeedSequence SeedlessSeedSequence __pyx_unpickle_SeedSequence",
            kPlain},
    NameRow{"numpy.dtypes",
            "BoolDType ByteDType BytesDType CLongDoubleDType Complex128DType "
            "Complex64DType DateTime64DType Float16DType Float32DType "
            "Float64DType Int16DType Int32DType Int64DType Int8DType IntDType "
            "LongDType LongDoubleDType LongLongDType ObjectDType ShortDType "
            "StrDType StringDType TimeDelta64DType UByteDType UInt16DType "
            "UInt32DType UInt64DType UInt8DType UIntDType ULongDType "
            "ULongLongDType UShortDType VoidDType",
            kPlainShared},
    NameRow{"numpy", "load", kLoadsPickles},
    NameRow{
        "numpy",
        "save savez savez_compressed savetxt loadtxt genfromtxt fromfile "
        "memmap fromregex recfromcsv recfromtxt DataSource tofile open_memmap",
        kTouchesFiles},
    NameRow{"numpy",
            "vectorize frompyfunc apply_along_axis apply_over_axes "
            "fromfunction piecewise",
            kCalls},
    NameRow{"numpy", "safe_eval lookfor source info", kEvaluates},
    NameRow{"numpy", "mat asmatrix bmat", kEvaluates},
    NameRow{"numpy.matrixlib", kEveryName, kEvaluates},
    NameRow{"numpy.lib.utils", "safe_eval lookfor source", kEvaluates},
    NameRow{"numpy.lib.npyio", kEveryName, kTouchesFiles},
    NameRow{"numpy.lib._npyio_impl", kEveryName, kTouchesFiles},
    NameRow{"numpy.lib.format", kEveryName, kTouchesFiles},
    NameRow{"numpy.lib._datasource", kEveryName, kTouchesFiles},
    NameRow{"numpy.core.memmap", kEveryName, kTouchesFiles},
    NameRow{"numpy._core.memmap", kEveryName, kTouchesFiles},
    NameRow{"numpy.f2py", kEveryName, kEvaluates},
    NameRow{"numpy.distutils", kEveryName, kRunsPrograms},
    NameRow{"numpy.testing", kEveryName, kEvaluates},
    NameRow{"numpy.ctypeslib", kEveryName, kNativeCode},

    NameRow{"requests.models", "Response PreparedRequest", kUnknown},
    NameRow{"requests.cookies", "RequestsCookieJar", kUnknown},
    NameRow{"requests.structures", "CaseInsensitiveDict LookupDict", kUnknown},
    NameRow{"requests", kEveryName, kNetwork},
    NameRow{"aiohttp", kEveryName, kNetwork},
    NameRow{"httpx", kEveryName, kNetwork},
    NameRow{"urllib3", kEveryName, kNetwork},
    NameRow{"boto3", kEveryName, kNetwork},
    NameRow{"botocore", kEveryName, kNetwork},
    NameRow{"paramiko", kEveryName, kNetwork},
    NameRow{"huggingface_hub", kEveryName, kNetwork},
    NameRow{"fsspec", kEveryName, kTouchesFiles},
    NameRow{"smart_open", kEveryName, kTouchesFiles},
    NameRow{"cffi", kEveryName, kNativeCode},
    NameRow{"_cffi_backend", kEveryName, kNativeCode},
    NameRow{"dill", kEveryName, kLoadsPickles},
    NameRow{"cloudpickle.cloudpickle", kEveryName, kEvaluates},
    NameRow{"cloudpickle.cloudpickle_fast", kEveryName, kEvaluates},
    NameRow{"cloudpickle", kEveryName, kLoadsPickles},
    // Its array follows in the stream, as bytes that are no opcodes.
    NameRow{"joblib.numpy_pickle", "NumpyArrayWrapper",
            depends(Rule::kReadsArray)},
    NameRow{"joblib.numpy_pickle", "NDArrayWrapper", kUnknown},
    NameRow{"joblib", kEveryName, kLoadsPickles},
    NameRow{"sklearn.externals.joblib", kEveryName, kLoadsPickles},
    NameRow{"jsonpickle", kEveryName, kLoadsPickles},
    NameRow{"klepto", kEveryName, kLoadsPickles},
    NameRow{"mlflow", kEveryName, kLoadsPickles},
    NameRow{"pandas", "read_pickle to_pickle", kLoadsPickles},
    NameRow{"pandas.io.pickle", kEveryName, kLoadsPickles},
    NameRow{"pandas.compat.pickle_compat", kEveryName, kLoadsPickles},
    NameRow{"pandas", "eval", kEvaluates},
    NameRow{"pandas.core.computation", kEveryName, kEvaluates},
    NameRow{"pandas",
            "read_csv read_table read_excel read_hdf read_html read_json "
            "read_parquet read_feather read_orc read_sas read_spss read_sql "
            "read_stata read_xml read_fwf ExcelFile ExcelWriter HDFStore",
            kTouchesFiles},
    NameRow{"pandas.io", kEveryName, kTouchesFiles},
    NameRow{"scipy.io", kEveryName, kTouchesFiles},
    NameRow{"scipy.weave", kEveryName, kNativeCode},
    NameRow{"tensorflow.keras.models", kEveryName, kEvaluates},
    NameRow{"tensorflow.saved_model", kEveryName, kEvaluates},
    NameRow{"tensorflow.io", kEveryName, kTouchesFiles},
    NameRow{"tensorflow", "py_function numpy_function", kCalls},
    NameRow{"tensorflow", "load_library load_op_library", kNativeCode},
    NameRow{"tensorflow.python.framework.load_library", kEveryName,
            kNativeCode},
    NameRow{"keras.models", kEveryName, kEvaluates},
    NameRow{"keras.saving", kEveryName, kEvaluates},
    NameRow{"keras.src.saving", kEveryName, kEvaluates},
    NameRow{"transformers.dynamic_module_utils", kEveryName, kEvaluates},
    NameRow{"hydra", kEveryName, kReaches},
    NameRow{"omegaconf.omegaconf", "OmegaConf", kTouchesFiles},
    NameRow{"fire", kEveryName, kReaches},
    NameRow{"yaml", kEveryName, kReaches},
    NameRow{"ruamel", kEveryName, kReaches},
    NameRow{"jinja2", kEveryName, kEvaluates},
    NameRow{"mako", kEveryName, kEvaluates},
    NameRow{"sympy.core.sympify", kEveryName, kEvaluates},
    NameRow{"sympy.parsing", kEveryName, kEvaluates},
    NameRow{"sympy.utilities", kEveryName, kEvaluates},
    NameRow{"sympy", "sympify S parse_expr lambdify", kEvaluates},
    NameRow{"numexpr", kEveryName, kEvaluates},
    NameRow{"IPython", kEveryName, kEvaluates},
    NameRow{"ipykernel", kEveryName, kEvaluates},
    NameRow{"asteval", kEveryName, kEvaluates},
    NameRow{"numba", kEveryName, kNativeCode},
    NameRow{"Cython", kEveryName, kNativeCode},
    NameRow{"pyximport", kEveryName, kNativeCode},
    NameRow{"triton", kEveryName, kNativeCode},
};

}  // namespace

std::span<const NameRow> package_names() {
  return kPackageNames;
}

}  // namespace postflight
