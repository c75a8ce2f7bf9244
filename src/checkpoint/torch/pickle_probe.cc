#include "checkpoint/torch/pickle_probe.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "checkpoint/zip/local_header.h"
#include "pickle/audit.h"

namespace postflight {
namespace {

bool is_dotted_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '.' ||
           (c & 0x80) != 0;
  });
}

// Whether Python would have called or imported something by the place where the
// pickle breaks off. Any text that begins with a c has two lines after it.
bool runs(const Machine& machine) {
  return !machine.objects().empty() ||
         std::ranges::any_of(machine.globals(), [](const Global* global) {
           return is_dotted_name(global->module) &&
                  is_dotted_name(global->name);
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
  return {.reads = pickle.has_value(), .runs = runs(machine_)};
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
