// The table of names, by module. A name is plain or torch's only if no call of
// it, with arguments made of such names and of data, can run code, open a file
// or import by name; where that depends on the arguments the row has a rule.
// Names are public facts about CPython, numpy, torch and other packages,
// collected from their sources and from what pickles in the wild call.

#include "pickle/known_names.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

namespace postflight {
namespace {

constexpr std::string_view kAll = "*";

struct Row {
  std::string_view module;
  std::string_view names;  // separated by spaces; kAll: also in submodules
  KnownName known;
};

constexpr KnownName kPlain{Trust::kPlain, Rule::kNone, {}};
// Returns something that is not new: one of its arguments, a class, or a value
// that the whole process shares.
constexpr KnownName kPlainShared{Trust::kPlain, Rule::kNone, {}, true};
constexpr KnownName kTorch{Trust::kTorch, Rule::kNone, {}};

constexpr KnownName kUnknown{};

constexpr KnownName does(std::string_view effect, Rule rule = Rule::kNone) {
  return {Trust::kDangerous, rule, effect};
}
constexpr KnownName depends(Rule rule) {
  return {Trust::kUnknown, rule, {}};
}

constexpr KnownName kRunsPrograms = does("runs programs");
constexpr KnownName kEvaluates = does("evaluates Python source");
constexpr KnownName kTouchesFiles = does("reads, writes or deletes files");
constexpr KnownName kNetwork = does("talks to the network");
constexpr KnownName kReaches = does("reaches any function by its name");
constexpr KnownName kCalls = does("calls the function that it is given");
constexpr KnownName kRegisters =
    does("registers functions that are called later");
constexpr KnownName kLoadsPickles = does("loads another pickle");
constexpr KnownName kNativeCode = does("runs native code");
constexpr KnownName kProcess = does("changes or ends the running process");

constexpr std::array kRows = {
    // --- Python's own types
    Row{"builtins",
        "bool bytearray bytes complex dict enumerate float frozenset int list "
        "long memoryview object range reversed set slice str tuple unicode "
        "xrange zip",
        kPlain},
    Row{"builtins",
        "Ellipsis NotImplemented NoneType ellipsis None True False abs chr "
        "divmod hash hex len oct ord pow repr round sorted sum unichr bin "
        "ascii",
        kPlainShared},
    Row{"builtins",
        "ArithmeticError AssertionError AttributeError BaseException "
        "BaseExceptionGroup BlockingIOError BrokenPipeError BufferError "
        "BytesWarning ChildProcessError ConnectionAbortedError "
        "ConnectionError ConnectionRefusedError ConnectionResetError "
        "DeprecationWarning EOFError EncodingWarning EnvironmentError "
        "Exception ExceptionGroup FileExistsError FileNotFoundError "
        "FloatingPointError FutureWarning GeneratorExit IOError ImportError "
        "ImportWarning IndentationError IndexError InterruptedError "
        "IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError "
        "ModuleNotFoundError NameError NotADirectoryError NotImplementedError "
        "OSError OverflowError PendingDeprecationWarning PermissionError "
        "ProcessLookupError PythonFinalizationError RecursionError "
        "ReferenceError ResourceWarning RuntimeError RuntimeWarning "
        "StandardError StopAsyncIteration StopIteration SyntaxError "
        "SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError "
        "UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError "
        "UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning "
        "WindowsError ZeroDivisionError",
        kPlain},
    Row{"builtins", "eval exec execfile compile", kEvaluates},
    Row{"builtins", "getattr",
        does("reaches any function by its name", Rule::kAttribute)},
    Row{"builtins",
        "setattr delattr hasattr __import__ globals locals vars dir reload "
        "super __build_class__ __loader__ __spec__ __dict__",
        kReaches},
    Row{"builtins", "apply", kCalls},
    Row{"builtins", "map filter reduce",
        does("calls the function that it is given", Rule::kCallsFirst)},
    Row{"builtins", "open file input raw_input breakpoint help", kTouchesFiles},
    Row{"builtins", "exit quit copyright credits license", kProcess},
    Row{"builtins", "type", depends(Rule::kType)},
    Row{"builtins", "iter", depends(Rule::kIterator)},
    Row{"types", "SimpleNamespace", kPlain},
    Row{"types",
        "GenericAlias UnionType NoneType EllipsisType "
        "NotImplementedType MappingProxyType",
        kPlainShared},
    Row{"types", "CodeType FunctionType LambdaType", kEvaluates},
    Row{"types", "MethodType ModuleType new_class prepare_class coroutine",
        kReaches},
    Row{"new", "code function", kEvaluates},
    Row{"new", "instance classobj module instancemethod", kReaches},
    Row{"collections",
        "ChainMap Counter OrderedDict UserDict UserList UserString "
        "defaultdict deque",
        kPlain},
    Row{"_collections", "OrderedDict defaultdict deque _deque_iterator",
        kPlain},
    Row{"copyreg", "_reconstructor __newobj__ __newobj_ex__", kPlain},
    Row{"copyreg", "pickle constructor add_extension remove_extension",
        kRegisters},
    Row{"_codecs", "encode", kPlain},
    Row{"_codecs",
        "decode latin_1_encode latin_1_decode utf_8_encode "
        "utf_8_decode ascii_encode ascii_decode escape_decode",
        kPlain},
    Row{"codecs", "encode decode", kPlain},
    Row{"codecs", "open EncodedFile", kTouchesFiles},
    Row{"codecs", "register register_error lookup", kRegisters},
    Row{"_codecs", "register register_error", kRegisters},
    Row{"itertools",
        "chain combinations combinations_with_replacement compress count "
        "cycle islice permutations product repeat zip_longest pairwise "
        "batched",
        kPlain},
    Row{"itertools", "filterfalse takewhile dropwhile starmap",
        depends(Rule::kCallsFirst)},
    Row{"itertools", "accumulate groupby", depends(Rule::kCallsSecond)},
    Row{"functools", "partial", depends(Rule::kPartial)},
    Row{"_functools", "partial", depends(Rule::kPartial)},
    Row{"functools", "reduce",
        does("calls the function that it is given", Rule::kCallsFirst)},
    Row{"_functools", "reduce",
        does("calls the function that it is given", Rule::kCallsFirst)},
    Row{"functools",
        "partialmethod singledispatch singledispatchmethod lru_cache cache "
        "cached_property cmp_to_key wraps update_wrapper total_ordering",
        kCalls},
    Row{"operator",
        "itemgetter getitem abs add and_ concat contains countOf eq floordiv "
        "ge gt index indexOf inv invert is_ is_not le length_hint lshift lt "
        "matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor",
        kPlainShared},
    Row{"_operator",
        "itemgetter getitem abs add and_ concat contains countOf eq floordiv "
        "ge gt index indexOf inv invert is_ is_not le length_hint lshift lt "
        "matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor",
        kPlainShared},
    Row{"operator", "attrgetter",
        does("reaches any function by its name", Rule::kAttributeGetter)},
    Row{"_operator", "attrgetter",
        does("reaches any function by its name", Rule::kAttributeGetter)},
    Row{"operator", kAll, kReaches},
    Row{"_operator", kAll, kReaches},
    Row{"typing",
        "Any AnyStr Optional Union Tuple List Dict Set FrozenSet Deque "
        "DefaultDict OrderedDict Counter ChainMap Type Callable Iterable "
        "Iterator Sequence MutableSequence Mapping MutableMapping Collection "
        "Container Hashable Sized Generator Awaitable Coroutine AsyncIterable "
        "AsyncIterator AsyncGenerator Literal Final ClassVar Annotated "
        "NoReturn Never Self LiteralString TypeVar TypeAlias Generic Text "
        "Concatenate ParamSpec TypeGuard TypeIs Required NotRequired ReadOnly "
        "Unpack AbstractSet ByteString Reversible MappingView KeysView "
        "ItemsView ValuesView SupportsInt SupportsFloat SupportsIndex "
        "SupportsAbs SupportsBytes SupportsComplex SupportsRound Pattern "
        "Match IO TextIO BinaryIO ContextManager NamedTuple",
        kPlainShared},
    Row{"typing", "ForwardRef get_type_hints _eval_type", kEvaluates},
    Row{"collections.abc",
        "Awaitable Coroutine AsyncIterable AsyncIterator AsyncGenerator "
        "Hashable Iterable Iterator Generator Reversible Sized Container "
        "Callable Collection Set MutableSet Mapping MutableMapping "
        "MappingView KeysView ItemsView ValuesView Sequence MutableSequence "
        "ByteString Buffer",
        kPlainShared},
    Row{"numbers", "Number Complex Real Rational Integral", kPlainShared},
    Row{"pathlib",
        "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
        kPlain},
    Row{"pathlib._local",
        "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
        kPlain},
    Row{"datetime", "date datetime time timedelta timezone tzinfo", kPlain},
    Row{"_datetime", "date datetime time timedelta timezone tzinfo", kPlain},
    Row{"zoneinfo", "ZoneInfo ZoneInfo._unpickle", kPlainShared},
    Row{"time", "struct_time", kPlain},
    Row{"decimal", "Decimal Context DecimalTuple", kPlain},
    Row{"decimal",
        "Clamped ConversionSyntax DecimalException DivisionByZero "
        "DivisionImpossible DivisionUndefined FloatOperation Inexact "
        "InvalidContext InvalidOperation Overflow Rounded Subnormal Underflow",
        kPlain},
    Row{"_decimal", "Decimal Context", kPlain},
    Row{"_pydecimal", "Decimal Context", kPlain},
    Row{"fractions", "Fraction", kPlain},
    Row{"statistics", "NormalDist StatisticsError", kPlain},
    Row{"uuid", "UUID", kPlain},
    Row{"uuid", "SafeUUID", kPlainShared},
    Row{"array", "array _array_reconstructor ArrayType", kPlain},
    Row{"argparse", "Namespace ArgumentError ArgumentTypeError", kPlain},
    Row{"optparse", "Values", kPlain},
    Row{"re", "_compile compile", kPlainShared},
    Row{"re", "RegexFlag Pattern Match", kPlainShared},
    Row{"re", "error PatternError", kPlain},
    Row{"enum", "Enum IntEnum Flag IntFlag StrEnum auto FlagBoundary EnumCheck",
        kPlainShared},
    Row{"dataclasses",
        "_MISSING_TYPE _HAS_DEFAULT_FACTORY_CLASS _KW_ONLY_TYPE "
        "FrozenInstanceError InitVar",
        kPlainShared},
    Row{"dataclasses", "make_dataclass dataclass _create_fn", kEvaluates},
    Row{"random", "Random SystemRandom", kPlain},
    Row{"_random", "Random", kPlain},
    Row{"ipaddress",
        "IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface "
        "IPv6Network AddressValueError NetmaskValueError",
        kPlain},
    Row{"io", "BytesIO StringIO UnsupportedOperation", kPlain},
    Row{"_io", "BytesIO StringIO UnsupportedOperation", kPlain},
    Row{"_pyio", "BytesIO StringIO UnsupportedOperation", kPlain},
    Row{"StringIO", "StringIO", kPlain},
    Row{"cStringIO", "StringIO InputType OutputType", kPlain},
    Row{"string", "Template", kPlain},
    Row{"textwrap", "TextWrapper", kPlain},
    Row{"logging", "getLogger", kPlainShared},
    Row{"logging", "LogRecord Formatter", kPlain},
    Row{"xml.etree.ElementTree", "Element QName ParseError", kPlain},
    Row{"xml.etree.cElementTree", "Element", kPlain},
    Row{"http", "HTTPStatus HTTPMethod", kPlainShared},
    Row{"http.cookies", "SimpleCookie Morsel CookieError", kPlain},
    Row{"urllib.parse",
        "ParseResult ParseResultBytes SplitResult SplitResultBytes "
        "DefragResult DefragResultBytes quote quote_plus unquote unquote_plus "
        "urlencode",
        kPlain},
    Row{"urllib.error", "URLError HTTPError ContentTooShortError", kPlain},
    Row{"json.decoder", "JSONDecodeError", kPlain},
    Row{"json", "JSONDecodeError", kPlain},
    Row{"configparser",
        "Error NoSectionError NoOptionError ParsingError DuplicateOptionError "
        "DuplicateSectionError InterpolationError MissingSectionHeaderError",
        kPlain},
    Row{"socket", "AddressFamily SocketKind", kPlainShared},
    Row{"socket", "timeout error gaierror herror", kPlain},
    Row{"ssl",
        "SSLError SSLEOFError SSLZeroReturnError SSLWantReadError "
        "SSLWantWriteError SSLSyscallError CertificateError",
        kPlain},
    Row{"signal", "Signals Handlers Sigmasks", kPlainShared},
    Row{"subprocess",
        "CompletedProcess CalledProcessError TimeoutExpired SubprocessError",
        kPlain},
    Row{"shutil",
        "Error SameFileError SpecialFileError ExecError ReadError "
        "RegistryError",
        kPlain},
    Row{"os",
        "stat_result statvfs_result _make_stat_result _make_statvfs_result "
        "terminal_size uname_result times_result",
        kPlain},
    Row{"posix",
        "stat_result statvfs_result terminal_size uname_result "
        "times_result",
        kPlain},
    Row{"nt",
        "stat_result statvfs_result terminal_size uname_result "
        "times_result",
        kPlain},
    Row{"asyncio.exceptions",
        "CancelledError TimeoutError InvalidStateError IncompleteReadError "
        "LimitOverrunError",
        kPlain},
    Row{"asyncio", "CancelledError TimeoutError InvalidStateError", kPlain},
    Row{"multiprocessing",
        "ProcessError BufferTooShort TimeoutError AuthenticationError", kPlain},
    Row{"multiprocessing.context",
        "ProcessError BufferTooShort TimeoutError AuthenticationError", kPlain},
    Row{"concurrent.futures._base",
        "CancelledError TimeoutError BrokenExecutor InvalidStateError Error",
        kPlain},
    Row{"pickle", "PickleBuffer PickleError PicklingError UnpicklingError",
        kPlain},
    Row{"_pickle", "PickleBuffer PickleError PicklingError UnpicklingError",
        kPlain},
    Row{"traceback", "FrameSummary StackSummary", kPlain},
    Row{"inspect",
        "Signature Parameter _ParameterKind FullArgSpec ArgSpec _empty",
        kPlainShared},
    Row{"tokenize", "TokenInfo", kPlain},
    Row{"difflib", "Match", kPlain},
    Row{"graphlib", "TopologicalSorter CycleError", kPlain},
    Row{"email.message", "Message EmailMessage", kPlain},
    Row{"platform", "uname_result", kUnknown},

    // --- numpy
    Row{"numpy",
        "dtype ndarray bool bool_ bool8 byte bytes_ cdouble cfloat clongdouble "
        "complex128 complex256 complex64 csingle datetime64 double flexible "
        "float128 float16 float32 float64 floating generic half inexact int16 "
        "int32 int64 int8 int_ intc integer intp long longdouble longlong "
        "number object_ short signedinteger single str_ string_ timedelta64 "
        "ubyte uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong "
        "unicode_ unsignedinteger ushort void character complexfloating "
        "recarray record poly1d",
        kPlain},
    Row{"numpy.core.multiarray", "_reconstruct", kPlain},
    Row{"numpy.core.multiarray", "scalar", kPlainShared},
    Row{"numpy._core.multiarray", "_reconstruct", kPlain},
    Row{"numpy._core.multiarray", "scalar", kPlainShared},
    Row{"numpy.core.numeric", "_frombuffer", kPlain},
    Row{"numpy._core.numeric", "_frombuffer", kPlain},
    Row{"numpy.core._internal", "_convert_to_stringdtype_kwargs", kPlain},
    Row{"numpy._core._internal", "_convert_to_stringdtype_kwargs", kPlain},
    Row{"numpy.core._multiarray_umath", "_ufunc_reconstruct", kReaches},
    Row{"numpy._core._multiarray_umath", "_ufunc_reconstruct", kReaches},
    Row{"numpy.core", "_ufunc_reconstruct _ufunc_reduce", kReaches},
    Row{"numpy._core", "_ufunc_reconstruct _ufunc_reduce", kReaches},
    Row{"numpy.core.records", "recarray record", kPlain},
    Row{"numpy._core.records", "recarray record", kPlain},
    Row{"numpy.rec", "recarray record", kPlain},
    Row{"numpy.ma.core", "_mareconstruct MaskedArray MaskedConstant mvoid",
        kPlain},
    Row{"numpy.ma", "MaskedArray", kPlain},
    Row{"numpy.lib.polynomial", "poly1d", kPlain},
    Row{"numpy.lib._polynomial_impl", "poly1d", kPlain},
    Row{"numpy.random._pickle", "__bit_generator_ctor", kPlain},
    Row{"numpy.random._pickle", "__generator_ctor __randomstate_ctor",
        depends(Rule::kCallsSecond)},
    Row{"numpy.random", "__RandomState_ctor RandomState Generator SeedSequence",
        kPlain},
    Row{"numpy.random.mtrand", "RandomState _rand", kPlain},
    Row{"numpy.random._generator", "Generator", kPlain},
    Row{"numpy.random._mt19937", "MT19937", kPlain},
    Row{"numpy.random._pcg64", "PCG64 PCG64DXSM", kPlain},
    Row{"numpy.random._philox", "Philox", kPlain},
    Row{"numpy.random._sfc64", "SFC64", kPlain},
    Row{"numpy.random", "MT19937 PCG64 PCG64DXSM Philox SFC64", kPlain},
    Row{"numpy.random.bit_generator",
        "SeedSequence SeedlessSeedSequence __pyx_unpickle_SeedSequence",
        kPlain},
    Row{"numpy.dtypes",
        "BoolDType ByteDType BytesDType CLongDoubleDType Complex128DType "
        "Complex64DType DateTime64DType Float16DType Float32DType "
        "Float64DType Int16DType Int32DType Int64DType Int8DType IntDType "
        "LongDType LongDoubleDType LongLongDType ObjectDType ShortDType "
        "StrDType StringDType TimeDelta64DType UByteDType UInt16DType "
        "UInt32DType UInt64DType UInt8DType UIntDType ULongDType "
        "ULongLongDType UShortDType VoidDType",
        kPlain},
    Row{"numpy", "load", kLoadsPickles},
    Row{"numpy",
        "save savez savez_compressed savetxt loadtxt genfromtxt fromfile "
        "memmap fromregex recfromcsv recfromtxt DataSource tofile open_memmap",
        kTouchesFiles},
    Row{"numpy",
        "vectorize frompyfunc apply_along_axis apply_over_axes "
        "fromfunction piecewise",
        kCalls},
    Row{"numpy", "safe_eval lookfor source info", kEvaluates},
    Row{"numpy", "matrix mat asmatrix bmat", kEvaluates},
    Row{"numpy.matrixlib", kAll, kEvaluates},
    Row{"numpy.lib.utils", "safe_eval lookfor source", kEvaluates},
    Row{"numpy.lib.npyio", kAll, kTouchesFiles},
    Row{"numpy.lib._npyio_impl", kAll, kTouchesFiles},
    Row{"numpy.lib.format", kAll, kTouchesFiles},
    Row{"numpy.lib._datasource", kAll, kTouchesFiles},
    Row{"numpy.core.memmap", kAll, kTouchesFiles},
    Row{"numpy._core.memmap", kAll, kTouchesFiles},
    Row{"numpy.f2py", kAll, kEvaluates},
    Row{"numpy.distutils", kAll, kRunsPrograms},
    Row{"numpy.testing", kAll, kEvaluates},
    Row{"numpy.ctypeslib", kAll, kNativeCode},

    // --- torch
    Row{"torch",
        "Size Tensor device dtype memory_format layout float64 double float32 "
        "float float16 half bfloat16 int64 long int32 int int16 short int8 "
        "uint8 uint16 uint32 uint64 bool complex32 chalf complex64 cfloat "
        "complex128 cdouble qint8 qint32 quint8 quint4x2 quint2x4 bits8 "
        "bits16 bits1x8 bits2x4 bits4x2 float8_e5m2 float8_e4m3fn "
        "float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu float4_e2m1fn_x2 int1 "
        "int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 "
        "uint7 per_tensor_affine per_channel_affine per_tensor_symmetric "
        "per_channel_symmetric per_channel_affine_float_qparams qscheme "
        "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc "
        "_mkldnn jagged contiguous_format preserve_format channels_last "
        "channels_last_3d Generator finfo iinfo",
        kTorch},
    Row{"torch",
        "DoubleStorage FloatStorage HalfStorage BFloat16Storage LongStorage "
        "IntStorage ShortStorage CharStorage ByteStorage BoolStorage "
        "ComplexDoubleStorage ComplexFloatStorage QInt8Storage QInt32Storage "
        "QUInt8Storage QUInt4x2Storage QUInt2x4Storage UntypedStorage "
        "TypedStorage _UntypedStorage _TypedStorage",
        kTorch},
    Row{"torch.cuda",
        "DoubleStorage FloatStorage HalfStorage BFloat16Storage LongStorage "
        "IntStorage ShortStorage CharStorage ByteStorage BoolStorage "
        "ComplexDoubleStorage ComplexFloatStorage UntypedStorage TypedStorage",
        kTorch},
    Row{"torch.storage",
        "UntypedStorage TypedStorage _UntypedStorage _TypedStorage", kTorch},
    Row{"torch",
        "DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor "
        "IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
        kTorch},
    Row{"torch.cuda",
        "DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor "
        "IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
        kTorch},
    Row{"torch.sparse",
        "DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor "
        "IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
        kTorch},
    Row{"torch.cuda.sparse",
        "DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor "
        "IntTensor ShortTensor CharTensor ByteTensor BoolTensor",
        kTorch},
    Row{"torch._utils",
        "_rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 "
        "_rebuild_parameter _rebuild_parameter_with_state "
        "_rebuild_sparse_tensor _rebuild_sparse_csr_tensor _rebuild_qtensor "
        "_rebuild_nested_tensor _rebuild_meta_tensor_no_storage "
        "_rebuild_device_tensor_from_cpu_tensor "
        "_rebuild_device_tensor_from_numpy _rebuild_xla_tensor "
        "_rebuild_wrapper_subclass",
        kTorch},
    Row{"torch._utils", "_import_dotted_name", kReaches},
    Row{"torch._tensor", "Tensor", kTorch},
    // They call the function that rebuilds the tensor's base.
    Row{"torch._tensor",
        "_rebuild_from_type _rebuild_from_type_v2",
        {Trust::kTorch, Rule::kRebuilds, {}}},
    Row{"torch.tensor",
        "_rebuild_from_type _rebuild_from_type_v2",
        {Trust::kTorch, Rule::kRebuilds, {}}},
    Row{"torch.jit._pickle",
        "build_intlist build_tensorlist build_doublelist build_boollist "
        "build_tensor_from_id restore_type_tag",
        kTorch},
    Row{"torch.nn.parameter",
        "Parameter Buffer UninitializedParameter UninitializedBuffer", kTorch},
    Row{"torch.nn", "Parameter Buffer", kTorch},
    Row{"torch.nested._internal.nested_tensor", "_rebuild_njt NestedTensor",
        kTorch},
    Row{"torch.serialization", "_get_layout", kTorch},
    Row{"torch._dynamo.decorators", "_DimRange", kTorch},
    Row{"torch._subclasses.fake_tensor", "FakeTensor", kTorch},
    Row{"torch.return_types",
        "aminmax cummax cummin frexp geqrf histogram histogramdd kthvalue "
        "linalg_cholesky_ex linalg_eig linalg_eigh linalg_inv_ex "
        "linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu "
        "linalg_lu_factor linalg_lu_factor_ex linalg_qr linalg_slogdet "
        "linalg_solve_ex linalg_svd lu_unpack max median min mode nanmedian "
        "qr slogdet sort svd topk triangular_solve unpack_dual",
        kTorch},
    // The records of distributed tensors and checkpoints: data classes whose
    // state is set from what the pickle holds.
    Row{"torch.distributed._mesh_layout", "_MeshLayout", kTorch},
    Row{"torch.distributed._shard.metadata", "ShardMetadata", kTorch},
    Row{"torch.distributed._shard.sharded_tensor.api", "ShardedTensor", kTorch},
    Row{"torch.distributed._shard.sharded_tensor.metadata",
        "ShardedTensorMetadata TensorProperties MEM_FORMAT_ENCODING", kTorch},
    Row{"torch.distributed._shard.sharded_tensor.shard", "Shard", kTorch},
    Row{"torch.distributed._tensor.api", "DTensor", kTorch},
    Row{"torch.distributed._tensor.placement_types",
        "Replicate Partial _Partial Shard _StridedShard DTensorSpec "
        "TensorMeta",
        kTorch},
    Row{"torch.distributed.checkpoint.filesystem", "_StorageInfo", kTorch},
    Row{"torch.distributed.checkpoint.metadata",
        "BytesStorageMetadata ChunkStorageMetadata Metadata MetadataIndex "
        "StorageMeta TensorProperties TensorStorageMetadata "
        "_MEM_FORMAT_ENCODING",
        kTorch},
    Row{"torch.distributed.device_mesh", "DeviceMesh _MeshLayout", kTorch},
    Row{"torch.distributed.tensor",
        "DTensor DeviceMesh Replicate Partial Shard", kTorch},
    Row{"torch.distributed.tensor._api", "DTensor", kTorch},
    Row{"torch.distributed.tensor._dtensor_spec",
        "DTensorSpec TensorMeta ShardOrderEntry", kTorch},
    Row{"torch.distributed.tensor.placement_types",
        "Replicate Partial _Partial Shard _StridedShard MaskPartial", kTorch},
    Row{"torch.storage", "_load_from_bytes",
        does("loads another pickle", Rule::kLoadsBytes)},
    Row{"torch", "load", kLoadsPickles},
    Row{"torch.serialization", "load _load _legacy_load torch_load",
        kLoadsPickles},
    Row{"torch.serialization", "add_safe_globals register_package", kRegisters},
    Row{"torch.jit", "load _load_for_lite_interpreter", kLoadsPickles},
    Row{"torch", "save from_file", kTouchesFiles},
    Row{"torch.serialization", "save", kTouchesFiles},
    Row{"torch.jit", "save", kTouchesFiles},
    Row{"torch", "compile vmap", kCalls},
    Row{"torch.jit._serialization", kAll, kLoadsPickles},
    Row{"torch.jit.annotations", kAll, kEvaluates},
    Row{"torch.jit.unsupported_tensor_ops", kAll, kEvaluates},
    Row{"torch.jit.frontend", kAll, kEvaluates},
    Row{"torch.jit._script", kAll, kEvaluates},
    Row{"torch.hub", kAll, kEvaluates},
    Row{"torch.ops", kAll, kNativeCode},
    Row{"torch._ops", kAll, kNativeCode},
    Row{"torch.classes", kAll, kNativeCode},
    Row{"torch._classes", kAll, kNativeCode},
    Row{"torch.utils.cpp_extension", kAll, kNativeCode},
    Row{"torch.utils._cpp_extension_versioner", kAll, kNativeCode},
    Row{"torch.utils.collect_env", kAll, kRunsPrograms},
    Row{"torch.utils.bottleneck", kAll, kEvaluates},
    Row{"torch.utils.model_zoo", kAll, kNetwork},
    Row{"torch.utils.model_dump", kAll, kTouchesFiles},
    Row{"torch.utils.tensorboard", kAll, kTouchesFiles},
    Row{"torch.utils._config_module", kAll, kLoadsPickles},
    Row{"torch.utils.data.datapipes.utils.decoder", kAll, kLoadsPickles},
    Row{"torch.utils.checkpoint", "checkpoint checkpoint_sequential", kCalls},
    Row{"torch.package", kAll, kEvaluates},
    Row{"torch.fx.graph_module", kAll, kEvaluates},
    Row{"torch.fx._lazy_graph_module", kAll, kEvaluates},
    Row{"torch.fx.experimental", kAll, kEvaluates},
    Row{"torch._dynamo", kAll, kEvaluates},
    Row{"torch._inductor", kAll, kRunsPrograms},
    Row{"torch._export", kAll, kEvaluates},
    Row{"torch.export", kAll, kLoadsPickles},
    Row{"torch.onnx", kAll, kTouchesFiles},
    Row{"torch.testing", kAll, kEvaluates},
    Row{"torch.multiprocessing", kAll, kRunsPrograms},
    Row{"torch.distributed.rpc", kAll, kReaches},
    Row{"torch.distributed.nn", kAll, kReaches},
    Row{"torch.distributed.run", kAll, kRunsPrograms},
    Row{"torch.distributed.launch", kAll, kRunsPrograms},
    Row{"torch.distributed.elastic", kAll, kRunsPrograms},
    Row{"torch.distributed.checkpoint",
        "load load_state_dict async_save save save_state_dict "
        "FileSystemReader FileSystemWriter",
        kLoadsPickles},
    Row{"torch.distributed.checkpoint.state_dict_loader", kAll, kLoadsPickles},
    Row{"torch.distributed.checkpoint.state_dict_saver", kAll, kTouchesFiles},
    Row{"torch.distributed.checkpoint.format_utils", kAll, kLoadsPickles},
    Row{"torch.distributed.distributed_c10d",
        "_tensor_to_object _object_to_tensor broadcast_object_list "
        "all_gather_object recv_object_list scatter_object_list",
        kLoadsPickles},
    Row{"torch.library", kAll, kRegisters},
    Row{"torch.profiler", kAll, kTouchesFiles},
    Row{"torch.autograd.profiler", kAll, kTouchesFiles},
    Row{"torch.cuda.memory", kAll, kTouchesFiles},
    Row{"torch._appdirs", kAll, kTouchesFiles},
    Row{"torch._sources", kAll, kEvaluates},
    Row{"torch._lobpcg", kAll, kCalls},

    // --- the rest of the standard library
    Row{"os", kAll, kRunsPrograms},
    Row{"posix", kAll, kRunsPrograms},
    Row{"nt", kAll, kRunsPrograms},
    Row{"posixpath", kAll, kTouchesFiles},
    Row{"ntpath", kAll, kTouchesFiles},
    Row{"genericpath", kAll, kTouchesFiles},
    Row{"subprocess", kAll, kRunsPrograms},
    Row{"_posixsubprocess", kAll, kRunsPrograms},
    Row{"_winapi", kAll, kRunsPrograms},
    Row{"commands", kAll, kRunsPrograms},
    Row{"popen2", kAll, kRunsPrograms},
    Row{"pty", kAll, kRunsPrograms},
    Row{"pipes", kAll, kRunsPrograms},
    Row{"pexpect", kAll, kRunsPrograms},
    Row{"ptyprocess", kAll, kRunsPrograms},
    Row{"sh", kAll, kRunsPrograms},
    Row{"plumbum", kAll, kRunsPrograms},
    Row{"invoke", kAll, kRunsPrograms},
    Row{"fabric", kAll, kRunsPrograms},
    Row{"multiprocessing", kAll, kRunsPrograms},
    Row{"concurrent.futures", kAll, kCalls},
    Row{"asyncio", kAll, kRunsPrograms},
    Row{"webbrowser", kAll, kRunsPrograms},
    Row{"antigravity", kAll, kRunsPrograms},
    Row{"pip", kAll, kRunsPrograms},
    Row{"ensurepip", kAll, kRunsPrograms},
    Row{"venv", kAll, kRunsPrograms},
    Row{"virtualenv", kAll, kRunsPrograms},
    Row{"distutils", kAll, kRunsPrograms},
    Row{"setuptools", kAll, kRunsPrograms},
    Row{"_distutils_hack", kAll, kRunsPrograms},
    Row{"_osx_support", kAll, kRunsPrograms},
    Row{"_aix_support", kAll, kRunsPrograms},
    Row{"_bootsubprocess", kAll, kRunsPrograms},
    Row{"_pyrepl", kAll, kRunsPrograms},
    Row{"test", kAll, kRunsPrograms},
    Row{"platform", kAll, kRunsPrograms},
    Row{"uuid", kAll, kRunsPrograms},
    Row{"imaplib", "IMAP4_stream", kRunsPrograms},
    Row{"imaplib", kAll, kNetwork},
    Row{"mailcap", kAll, kRunsPrograms},
    Row{"turtledemo", kAll, kRunsPrograms},
    Row{"tkinter", kAll, kRunsPrograms},
    Row{"_tkinter", kAll, kRunsPrograms},
    Row{"turtle", kAll, kRunsPrograms},
    Row{"curses", kAll, kRunsPrograms},
    Row{"runpy", kAll, kEvaluates},
    Row{"code", kAll, kEvaluates},
    Row{"codeop", kAll, kEvaluates},
    Row{"cmd", kAll, kEvaluates},
    Row{"timeit", kAll, kEvaluates},
    Row{"pdb", kAll, kEvaluates},
    Row{"bdb", kAll, kEvaluates},
    Row{"trace", kAll, kEvaluates},
    Row{"doctest", kAll, kEvaluates},
    Row{"unittest", kAll, kEvaluates},
    Row{"profile", kAll, kEvaluates},
    Row{"cProfile", kAll, kEvaluates},
    Row{"_lsprof", kAll, kEvaluates},
    Row{"hotshot", kAll, kEvaluates},
    Row{"pstats", kAll, kLoadsPickles},
    Row{"idlelib", kAll, kEvaluates},
    Row{"lib2to3", kAll, kEvaluates},
    Row{"rlcompleter", kAll, kEvaluates},
    Row{"site", kAll, kEvaluates},
    Row{"sitecustomize", kAll, kEvaluates},
    Row{"usercustomize", kAll, kEvaluates},
    Row{"sysconfig", kAll, kEvaluates},
    Row{"gettext", kAll, kEvaluates},
    Row{"zipapp", kAll, kTouchesFiles},
    Row{"py_compile", kAll, kEvaluates},
    Row{"compileall", kAll, kEvaluates},
    Row{"ihooks", kAll, kEvaluates},
    Row{"rexec", kAll, kEvaluates},
    Row{"Bastion", kAll, kEvaluates},
    Row{"_xxsubinterpreters", kAll, kEvaluates},
    Row{"_interpreters", kAll, kEvaluates},
    Row{"_testcapi", kAll, kNativeCode},
    Row{"_testinternalcapi", kAll, kNativeCode},
    Row{"importlib", kAll, kReaches},
    Row{"_frozen_importlib", kAll, kReaches},
    Row{"_frozen_importlib_external", kAll, kReaches},
    Row{"imp", kAll, kReaches},
    Row{"_imp", kAll, kReaches},
    Row{"zipimport", kAll, kReaches},
    Row{"pkgutil", kAll, kReaches},
    Row{"pkg_resources", kAll, kReaches},
    Row{"modulefinder", kAll, kReaches},
    Row{"pyclbr", kAll, kReaches},
    Row{"pydoc", kAll, kReaches},
    Row{"inspect", kAll, kReaches},
    Row{"gc", kAll, kReaches},
    Row{"sys", kAll, kReaches},
    Row{"_sysconfigdata", kAll, kReaches},
    Row{"__builtin__", "__dict__", kReaches},
    Row{"__builtins__", kAll, kReaches},
    Row{"string", "Formatter", kReaches},
    Row{"_string", kAll, kReaches},
    Row{"atexit", kAll, kRegisters},
    Row{"weakref", kAll, kRegisters},
    Row{"threading", "Thread Timer", kCalls},
    Row{"_thread", "start_new_thread start_new interrupt_main", kCalls},
    Row{"sched", kAll, kCalls},
    Row{"contextlib", "ExitStack AsyncExitStack contextmanager closing",
        kCalls},
    Row{"signal", kAll, kProcess},
    Row{"_signal", kAll, kProcess},
    Row{"resource", kAll, kProcess},
    Row{"faulthandler", kAll, kProcess},
    Row{"warnings", "_getcategory filterwarnings", kReaches},
    Row{"logging.config", kAll, kReaches},
    Row{"logging.handlers", kAll, kNetwork},
    Row{"logging", "FileHandler basicConfig", kTouchesFiles},
    Row{"syslog", kAll, kTouchesFiles},
    Row{"shutil", kAll, kTouchesFiles},
    Row{"io", kAll, kTouchesFiles},
    Row{"_io", kAll, kTouchesFiles},
    Row{"_pyio", kAll, kTouchesFiles},
    Row{"tempfile", kAll, kTouchesFiles},
    Row{"fileinput", kAll, kTouchesFiles},
    Row{"linecache", kAll, kTouchesFiles},
    Row{"tokenize", kAll, kTouchesFiles},
    Row{"glob", kAll, kTouchesFiles},
    Row{"filecmp", kAll, kTouchesFiles},
    Row{"mmap", kAll, kTouchesFiles},
    Row{"fcntl", kAll, kTouchesFiles},
    Row{"gzip", kAll, kTouchesFiles},
    Row{"bz2", kAll, kTouchesFiles},
    Row{"lzma", kAll, kTouchesFiles},
    Row{"zipfile", kAll, kTouchesFiles},
    Row{"tarfile", kAll, kTouchesFiles},
    Row{"sqlite3", kAll, kTouchesFiles},
    Row{"_sqlite3", kAll, kTouchesFiles},
    Row{"dbm", kAll, kTouchesFiles},
    Row{"netrc", kAll, kTouchesFiles},
    Row{"mailbox", kAll, kTouchesFiles},
    Row{"wave", kAll, kTouchesFiles},
    Row{"aifc", kAll, kTouchesFiles},
    Row{"sunau", kAll, kTouchesFiles},
    Row{"sndhdr", kAll, kTouchesFiles},
    Row{"imghdr", kAll, kTouchesFiles},
    Row{"msilib", kAll, kTouchesFiles},
    Row{"winreg", kAll, kTouchesFiles},
    Row{"xml.etree.ElementTree", "parse iterparse ElementTree", kTouchesFiles},
    Row{"socket", kAll, kNetwork},
    Row{"_socket", kAll, kNetwork},
    Row{"ssl", kAll, kNetwork},
    Row{"_ssl", kAll, kNetwork},
    Row{"select", kAll, kNetwork},
    Row{"selectors", kAll, kNetwork},
    Row{"socketserver", kAll, kNetwork},
    Row{"http", kAll, kNetwork},
    Row{"urllib", kAll, kNetwork},
    Row{"ftplib", kAll, kNetwork},
    Row{"smtplib", kAll, kNetwork},
    Row{"smtpd", kAll, kNetwork},
    Row{"poplib", kAll, kNetwork},
    Row{"nntplib", kAll, kNetwork},
    Row{"telnetlib", kAll, kNetwork},
    Row{"xmlrpc", kAll, kNetwork},
    Row{"wsgiref", kAll, kNetwork},
    Row{"asyncore", kAll, kNetwork},
    Row{"asynchat", kAll, kNetwork},
    Row{"cgi", kAll, kNetwork},
    Row{"cgitb", kAll, kNetwork},
    Row{"xml.sax", kAll, kNetwork},
    Row{"xml.dom.minidom", "parse parseString", kTouchesFiles},
    Row{"xml.dom.pulldom", kAll, kTouchesFiles},
    Row{"xml.dom.expatbuilder", kAll, kTouchesFiles},
    Row{"pickle", kAll, kLoadsPickles},
    Row{"_pickle", kAll, kLoadsPickles},
    Row{"_compat_pickle", kAll, kLoadsPickles},
    Row{"pickletools", kAll, kLoadsPickles},
    Row{"marshal", kAll, kLoadsPickles},
    Row{"shelve", kAll, kLoadsPickles},
    Row{"ctypes", kAll, kNativeCode},
    Row{"_ctypes", kAll, kNativeCode},

    // --- other packages
    Row{"requests.models", "Response PreparedRequest", kUnknown},
    Row{"requests.cookies", "RequestsCookieJar", kUnknown},
    Row{"requests.structures", "CaseInsensitiveDict LookupDict", kUnknown},
    Row{"requests", kAll, kNetwork},
    Row{"aiohttp", kAll, kNetwork},
    Row{"httpx", kAll, kNetwork},
    Row{"urllib3", kAll, kNetwork},
    Row{"boto3", kAll, kNetwork},
    Row{"botocore", kAll, kNetwork},
    Row{"paramiko", kAll, kNetwork},
    Row{"huggingface_hub", kAll, kNetwork},
    Row{"fsspec", kAll, kTouchesFiles},
    Row{"smart_open", kAll, kTouchesFiles},
    Row{"cffi", kAll, kNativeCode},
    Row{"_cffi_backend", kAll, kNativeCode},
    Row{"dill", kAll, kLoadsPickles},
    Row{"cloudpickle.cloudpickle", kAll, kEvaluates},
    Row{"cloudpickle.cloudpickle_fast", kAll, kEvaluates},
    Row{"cloudpickle", kAll, kLoadsPickles},
    // Its array follows in the stream, as bytes that are no opcodes.
    Row{"joblib.numpy_pickle", "NumpyArrayWrapper NDArrayWrapper", kUnknown},
    Row{"joblib", kAll, kLoadsPickles},
    Row{"sklearn.externals.joblib", kAll, kLoadsPickles},
    Row{"jsonpickle", kAll, kLoadsPickles},
    Row{"klepto", kAll, kLoadsPickles},
    Row{"mlflow", kAll, kLoadsPickles},
    Row{"pandas", "read_pickle to_pickle", kLoadsPickles},
    Row{"pandas.io.pickle", kAll, kLoadsPickles},
    Row{"pandas.compat.pickle_compat", kAll, kLoadsPickles},
    Row{"pandas", "eval", kEvaluates},
    Row{"pandas.core.computation", kAll, kEvaluates},
    Row{"pandas",
        "read_csv read_table read_excel read_hdf read_html read_json "
        "read_parquet read_feather read_orc read_sas read_spss read_sql "
        "read_stata read_xml read_fwf ExcelFile ExcelWriter HDFStore",
        kTouchesFiles},
    Row{"pandas.io", kAll, kTouchesFiles},
    Row{"scipy.io", kAll, kTouchesFiles},
    Row{"scipy.weave", kAll, kNativeCode},
    Row{"tensorflow.keras.models", kAll, kEvaluates},
    Row{"tensorflow.saved_model", kAll, kEvaluates},
    Row{"tensorflow.io", kAll, kTouchesFiles},
    Row{"tensorflow", "py_function numpy_function", kCalls},
    Row{"tensorflow", "load_library load_op_library", kNativeCode},
    Row{"tensorflow.python.framework.load_library", kAll, kNativeCode},
    Row{"keras.models", kAll, kEvaluates},
    Row{"keras.saving", kAll, kEvaluates},
    Row{"keras.src.saving", kAll, kEvaluates},
    Row{"transformers.dynamic_module_utils", kAll, kEvaluates},
    Row{"hydra", kAll, kReaches},
    Row{"omegaconf.omegaconf", "OmegaConf", kTouchesFiles},
    Row{"fire", kAll, kReaches},
    Row{"yaml", kAll, kReaches},
    Row{"ruamel", kAll, kReaches},
    Row{"jinja2", kAll, kEvaluates},
    Row{"mako", kAll, kEvaluates},
    Row{"sympy.core.sympify", kAll, kEvaluates},
    Row{"sympy.parsing", kAll, kEvaluates},
    Row{"sympy.utilities", kAll, kEvaluates},
    Row{"sympy", "sympify S parse_expr lambdify", kEvaluates},
    Row{"numexpr", kAll, kEvaluates},
    Row{"IPython", kAll, kEvaluates},
    Row{"ipykernel", kAll, kEvaluates},
    Row{"asteval", kAll, kEvaluates},
    Row{"numba", kAll, kNativeCode},
    Row{"Cython", kAll, kNativeCode},
    Row{"pyximport", kAll, kNativeCode},
    Row{"triton", kAll, kNativeCode},
};

// A package's row counts for all that is in it.
constexpr std::size_t kLongestModule = 100;

struct Table {
  Table() {
    for (const Row& row : kRows)
      (row.names == kAll ? everything : named)[row.module].push_back(&row);
  }
  using ByModule =
      std::unordered_map<std::string_view, std::vector<const Row*>>;
  ByModule named;
  ByModule everything;
};

// Whether `name` is one of a row's, which are separated by spaces.
bool has_word(std::string_view words, std::string_view name) {
  for (std::size_t at = words.find(name); at != words.npos;
       at = words.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || words[at - 1] == ' ') &&
        (end == words.size() || words[end] == ' '))
      return true;
  }
  return false;
}

