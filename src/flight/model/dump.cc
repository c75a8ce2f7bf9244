#include "flight/model/dump.h"

#include <utility>

#include "flight/model/dump_value.h"
#include "flight/model/recorder_dump.h"
#include "flight/model/salvage.h"
#include "json/json_value.h"
#include "pickle/builder.h"
#include "pickle/machine.h"

namespace postflight {
namespace {

Result<Dump> damaged(const std::optional<Value>& root, Error error) {
  if (!root || !looks_like_dump(*root))
    return tl::unexpected<Error>(
        std::move(error).in("it is no flight-recorder dump"));
  Dump dump = TRY(dump_from_value(*root));
  dump.damage = std::move(error);
  return dump;
}

Result<Dump> read_pickle_dump(Bytes bytes, Machine& machine) {
  if (std::optional<Dump> dump = read_recorder_dump(bytes))
    return *std::move(dump);
  machine.reset();
  Result<Pickle> pickle = machine.load(bytes);
  if (pickle) {
    Dump dump = TRY(dump_from_value(pickle->root));
    if (!machine.globals().empty())
      dump.imports = fmt::format("{}.{}", machine.globals()[0]->module,
                                 machine.globals()[0]->name);
    return dump;
  }
  Builder builder;
  return damaged(salvage(machine.unfinished(), builder),
                 std::move(pickle).error());
}

Result<Dump> read_json_dump(Bytes bytes, const Limits& limits) {
  Builder builder;
  JsonValue json = read_json_value(as_text(bytes), builder,
                                   {.limits = limits, .share_texts = true});
  Result<Dump> dump = json.damage ? damaged(json.root, *std::move(json.damage))
                                  : dump_from_value(*json.root);
  if (dump)
    dump->json = true;
  return dump;
}

// JSON begins with a brace or bracket, maybe after blanks or a byte order mark;
// no pickle does.
bool is_json(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf"))
    return true;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != text.npos && (text[begin] == '{' || text[begin] == '[');
}

// Protocols from 2 on say so; older ones begin with the dictionary, or the list
// of recorders before version 1. Anything else need not be read any further.
bool is_pickle(Bytes bytes) {
  constexpr std::string_view kFirst = "\x80(}]";
  return kFirst.find(as_text(bytes)[0]) != kFirst.npos;
}

}  // namespace

Result<Dump> read_dump(Bytes bytes, Machine& machine, const Limits& limits) {
  if (bytes.empty())
    return fail(ErrorKind::kCorrupt,
                "it is empty: the process was killed before it wrote its dump");
  if (is_json(as_text(bytes)))
    return read_json_dump(bytes, limits);
  if (!is_pickle(bytes))
    return fail(ErrorKind::kUnsupported,
                "it is no flight-recorder dump: it begins like neither a "
                "pickle nor JSON");
  return read_pickle_dump(bytes, machine);
}

}  // namespace postflight
