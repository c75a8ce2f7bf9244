#include "pickle/names/renaming.h"

#include <array>

#include "pickle/names/known_names.h"

namespace postflight {
namespace {

struct Renaming {
  std::string_view old_module;
  std::string_view old_names;  // separated by spaces; kEveryName: every name
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
    Renaming{"exceptions", kEveryName, "builtins", ""},
    Renaming{"__builtin__", kEveryName, "builtins", ""},
    Renaming{"copy_reg", kEveryName, "copyreg", ""},
    Renaming{"Queue", kEveryName, "queue", ""},
    Renaming{"SocketServer", kEveryName, "socketserver", ""},
    Renaming{"ConfigParser", kEveryName, "configparser", ""},
    Renaming{"repr", kEveryName, "reprlib", ""},
    Renaming{"Tkinter", kEveryName, "tkinter", ""},
    Renaming{"Tix", kEveryName, "tkinter.tix", ""},
    Renaming{"ttk", kEveryName, "tkinter.ttk", ""},
    Renaming{"_winreg", kEveryName, "winreg", ""},
    Renaming{"thread", kEveryName, "_thread", ""},
    Renaming{"dummy_thread", kEveryName, "_dummy_thread", ""},
    Renaming{"dbhash", kEveryName, "dbm.bsd", ""},
    Renaming{"dumbdbm", kEveryName, "dbm.dumb", ""},
    Renaming{"gdbm", kEveryName, "dbm.gnu", ""},
    Renaming{"anydbm", kEveryName, "dbm", ""},
    Renaming{"whichdb", kEveryName, "dbm", ""},
    Renaming{"xmlrpclib", kEveryName, "xmlrpc.client", ""},
    Renaming{"SimpleXMLRPCServer", kEveryName, "xmlrpc.server", ""},
    Renaming{"DocXMLRPCServer", kEveryName, "xmlrpc.server", ""},
    Renaming{"httplib", kEveryName, "http.client", ""},
    Renaming{"Cookie", kEveryName, "http.cookies", ""},
    Renaming{"cookielib", kEveryName, "http.cookiejar", ""},
    Renaming{"BaseHTTPServer", kEveryName, "http.server", ""},
    Renaming{"SimpleHTTPServer", kEveryName, "http.server", ""},
    Renaming{"CGIHTTPServer", kEveryName, "http.server", ""},
    Renaming{"test.test_support", kEveryName, "test.support", ""},
    Renaming{"commands", kEveryName, "subprocess", ""},
    Renaming{"urlparse", kEveryName, "urllib.parse", ""},
    Renaming{"robotparser", kEveryName, "urllib.robotparser", ""},
    Renaming{"urllib2", kEveryName, "urllib.request", ""},
    Renaming{"_abcoll", kEveryName, "collections.abc", ""},
    Renaming{"cPickle", kEveryName, "pickle", ""},
    Renaming{"_elementtree", kEveryName, "xml.etree.ElementTree", ""},
    Renaming{"UserDict", kEveryName, "collections", ""},
    Renaming{"UserList", kEveryName, "collections", ""},
    Renaming{"UserString", kEveryName, "collections", ""},
    Renaming{"StringIO", kEveryName, "io", ""},
    Renaming{"cStringIO", kEveryName, "io", ""},
};

}  // namespace

Global renamed(const Global& global) {
  for (const Renaming& row : kRenamings)
    if (global.module == row.old_module &&
        (row.old_names == kEveryName ||
         (!global.name.empty() && has_word(row.old_names, global.name))))
      return {row.module, row.name.empty() ? global.name : row.name};
  return global;
}

}  // namespace postflight
