#include "pickle/names/known_names.h"

#include <array>

namespace postflight {
namespace {

using namespace known;

// Types of Python's library that only hold what they are given: exceptions,
// named tuples and the like, and enumerations, of CPython 2.7 and 3.6 to 3.13.
// tests/oracle/everyday_test.py finds those of an interpreter.
constexpr std::array kStandardTypes = {
    NameRow{"ConfigParser",
            "DuplicateSectionError Error InterpolationDepthError "
            "InterpolationError InterpolationMissingOptionError "
            "InterpolationSyntaxError MissingSectionHeaderError "
            "NoOptionError NoSectionError ParsingError",
            kPlain},
    NameRow{"Cookie", "CookieError", kPlain},
    NameRow{"HTMLParser", "HTMLParseError", kPlain},
    NameRow{"Queue", "Empty Full", kPlain},
    NameRow{"_ast",
            "AST Add And AnnAssign Assert Assign AsyncFor AsyncFunctionDef "
            "AsyncWith Attribute AugAssign AugLoad AugStore Await BinOp "
            "BitAnd BitOr BitXor BoolOp Break Bytes Call ClassDef Compare "
            "Constant Continue Del Delete Dict DictComp Div Ellipsis Eq "
            "ExceptHandler Expr Expression ExtSlice FloorDiv For "
            "FormattedValue FunctionDef FunctionType GeneratorExp Global "
            "Gt GtE If IfExp Import ImportFrom In Index Interactive Invert "
            "Is IsNot JoinedStr LShift Lambda List ListComp Load Lt LtE "
            "MatMult Match MatchAs MatchClass MatchMapping MatchOr "
            "MatchSequence MatchSingleton MatchStar MatchValue Mod Module "
            "Mult Name NameConstant NamedExpr Nonlocal Not NotEq NotIn Num "
            "Or Param ParamSpec Pass Pow RShift Raise Return Set SetComp "
            "Slice Starred Store Str Sub Subscript Suite Try TryStar Tuple "
            "TypeAlias TypeIgnore TypeVar TypeVarTuple UAdd USub UnaryOp "
            "While With Yield YieldFrom _ast_Ellipsis alias arg arguments "
            "boolop cmpop comprehension excepthandler expr expr_context "
            "keyword match_case mod operator pattern slice stmt "
            "type_ignore type_param unaryop withitem",
            kPlain},
    NameRow{"_csv", "Error", kPlain},
    NameRow{"_curses", "error", kPlain},
    NameRow{"_curses_panel", "error", kPlain},
    NameRow{"_hashlib", "UnsupportedDigestmodError", kPlain},
    NameRow{"_lsprof", "profiler_entry profiler_subentry", kPlain},
    NameRow{"_lzma", "LZMAError", kPlain},
    NameRow{"_pyio", "BlockingIOError", kPlain},
    NameRow{"_queue", "Empty", kPlain},
    NameRow{"_thread", "_ExceptHookArgs", kPlain},
    NameRow{"_tkinter", "TclError", kPlain},
    NameRow{"aifc", "Error _aifc_params", kPlain},
    NameRow{"ast",
            "AST Add And AnnAssign Assert Assign AsyncFor AsyncFunctionDef "
            "AsyncWith Attribute AugAssign AugLoad AugStore Await BinOp "
            "BitAnd BitOr BitXor BoolOp Break Bytes Call ClassDef Compare "
            "Constant Continue Del Delete Dict DictComp Div Ellipsis Eq "
            "ExceptHandler Expr Expression ExtSlice FloorDiv For "
            "FormattedValue FunctionDef FunctionType GeneratorExp Global "
            "Gt GtE If IfExp Import ImportFrom In Index Interactive Invert "
            "Is IsNot JoinedStr LShift Lambda List ListComp Load Lt LtE "
            "MatMult Match MatchAs MatchClass MatchMapping MatchOr "
            "MatchSequence MatchSingleton MatchStar MatchValue Mod Module "
            "Mult Name NameConstant NamedExpr Nonlocal Not NotEq NotIn Num "
            "Or Param ParamSpec Pass Pow RShift Raise Return Set SetComp "
            "Slice Starred Store Str Sub Subscript Suite Try TryStar Tuple "
            "TypeAlias TypeIgnore TypeVar TypeVarTuple UAdd USub UnaryOp "
            "While With Yield YieldFrom _ast_Ellipsis alias arg arguments "
            "boolop cmpop comprehension excepthandler expr expr_context "
            "keyword match_case mod operator pattern slice stmt "
            "type_ignore type_param unaryop withitem",
            kPlain},
    NameRow{"asyncio.base_futures", "InvalidStateError", kPlain},
    NameRow{"asyncio.events", "SendfileNotAvailableError", kPlain},
    NameRow{"asyncio.exceptions",
            "BrokenBarrierError SendfileNotAvailableError", kPlain},
    NameRow{"asyncio.queues", "QueueEmpty QueueFull QueueShutDown", kPlain},
    NameRow{"asyncio.streams", "IncompleteReadError LimitOverrunError", kPlain},
    NameRow{"asyncore", "ExitNow", kPlain},
    NameRow{"audiodev", "error", kPlain},
    NameRow{"audioop", "error", kPlain},
    NameRow{"bdb", "BdbQuit", kPlain},
    NameRow{"binascii", "Error Incomplete", kPlain},
    NameRow{"binhex", "Error", kPlain},
    NameRow{"cPickle", "PicklingError", kPlain},
    NameRow{"calendar", "IllegalMonthError IllegalWeekdayError", kPlain},
    NameRow{"concurrent.futures._base", "DoneAndNotDoneFutures", kPlain},
    NameRow{"concurrent.futures.process", "BrokenProcessPool _RemoteTraceback",
            kPlain},
    NameRow{"concurrent.futures.thread", "BrokenThreadPool", kPlain},
    NameRow{"configparser",
            "InterpolationDepthError InterpolationMissingOptionError "
            "InterpolationSyntaxError MultilineContinuationError",
            kPlain},
    NameRow{"cookielib", "LoadError", kPlain},
    NameRow{"copy", "Error", kPlain},
    NameRow{"crypt", "_Method", kPlain},
    NameRow{"ctypes", "ArgumentError", kPlain},
    NameRow{"dis",
            "Instruction Positions _ExceptionTableEntry "
            "_ExceptionTableEntryBase _Instruction",
            kPlain},
    NameRow{"doctest", "DocTestFailure TestResults UnexpectedException",
            kPlain},
    NameRow{"dummy_thread", "error", kPlain},
    NameRow{"email.errors",
            "BoundaryError CharsetError CloseBoundaryNotFoundDefect "
            "FirstHeaderLineIsContinuationDefect HeaderDefect "
            "HeaderMissingRequiredValue HeaderParseError HeaderWriteError "
            "InvalidBase64CharactersDefect InvalidBase64LengthDefect "
            "InvalidBase64PaddingDefect InvalidDateDefect "
            "InvalidHeaderDefect "
            "InvalidMultipartContentTransferEncodingDefect MessageDefect "
            "MessageError MessageParseError MisplacedEnvelopeHeaderDefect "
            "MissingHeaderBodySeparatorDefect MultipartConversionError "
            "MultipartInvariantViolationDefect NoBoundaryInMultipartDefect "
            "NonASCIILocalPartDefect NonPrintableDefect "
            "ObsoleteHeaderDefect StartBoundaryNotFoundDefect "
            "UndecodableBytesDefect",
            kPlain},
    NameRow{"encodings", "CodecRegistryError", kPlain},
    NameRow{"fpformat", "NotANumber", kPlain},
    NameRow{"ftplib", "Error error_perm error_proto error_reply error_temp",
            kPlain},
    NameRow{"getopt", "GetoptError", kPlain},
    NameRow{"getpass", "GetPassWarning", kPlain},
    NameRow{"grp", "struct_group", kPlain},
    NameRow{"gzip", "BadGzipFile", kPlain},
    NameRow{"hotshot", "ProfilerError", kPlain},
    NameRow{"htmllib", "HTMLParseError", kPlain},
    NameRow{"http.client",
            "BadStatusLine CannotSendHeader CannotSendRequest "
            "HTTPException ImproperConnectionState IncompleteRead "
            "InvalidURL LineTooLong NotConnected RemoteDisconnected "
            "ResponseNotReady UnimplementedFileMode UnknownProtocol "
            "UnknownTransferEncoding",
            kPlain},
    NameRow{"http.cookiejar", "LoadError", kPlain},
    NameRow{"httplib",
            "BadStatusLine CannotSendHeader CannotSendRequest "
            "HTTPException ImproperConnectionState IncompleteRead "
            "InvalidURL LineTooLong NotConnected ResponseNotReady "
            "UnimplementedFileMode UnknownProtocol UnknownTransferEncoding",
            kPlain},
    NameRow{"importlib.metadata", "EntryPoint PackageNotFoundError", kPlain},
    NameRow{"importlib.metadata._collections", "Pair", kPlain},
    NameRow{"inspect",
            "ArgInfo Arguments Attribute ClassFoundException ClosureVars "
            "EndOfBlock FrameInfo ModuleInfo Traceback _FrameInfo "
            "_Traceback",
            kPlain},
    NameRow{"locale", "Error", kPlain},
    NameRow{"macpath", "norm_error", kPlain},
    NameRow{"mailbox",
            "Error ExternalClashError FormatError NoSuchMailboxError "
            "NotEmptyError",
            kPlain},
    NameRow{"mailcap", "UnsafeMailcapInput", kPlain},
    NameRow{"mhlib", "Error", kPlain},
    NameRow{"multifile", "Error", kPlain},
    NameRow{"multiprocessing.managers", "RemoteError", kPlain},
    NameRow{"multiprocessing.pool", "MaybeEncodingError RemoteTraceback",
            kPlain},
    NameRow{"netrc", "NetrcParseError", kPlain},
    NameRow{"nis", "error", kPlain},
    NameRow{"nntplib",
            "ArticleInfo GroupInfo NNTPDataError NNTPError "
            "NNTPPermanentError NNTPProtocolError NNTPReplyError "
            "NNTPTemporaryError",
            kPlain},
    NameRow{"optparse",
            "AmbiguousOptionError BadOptionError OptParseError "
            "OptionConflictError OptionError OptionValueError",
            kPlain},
    NameRow{"ossaudiodev", "OSSAudioError", kPlain},
    NameRow{"pathlib._abc", "UnsupportedOperation", kPlain},
    NameRow{"pdb", "Restart", kPlain},
    NameRow{"pickle", "_Stop", kPlain},
    NameRow{"pkgutil", "ModuleInfo", kPlain},
    NameRow{"plistlib", "InvalidFileException", kPlain},
    NameRow{"poplib", "error_proto", kPlain},
    NameRow{"posix", "sched_param waitid_result", kPlain},
    NameRow{"pwd", "struct_passwd", kPlain},
    NameRow{"py_compile", "PyCompileError", kPlain},
    NameRow{"pydoc", "ErrorDuringImport", kPlain},
    NameRow{"queue", "Empty Full ShutDown", kPlain},
    NameRow{"resource", "struct_rusage", kPlain},
    NameRow{"runpy", "_Error", kPlain},
    NameRow{"sched", "Event", kPlain},
    NameRow{"selectors", "SelectorKey", kPlain},
    NameRow{"sgmllib", "SGMLParseError", kPlain},
    NameRow{"shutil", "_GiveupOnFastCopy", kPlain},
    NameRow{"signal", "ItimerError struct_siginfo", kPlain},
    NameRow{"smtplib",
            "SMTPAuthenticationError SMTPConnectError SMTPDataError "
            "SMTPException SMTPHeloError SMTPNotSupportedError "
            "SMTPRecipientsRefused SMTPResponseException SMTPSenderRefused "
            "SMTPServerDisconnected",
            kPlain},
    NameRow{"sndhdr", "SndHeaders", kPlain},
    NameRow{"socket", "_GiveupOnSendfile", kPlain},
    NameRow{"spwd", "struct_spwd", kPlain},
    NameRow{"sqlite3",
            "DataError DatabaseError Error IntegrityError InterfaceError "
            "InternalError NotSupportedError OperationalError "
            "ProgrammingError Warning",
            kPlain},
    NameRow{"sre_constants", "error", kPlain},
    NameRow{"sre_parse", "Verbose", kPlain},
    NameRow{"ssl", "DefaultVerifyPaths SSLCertVerificationError _ASN1Object",
            kPlain},
    NameRow{"statistics", "LinearRegression", kPlain},
    NameRow{"struct", "error", kPlain},
    NameRow{"sunau", "Error _sunau_params", kPlain},
    NameRow{"sunaudio", "error", kPlain},
    NameRow{"tabnanny", "NannyNag", kPlain},
    NameRow{"tarfile",
            "AbsoluteLinkError AbsolutePathError CompressionError "
            "EOFHeaderError EmptyHeaderError ExtractError FilterError "
            "HeaderError InvalidHeaderError LinkOutsideDestinationError "
            "OutsideDestinationError ReadError SpecialFileError "
            "StreamError SubsequentHeaderError TarError "
            "TruncatedHeaderError",
            kPlain},
    NameRow{"termios", "error", kPlain},
    NameRow{"thread", "error", kPlain},
    NameRow{"threading", "BrokenBarrierError", kPlain},
    NameRow{"toaiff", "error", kPlain},
    NameRow{"tokenize", "StopTokenizing TokenError", kPlain},
    NameRow{"tomllib", "TOMLDecodeError", kPlain},
    NameRow{"traceback", "_Anchors", kPlain},
    NameRow{"unittest.case",
            "SkipTest _ExpectedFailure _LoggingWatcher _ShouldStop "
            "_UnexpectedSuccess",
            kPlain},
    NameRow{"urllib", "ContentTooShortError", kPlain},
    NameRow{"urllib.robotparser", "RequestRate", kPlain},
    NameRow{"urllib2", "URLError", kPlain},
    NameRow{"urlparse", "ParseResult SplitResult", kPlain},
    NameRow{"uu", "Error", kPlain},
    NameRow{"warnings", "_OptionError", kPlain},
    NameRow{"wave", "Error _wave_params", kPlain},
    NameRow{"webbrowser", "Error", kPlain},
    NameRow{"xdrlib", "ConversionError Error", kPlain},
    NameRow{"xml.dom",
            "DOMException DomstringSizeErr HierarchyRequestErr "
            "IndexSizeErr InuseAttributeErr InvalidAccessErr "
            "InvalidCharacterErr InvalidModificationErr InvalidStateErr "
            "NamespaceErr NoDataAllowedErr NoModificationAllowedErr "
            "NotFoundErr NotSupportedErr SyntaxErr ValidationErr "
            "WrongDocumentErr",
            kPlain},
    NameRow{"xml.parsers.expat", "ExpatError", kPlain},
    NameRow{"xml.sax._exceptions",
            "SAXException SAXNotRecognizedException "
            "SAXNotSupportedException SAXParseException "
            "SAXReaderNotAvailable",
            kPlain},
    NameRow{"xmllib", "Error", kPlain},
    NameRow{"xmlrpclib", "Error Fault ProtocolError ResponseError", kPlain},
    NameRow{"zipapp", "ZipAppError", kPlain},
    NameRow{"zipfile", "BadZipFile BadZipfile LargeZipFile", kPlain},
    NameRow{"zipimport", "ZipImportError", kPlain},
    NameRow{"zlib", "error", kPlain},
    NameRow{"zoneinfo._common", "ZoneInfoNotFoundError", kPlain},
    NameRow{"zoneinfo._tzpath", "InvalidTZPathWarning", kPlain},
    NameRow{"ast", "_Precedence", kEnumeration},
    NameRow{"asyncio.locks", "_BarrierState", kEnumeration},
    NameRow{"calendar", "Day Month", kEnumeration},
    NameRow{"inspect", "BufferFlags", kEnumeration},
    NameRow{"plistlib", "PlistFormat", kEnumeration},
    NameRow{"pstats", "SortKey", kEnumeration},
    NameRow{"py_compile", "PycInvalidationMode", kEnumeration},
    NameRow{"socket", "AddressInfo MsgFlag", kEnumeration},
    NameRow{"ssl",
            "AlertDescription Options Purpose SSLErrorNumber TLSVersion "
            "VerifyFlags VerifyMode _SSLMethod _TLSAlertType "
            "_TLSContentType _TLSMessageType",
            kEnumeration},
    NameRow{"symtable", "SymbolTableType", kEnumeration},
    // Members of enumerations that are names of the module, too.
    NameRow{"calendar",
            "APRIL AUGUST DECEMBER FEBRUARY FRIDAY JANUARY JULY JUNE MARCH "
            "MAY MONDAY NOVEMBER OCTOBER SATURDAY SEPTEMBER SUNDAY "
            "THURSDAY TUESDAY WEDNESDAY",
            kPlainShared},
    NameRow{"inspect",
            "_KEYWORD_ONLY _POSITIONAL_ONLY _POSITIONAL_OR_KEYWORD "
            "_VAR_KEYWORD _VAR_POSITIONAL",
            kPlainShared},
    NameRow{"plistlib", "FMT_BINARY FMT_XML", kPlainShared},
    NameRow{"re",
            "A ASCII DEBUG DOTALL I IGNORECASE L LOCALE M MULTILINE NOFLAG "
            "S T TEMPLATE U UNICODE VERBOSE X",
            kPlainShared},
    NameRow{"signal", "SIGCLD SIGIOT", kPlainShared},
    NameRow{"socket",
            "AF_ALG AF_APPLETALK AF_ASH AF_ATMPVC AF_ATMSVC AF_AX25 "
            "AF_BLUETOOTH AF_BRIDGE AF_CAN AF_ECONET AF_IPX AF_IRDA AF_KEY "
            "AF_LLC AF_NETBEUI AF_NETROM AF_PPPOX AF_QIPCRTR AF_RDS "
            "AF_ROSE AF_ROUTE AF_SECURITY AF_SNA AF_TIPC AF_VSOCK "
            "AF_WANPIPE AF_X25 AI_ADDRCONFIG AI_ALL AI_CANONNAME "
            "AI_NUMERICHOST AI_NUMERICSERV AI_PASSIVE AI_V4MAPPED "
            "MSG_CMSG_CLOEXEC MSG_CONFIRM MSG_CTRUNC MSG_DONTROUTE "
            "MSG_DONTWAIT MSG_EOR MSG_ERRQUEUE MSG_FASTOPEN MSG_MORE "
            "MSG_NOSIGNAL MSG_OOB MSG_PEEK MSG_TRUNC MSG_WAITALL "
            "SOCK_CLOEXEC SOCK_NONBLOCK",
            kPlainShared},
    NameRow{"ssl",
            "OP_NO_SSLv2 OP_NO_SSLv3 OP_NO_TLSv1 OP_NO_TLSv1_1 "
            "OP_NO_TLSv1_2 OP_NO_TLSv1_3 PROTOCOL_SSLv2 PROTOCOL_SSLv3 "
            "PROTOCOL_SSLv23 PROTOCOL_TLSv1 PROTOCOL_TLSv1_1 PROTOCOL_TLSv1_2",
            kPlainShared},
    NameRow{"ssl",
            "AF_INET ALERT_DESCRIPTION_ACCESS_DENIED "
            "ALERT_DESCRIPTION_BAD_CERTIFICATE "
            "ALERT_DESCRIPTION_BAD_CERTIFICATE_HASH_VALUE "
            "ALERT_DESCRIPTION_BAD_CERTIFICATE_STATUS_RESPONSE "
            "ALERT_DESCRIPTION_BAD_RECORD_MAC "
            "ALERT_DESCRIPTION_CERTIFICATE_EXPIRED "
            "ALERT_DESCRIPTION_CERTIFICATE_REVOKED "
            "ALERT_DESCRIPTION_CERTIFICATE_UNKNOWN "
            "ALERT_DESCRIPTION_CERTIFICATE_UNOBTAINABLE "
            "ALERT_DESCRIPTION_CLOSE_NOTIFY ALERT_DESCRIPTION_DECODE_ERROR "
            "ALERT_DESCRIPTION_DECOMPRESSION_FAILURE "
            "ALERT_DESCRIPTION_DECRYPT_ERROR "
            "ALERT_DESCRIPTION_HANDSHAKE_FAILURE "
            "ALERT_DESCRIPTION_ILLEGAL_PARAMETER "
            "ALERT_DESCRIPTION_INSUFFICIENT_SECURITY "
            "ALERT_DESCRIPTION_INTERNAL_ERROR "
            "ALERT_DESCRIPTION_NO_RENEGOTIATION "
            "ALERT_DESCRIPTION_PROTOCOL_VERSION "
            "ALERT_DESCRIPTION_RECORD_OVERFLOW "
            "ALERT_DESCRIPTION_UNEXPECTED_MESSAGE "
            "ALERT_DESCRIPTION_UNKNOWN_CA "
            "ALERT_DESCRIPTION_UNKNOWN_PSK_IDENTITY "
            "ALERT_DESCRIPTION_UNRECOGNIZED_NAME "
            "ALERT_DESCRIPTION_UNSUPPORTED_CERTIFICATE "
            "ALERT_DESCRIPTION_UNSUPPORTED_EXTENSION "
            "ALERT_DESCRIPTION_USER_CANCELLED CERT_NONE CERT_OPTIONAL "
            "CERT_REQUIRED OP_ALL OP_CIPHER_SERVER_PREFERENCE "
            "OP_ENABLE_KTLS OP_ENABLE_MIDDLEBOX_COMPAT "
            "OP_IGNORE_UNEXPECTED_EOF OP_LEGACY_SERVER_CONNECT "
            "OP_NO_COMPRESSION OP_NO_RENEGOTIATION OP_NO_TICKET "
            "OP_SINGLE_DH_USE OP_SINGLE_ECDH_USE PROTOCOL_TLS "
            "PROTOCOL_TLS_CLIENT PROTOCOL_TLS_SERVER SOCK_STREAM "
            "SSL_ERROR_EOF SSL_ERROR_INVALID_ERROR_CODE SSL_ERROR_SSL "
            "SSL_ERROR_SYSCALL SSL_ERROR_WANT_CONNECT SSL_ERROR_WANT_READ "
            "SSL_ERROR_WANT_WRITE SSL_ERROR_WANT_X509_LOOKUP "
            "SSL_ERROR_ZERO_RETURN VERIFY_ALLOW_PROXY_CERTS "
            "VERIFY_CRL_CHECK_CHAIN VERIFY_CRL_CHECK_LEAF VERIFY_DEFAULT "
            "VERIFY_X509_PARTIAL_CHAIN VERIFY_X509_STRICT "
            "VERIFY_X509_TRUSTED_FIRST",
            kPlainShared},
};

}  // namespace

std::span<const NameRow> standard_types() {
  return kStandardTypes;
}

}  // namespace postflight
