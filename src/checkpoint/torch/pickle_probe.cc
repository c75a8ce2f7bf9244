#include "checkpoint/torch/pickle_probe.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"
#include "checkpoint/zip/local_header.h"
#include "pickle/audit/audit.h"

namespace postflight {
namespace {

bool is_dotted_name(std::string_view text) {
  return !text.empty() && is_utf8(text) &&
         std::ranges::all_of(text, [](char c) {
           return is_letter(c) || is_digit(c) || c == '_' || c == '.' ||
                  (c & 0x80) != 0;
         });
}

bool is_name(const Global& global) {
  return is_dotted_name(global.module) && is_dotted_name(global.name);
}

// Whether Python would have called or imported something by the place where the
// pickle breaks off. Any text that begins with a c has two lines after it, and
// what is neither a name nor made by a call cannot be called.
bool runs(const Machine& machine) {
  return std::ranges::any_of(
             machine.globals(),
             [](const Global* global) { return is_name(*global); }) ||
         std::ranges::any_of(machine.objects(), [](const Object* object) {
           const Kind kind = object->callable.kind();
           return kind == Kind::kObject || kind == Kind::kPersistent ||
                  kind == Kind::kExtension;
         });
}

// The same for numbers that happen to be opcodes: names are whole lines.
bool runs_by_lines(const Machine& machine) {
  const std::string_view seen = as_text(machine.seen());
  return std::ranges::any_of(machine.globals(), [seen](const Global* global) {
    const std::size_t end =
        static_cast<std::size_t>(global->name.data() - seen.data()) +
        global->name.size();
    return is_name(*global) && global->name.data() >= seen.data() &&
           end < seen.size();
  });
}

}  // namespace

bool starts_like_pickle(Bytes bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x80} &&
         bytes[1] <= std::byte{kHighestProtocol};
}

PickleProbe::Answer PickleProbe::answer(Bytes bytes) {
  machine_.reset();
  const Result<Pickle> pickle = machine_.load(bytes);
  return {.reads = pickle.has_value(),
          .runs = runs(machine_),
          .runs_by_lines = runs_by_lines(machine_)};
}

// A zip archive begins with the opcode for a persistent object, named by the
// rest of the line, and may go on as a pickle. If its first record is a pickle
// of protocol 0 to 2, names of that are met on the way.
bool PickleProbe::imports_at_front(Bytes archive) {
  const auto names_in = [this](Bytes bytes) {
    machine_.reset();
    (void)machine_.load(bytes);
    std::set<std::pair<std::string, std::string>> names;
    for (const GlobalUse& use : audit(machine_).globals)
      if (use.trust > Trust::kTorch && is_dotted_name(use.module) &&
          is_dotted_name(use.name))
        names.emplace(use.module, use.name);
    return names;
  };
  const auto at_front = names_in(archive);
  const auto local = LocalHeader::read(archive, 0);
  if (at_front.empty() || !local)
    return !at_front.empty();
  const auto in_record = names_in(archive.subspan(local->data));
  return !std::ranges::includes(in_record, at_front);
}

}  // namespace postflight
