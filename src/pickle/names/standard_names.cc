#include "pickle/names/known_names.h"

#include <array>

namespace postflight {
namespace {

using namespace known;

// What the function returns, which may be anything.
constexpr KnownName kReduces{Trust::kDangerous, Rule::kCallsFirst,
                             "calls the function that it is given", true};

// Plain values if they are made without calling their constructors.
constexpr KnownName kBare{Trust::kPlain, Rule::kBare, {}};

constexpr std::array kStandardNames = {
    NameRow{
        "builtins",
        "bool bytearray bytes complex dict enumerate float frozenset int list "
        "long memoryview object range reversed set slice str tuple unicode "
        "xrange zip",
        kPlain},
    NameRow{"builtins",
            "Ellipsis NotImplemented NoneType ellipsis None True False abs chr "
            "divmod hash hex len oct ord pow repr round sorted sum unichr bin "
            "ascii all any callable format id isinstance issubclass max min",
            kPlainShared},
    NameRow{
        "builtins",
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
    NameRow{"builtins",
            "str.capitalize str.casefold str.center str.count str.endswith "
            "str.expandtabs str.find str.index str.isalnum str.isalpha "
            "str.isascii str.isdecimal str.isdigit str.isidentifier "
            "str.islower str.isnumeric str.isprintable str.isspace "
            "str.istitle str.isupper str.join str.ljust str.lower str.lstrip "
            "str.maketrans str.partition str.removeprefix str.removesuffix "
            "str.replace str.rfind str.rindex str.rjust str.rpartition "
            "str.rsplit str.rstrip str.split str.splitlines str.startswith "
            "str.strip str.swapcase str.title str.translate str.upper "
            "str.zfill bytes.fromhex bytes.hex dict.fromkeys float.fromhex "
            "float.hex int.bit_length int.from_bytes",
            kPlainShared},
    NameRow{"builtins", "eval exec execfile compile", kEvaluates},
    NameRow{"builtins", "getattr",
            does("reaches any function by its name", Rule::kAttribute)},
    NameRow{"builtins",
            "setattr delattr hasattr __import__ globals locals vars dir reload "
            "super __build_class__ __loader__ __spec__ __dict__",
            kReaches},
    NameRow{"builtins", "apply", kCalls},
    NameRow{"builtins", "map filter",
            does("calls the function that it is given", Rule::kCallsFirst)},
    NameRow{"builtins", "reduce", kReduces},
    NameRow{"builtins", "open file input raw_input breakpoint help",
            kTouchesFiles},
    NameRow{"builtins", "exit quit copyright credits license", kProcess},
    NameRow{"builtins", "type", depends(Rule::kType)},
    NameRow{"builtins", "iter", depends(Rule::kIterator)},
    NameRow{"types", "SimpleNamespace", {Trust::kPlain, Rule::kAttributes, {}}},
    NameRow{"types",
            "GenericAlias UnionType NoneType EllipsisType "
            "NotImplementedType MappingProxyType",
            kPlainShared},
    NameRow{"types", "CodeType FunctionType LambdaType", kEvaluates},
    NameRow{"types", "MethodType ModuleType new_class prepare_class coroutine",
            kReaches},
    NameRow{"new", "code function", kEvaluates},
    NameRow{"new", "instance classobj module instancemethod", kReaches},
    NameRow{"collections",
            "ChainMap Counter OrderedDict UserDict UserList UserString "
            "defaultdict deque",
            kPlain},
    NameRow{"_collections", "OrderedDict defaultdict deque _deque_iterator",
            kPlain},
    NameRow{"copyreg", "_reconstructor", depends(Rule::kMakesFirstTwo)},
    NameRow{"copyreg", "__newobj__ __newobj_ex__", depends(Rule::kMakesFirst)},
    NameRow{"copyreg", "pickle constructor add_extension remove_extension",
            kRegisters},
    NameRow{"_codecs", "encode decode", {Trust::kPlain, Rule::kNamesCodec, {}}},
    NameRow{"_codecs",
            "latin_1_encode latin_1_decode utf_8_encode "
            "utf_8_decode ascii_encode ascii_decode escape_decode",
            kPlain},
    NameRow{"codecs", "encode decode", {Trust::kPlain, Rule::kNamesCodec, {}}},
    NameRow{"codecs", "open EncodedFile", kTouchesFiles},
    NameRow{"codecs", "register register_error lookup", kRegisters},
    NameRow{"_codecs", "register register_error", kRegisters},
    NameRow{"itertools",
            "chain combinations combinations_with_replacement compress count "
            "cycle islice permutations product repeat zip_longest pairwise "
            "batched tee _tee _tee_dataobject",
            kPlain},
    NameRow{"itertools", "filterfalse takewhile dropwhile starmap",
            depends(Rule::kCallsFirst)},
    NameRow{"itertools", "accumulate groupby", depends(Rule::kCallsSecond)},
    NameRow{"functools", "partial", depends(Rule::kPartial)},
    NameRow{"_functools", "partial", depends(Rule::kPartial)},
    NameRow{"functools", "reduce", kReduces},
    NameRow{"_functools", "reduce", kReduces},
    NameRow{"functools",
            "partialmethod singledispatch singledispatchmethod lru_cache cache "
            "cached_property cmp_to_key wraps update_wrapper total_ordering",
            kCalls},
    NameRow{
        "operator",
        "itemgetter getitem abs add and_ concat contains countOf eq floordiv "
        "ge gt index indexOf inv invert is_ is_not le length_hint lshift lt "
        "matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor",
        kPlainShared},
    NameRow{
        "_operator",
        "itemgetter getitem abs add and_ concat contains countOf eq floordiv "
        "ge gt index indexOf inv invert is_ is_not le length_hint lshift lt "
        "matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor",
        kPlainShared},
    NameRow{"operator", "attrgetter",
            does("reaches any function by its name", Rule::kAttributeGetter)},
    NameRow{"_operator", "attrgetter",
            does("reaches any function by its name", Rule::kAttributeGetter)},
    NameRow{"operator", kEveryName, kReaches},
    NameRow{"_operator", kEveryName, kReaches},
    NameRow{
        "typing",
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
        "Match IO TextIO BinaryIO ContextManager",
        kPlainShared},
    NameRow{"typing", "ForwardRef get_type_hints _eval_type", kEvaluates},
    NameRow{
        "collections.abc",
        "Awaitable Coroutine AsyncIterable AsyncIterator AsyncGenerator "
        "Hashable Iterable Iterator Generator Reversible Sized Container "
        "Callable Collection Set MutableSet Mapping MutableMapping "
        "MappingView KeysView ItemsView ValuesView Sequence MutableSequence "
        "ByteString Buffer",
        kPlainShared},
    NameRow{"math",
            "acos acosh asin asinh atan atan2 atanh cbrt ceil comb "
            "copysign cos cosh degrees dist e erf erfc exp exp2 expm1 "
            "fabs factorial floor fma fmod frexp fsum gamma gcd hypot "
            "inf isclose isfinite isinf isnan isqrt lcm ldexp lgamma log "
            "log10 log1p log2 modf nan nextafter perm pi pow prod "
            "radians remainder sin sinh sqrt sumprod tan tanh tau trunc "
            "ulp",
            kPlainShared},
    NameRow{"cmath",
            "acos acosh asin asinh atan atanh cos cosh e exp inf infj "
            "isclose isfinite isinf isnan log log10 nan nanj phase pi "
            "polar rect sin sinh sqrt tan tanh tau",
            kPlainShared},
    NameRow{"_hashlib",
            "openssl_md5 openssl_sha1 openssl_sha224 openssl_sha256 "
            "openssl_sha384 openssl_sha512",
            kPlain},
    NameRow{"calendar", "Calendar TextCalendar HTMLCalendar", kPlain},
    NameRow{"numbers", "Number Complex Real Rational Integral", kPlainShared},
    NameRow{"pathlib",
            "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
            kPlain},
    NameRow{"pathlib._local",
            "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
            kPlain},
    NameRow{"datetime", "date datetime time timedelta timezone tzinfo", kPlain},
    NameRow{"_datetime", "date datetime time timedelta timezone tzinfo",
            kPlain},
    NameRow{"zoneinfo", "ZoneInfo ZoneInfo._unpickle", kPlainShared},
    NameRow{"time", "struct_time", kPlain},
    NameRow{"decimal", "Decimal Context DecimalTuple", kPlain},
    NameRow{
        "decimal",
        "Clamped ConversionSyntax DecimalException DivisionByZero "
        "DivisionImpossible DivisionUndefined FloatOperation Inexact "
        "InvalidContext InvalidOperation Overflow Rounded Subnormal Underflow",
        kPlain},
    NameRow{"_decimal", "Decimal Context", kPlain},
    NameRow{"fractions", "Fraction", kPlain},
    NameRow{"statistics", "NormalDist StatisticsError", kPlain},
    NameRow{"uuid", "UUID", kPlain},
    NameRow{"uuid", "", kPlainShared},
    NameRow{"array", "array ArrayType", kPlain},
    NameRow{"array", "_array_reconstructor", depends(Rule::kMakesFirst)},
    NameRow{"argparse", "Namespace ArgumentError ArgumentTypeError", kPlain},
    NameRow{"optparse", "Values", {Trust::kPlain, Rule::kAttributes, {}}},
    NameRow{"re", "_compile compile", kPlainShared},
    NameRow{"re", "Pattern Match", kPlainShared},
    NameRow{"re", "error PatternError", kPlain},
    // Called with names, Enum and its like make a class of any methods.
    NameRow{"enum", "auto ", kPlainShared},
    NameRow{"dataclasses",
            "_MISSING_TYPE _HAS_DEFAULT_FACTORY_CLASS _KW_ONLY_TYPE InitVar",
            kPlainShared},
    NameRow{"dataclasses", "FrozenInstanceError", kPlain},
    NameRow{"dataclasses", "make_dataclass dataclass _create_fn", kEvaluates},
    NameRow{"random", "Random SystemRandom", kPlain},
    NameRow{"_random", "Random", kPlain},
    NameRow{"ipaddress",
            "IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface "
            "IPv6Network AddressValueError NetmaskValueError",
            kPlain},
    NameRow{"io", "BytesIO StringIO UnsupportedOperation", kPlain},
    NameRow{"_io", "BytesIO StringIO UnsupportedOperation", kPlain},
    NameRow{"_pyio", "BytesIO StringIO UnsupportedOperation", kPlain},
    NameRow{"StringIO", "StringIO", kPlain},
    NameRow{"cStringIO", "StringIO InputType OutputType", kPlain},
    NameRow{"string", "Template", kPlain},
    NameRow{"textwrap", "TextWrapper", kPlain},
    NameRow{"logging", "getLogger", kPlainShared},
    NameRow{"logging",
            "LogRecord Formatter PercentStyle StrFormatStyle "
            "StringTemplateStyle",
            kPlain},
    NameRow{"json.encoder", "JSONEncoder", kBare},
    NameRow{"json.decoder", "JSONDecoder", kBare},
    NameRow{"csv", "Dialect excel excel_tab unix_dialect", kPlain},
    NameRow{"reprlib", "Repr", kBare},
    NameRow{"pprint", "PrettyPrinter", kBare},
    NameRow{"plistlib", "UID", kPlain},
    NameRow{"zipfile", "ZipInfo", kBare},
    NameRow{"tarfile", "TarInfo", kBare},
    NameRow{"email.message", "Message EmailMessage", kBare},
    NameRow{"email._policybase", "Compat32 Policy", kBare},
    NameRow{"email.policy", "EmailPolicy", kBare},
    NameRow{"email.charset", "Charset", kBare},
    NameRow{"configparser",
            "ConfigParser RawConfigParser SafeConfigParser SectionProxy "
            "BasicInterpolation ExtendedInterpolation Interpolation "
            "LegacyInterpolation ConverterMapping",
            kBare},
    NameRow{"xml.etree.ElementTree", "Element QName ParseError", kPlain},
    NameRow{"xml.etree.cElementTree", "Element", kPlain},
    NameRow{"http", "", kPlainShared},
    NameRow{"http.cookies", "SimpleCookie Morsel CookieError", kPlain},
    NameRow{"urllib.parse",
            "ParseResult ParseResultBytes SplitResult SplitResultBytes "
            "DefragResult DefragResultBytes",
            kPlain},
    NameRow{"urllib.parse", kEveryName, kUnknown},
    NameRow{"urllib.error", "URLError ContentTooShortError", kPlain},
    NameRow{"json.decoder", "JSONDecodeError", kPlain},
    NameRow{"json", "JSONDecodeError", kPlain},
    NameRow{
        "configparser",
        "Error NoSectionError NoOptionError ParsingError DuplicateOptionError "
        "DuplicateSectionError InterpolationError MissingSectionHeaderError",
        kPlain},
    NameRow{"socket",
            "AF_INET AF_INET6 AF_UNIX AF_UNSPEC "
            "AF_PACKET AF_NETLINK SOCK_STREAM SOCK_DGRAM SOCK_RAW SOCK_RDM "
            "SOCK_SEQPACKET",
            kPlainShared},
    NameRow{"socket", "timeout error gaierror herror", kPlain},
    NameRow{"ssl",
            "SSLError SSLEOFError SSLZeroReturnError SSLWantReadError "
            "SSLWantWriteError SSLSyscallError CertificateError",
            kPlain},
    NameRow{"signal",
            "SIGABRT SIGALRM SIGBUS SIGCHLD SIGCONT "
            "SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGKILL SIGPIPE SIGPOLL SIGPROF "
            "SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSEGV SIGSTKFLT SIGSTOP SIGSYS "
            "SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 "
            "SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIG_BLOCK SIG_DFL SIG_IGN "
            "SIG_SETMASK SIG_UNBLOCK",
            kPlainShared},
    NameRow{
        "subprocess",
        "CompletedProcess CalledProcessError TimeoutExpired SubprocessError",
        kPlain},
    // As Python 3 writes them for Python 2.
    NameRow{"commands",
            "CompletedProcess CalledProcessError TimeoutExpired "
            "SubprocessError",
            kPlain},
    NameRow{"shutil",
            "Error SameFileError SpecialFileError ExecError ReadError "
            "RegistryError",
            kPlain},
    NameRow{"os",
            "stat_result statvfs_result _make_stat_result _make_statvfs_result "
            "terminal_size uname_result times_result",
            kPlain},
    NameRow{"posix",
            "stat_result statvfs_result terminal_size uname_result "
            "times_result",
            kPlain},
    NameRow{"nt",
            "stat_result statvfs_result terminal_size uname_result "
            "times_result",
            kPlain},
    NameRow{"asyncio.exceptions",
            "CancelledError TimeoutError InvalidStateError IncompleteReadError "
            "LimitOverrunError",
            kPlain},
    NameRow{"asyncio", "CancelledError TimeoutError InvalidStateError", kPlain},
    NameRow{"multiprocessing",
            "ProcessError BufferTooShort TimeoutError AuthenticationError",
            kPlain},
    NameRow{"multiprocessing.context",
            "ProcessError BufferTooShort TimeoutError AuthenticationError",
            kPlain},
    NameRow{
        "concurrent.futures._base",
        "CancelledError TimeoutError BrokenExecutor InvalidStateError Error",
        kPlain},
    NameRow{"pickle", "PickleBuffer PickleError PicklingError UnpicklingError",
            kPlain},
    NameRow{"_pickle", "PickleBuffer PickleError PicklingError UnpicklingError",
            kPlain},
    // Its constructor reads the line from the file.
    NameRow{"traceback", "FrameSummary", kBare},
    NameRow{"traceback", "StackSummary", kPlain},
    NameRow{"inspect", "Signature Parameter FullArgSpec ArgSpec", kPlain},
    NameRow{"inspect", "_empty", kPlainShared},
    NameRow{"tokenize", "TokenInfo", kPlain},
    NameRow{"difflib", "Match", kPlain},
    NameRow{"graphlib", "TopologicalSorter _NodeInfo CycleError", kPlain},
    // It runs a program when its last field is read.
    NameRow{"platform", "uname_result", kUnknown},
    NameRow{"re", "RegexFlag", kEnumeration},
    NameRow{"uuid", "SafeUUID", kEnumeration},
    NameRow{"http", "HTTPStatus HTTPMethod", kEnumeration},
    NameRow{"signal", "Signals Handlers Sigmasks", kEnumeration},
    NameRow{"socket", "AddressFamily SocketKind", kEnumeration},
    NameRow{"inspect", "_ParameterKind", kEnumeration},
    NameRow{"enum", "FlagBoundary EnumCheck", kEnumeration},
    NameRow{"platform", "AndroidVer IOSVersionInfo", kPlain},
};

}  // namespace

std::span<const NameRow> standard_names() {
  return kStandardNames;
}

}  // namespace postflight