// An exception of a library does not do what its functions do.
bool is_exception(std::string_view name) {
  return name.find('.') == name.npos &&
         (name.ends_with("Error") || name.ends_with("Exception") ||
          name.ends_with("Warning"));
}

struct Renaming {
  std::string_view old_module;
  std::string_view old_names;  // separated by spaces; kAll: every name
  std::string_view module;
  std::string_view name;  // empty: the same
};

// _compat_pickle's tables, as far as they lead to a name of kRows.
constexpr std::array kRenamings = {
    Renaming{"__builtin__", "xrange", "builtins", "range"},
    Renaming{"__builtin__", "reduce", "functools", "reduce"},
    Renaming{"__builtin__", "intern", "sys", "intern"},
    Renaming{"__builtin__", "unichr", "builtins", "chr"},
    Renaming{"__builtin__", "unicode", "builtins", "str"},
    Renaming{"__builtin__", "basestring", "builtins", "str"},
    Renaming{"__builtin__", "long", "builtins", "int"},
    Renaming{"itertools", "izip", "builtins", "zip"},
    Renaming{"itertools", "imap", "builtins", "map"},
    Renaming{"itertools", "ifilter", "builtins", "filter"},
    Renaming{"itertools", "ifilterfalse", "itertools", "filterfalse"},
    Renaming{"itertools", "izip_longest", "itertools", "zip_longest"},
    Renaming{"UserDict", "IterableUserDict", "collections", "UserDict"},
    Renaming{"urllib", "ContentTooShortError", "urllib.error", ""},
    Renaming{"urllib", "quote quote_plus unquote unquote_plus urlencode",
             "urllib.parse", ""},
    Renaming{"urllib2", "HTTPError URLError", "urllib.error", ""},
    Renaming{"multiprocessing.process", "Process", "multiprocessing.context",
             ""},
    Renaming{"exceptions", "StandardError", "builtins", "Exception"},
    Renaming{"exceptions", kAll, "builtins", ""},
    Renaming{"__builtin__", kAll, "builtins", ""},
    Renaming{"copy_reg", kAll, "copyreg", ""},
    Renaming{"Queue", kAll, "queue", ""},
    Renaming{"SocketServer", kAll, "socketserver", ""},
    Renaming{"ConfigParser", kAll, "configparser", ""},
    Renaming{"repr", kAll, "reprlib", ""},
    Renaming{"Tkinter", kAll, "tkinter", ""},
    Renaming{"Tix", kAll, "tkinter.tix", ""},
    Renaming{"ttk", kAll, "tkinter.ttk", ""},
    Renaming{"_winreg", kAll, "winreg", ""},
    Renaming{"thread", kAll, "_thread", ""},
    Renaming{"dummy_thread", kAll, "_dummy_thread", ""},
    Renaming{"dbhash", kAll, "dbm.bsd", ""},
    Renaming{"dumbdbm", kAll, "dbm.dumb", ""},
    Renaming{"gdbm", kAll, "dbm.gnu", ""},
    Renaming{"anydbm", kAll, "dbm", ""},
    Renaming{"whichdb", kAll, "dbm", ""},
    Renaming{"xmlrpclib", kAll, "xmlrpc.client", ""},
    Renaming{"SimpleXMLRPCServer", kAll, "xmlrpc.server", ""},
    Renaming{"DocXMLRPCServer", kAll, "xmlrpc.server", ""},
    Renaming{"httplib", kAll, "http.client", ""},
    Renaming{"Cookie", kAll, "http.cookies", ""},
    Renaming{"cookielib", kAll, "http.cookiejar", ""},
    Renaming{"BaseHTTPServer", kAll, "http.server", ""},
    Renaming{"SimpleHTTPServer", kAll, "http.server", ""},
    Renaming{"CGIHTTPServer", kAll, "http.server", ""},
    Renaming{"test.test_support", kAll, "test.support", ""},
    Renaming{"commands", kAll, "subprocess", ""},
    Renaming{"urlparse", kAll, "urllib.parse", ""},
    Renaming{"robotparser", kAll, "urllib.robotparser", ""},
    Renaming{"urllib2", kAll, "urllib.request", ""},
    Renaming{"_abcoll", kAll, "collections.abc", ""},
    Renaming{"cPickle", kAll, "pickle", ""},
    Renaming{"_elementtree", kAll, "xml.etree.ElementTree", ""},
    Renaming{"UserDict", kAll, "collections", ""},
    Renaming{"UserList", kAll, "collections", ""},
    Renaming{"UserString", kAll, "collections", ""},
    Renaming{"StringIO", kAll, "io", ""},
    Renaming{"cStringIO", kAll, "io", ""},
};

}  // namespace

const KnownName* known_name(std::string_view module, std::string_view name) {
  static const Table table;
  if (module.size() > kLongestModule)
    module = module.substr(0, kLongestModule + 1);
  if (const auto found = table.named.find(module); found != table.named.end())
    for (const Row* const row : found->second)
      if (!name.empty() && has_word(row->names, name))
        return &row->known;
  for (std::string_view package = module;;) {
    const auto found = table.everything.find(package);
    if (found != table.everything.end())
      return is_exception(name) ? nullptr : &found->second.front()->known;
    const std::size_t dot = package.rfind('.');
    if (dot == package.npos)
      return nullptr;
    package = package.substr(0, dot);
  }
}

Global renamed(const Global& global) {
  for (const Renaming& row : kRenamings)
    if (global.module == row.old_module &&
        (row.old_names == kAll ||
         (!global.name.empty() && has_word(row.old_names, global.name))))
      return {row.module, row.name.empty() ? global.name : row.name};
  return global;
}

}  // namespace postflight
