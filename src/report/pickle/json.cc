#include "report/pickle/json.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "base/utf8.h"
#include "pickle/parts.h"
#include "pickle/repr.h"
#include "pickle/sharing.h"
#include "report/finding_text.h"
#include "report/pickle/report.h"

namespace postflight {
namespace {

// Whether a dict can be a JSON object: its keys are valid text, and none could
// be mistaken for one of ours.
bool is_json_object(const Value& dict, const Sharing& sharing) {
  return std::ranges::all_of(dict.pairs(), [&sharing](const Pair& pair) {
    return pair.key.is(Kind::kString) && !pair.key.text().starts_with('$') &&
           sharing.anchor(pair.key) == 0 && is_utf8(pair.key.text());
  });
}

class JsonTree {
 public:
  JsonTree(const Value& root, JsonWriter& json) : sharing_(root), json_(json) {
    begin(root);
    while (!path_.empty())
      step();
  }

 private:
  struct Place {
    Value value;
    int ends;                // of objects and arrays that it opened
    bool as_object = false;  // a dict with plain keys
    std::size_t next = 0;
    Role section = Role::kItem;  // of an object: the list that is open
    bool in_section = false;
  };

  void begin(const Value& value) {
    int ends = 0;
    if (const std::uint32_t anchor = sharing_.anchor(value); anchor != 0) {
      if (!open_anchor(anchor))
        return;
      ends = 1;
    }
    switch (value.kind()) {
      case Kind::kList:
        json_.array();
        return enter(value, ends + 1);
      case Kind::kTuple:
        return enter_array("$tuple", value, ends);
      case Kind::kSet:
        return enter_array("$set", value, ends);
      case Kind::kFrozenSet:
        return enter_array("$frozenset", value, ends);
      case Kind::kPersistent:
        json_.object();
        json_.key("$persistent");
        return enter(value, ends + 1);
      case Kind::kDict:
        if (!is_json_object(value, sharing_))
          return enter_array("$dict", value, ends);
        json_.object();
        enter(value, ends + 1);
        path_.back().as_object = true;
        return;
      case Kind::kObject:
        json_.object();
        json_.field("$making", making_name(value.object().making));
        return enter(value, ends + 1);
      default:
        leaf(value);
        end(ends);
    }
  }

  // Writes what precedes a shared value, or a reference if it was written
  // before; returns whether the value has to follow.
  bool open_anchor(std::uint32_t anchor) {
    json_.object();
    if (anchor < shown_.size() && shown_[anchor]) {
      json_.field("$ref", anchor);
      json_.end();
      return false;
    }
    shown_.resize(std::max<std::size_t>(shown_.size(), anchor + 1));
    shown_[anchor] = true;
    json_.field("$anchor", anchor);
    json_.key("value");
    return true;
  }

  void enter(const Value& value, int ends) { path_.push_back({value, ends}); }

  void enter_array(std::string_view key, const Value& value, int ends) {
    json_.object();
    json_.array(key);
    enter(value, ends + 2);
  }

  void end(int ends) {
    for (; ends > 0; --ends)
      json_.end();
  }

  void step() {
    Place& place = path_.back();
    if (place.next == part_count(place.value)) {
      end(place.ends + (place.in_section ? 1 : 0));
      path_.pop_back();
      return;
    }
    const Part part = part_at(place.value, place.next++);
    if (place.as_object && part.role == Role::kKey) {
      json_.key(part.value.text());
      return;
    }
    if (place.value.is(Kind::kObject))
      name_section(place, part.role);
    begin(part.value);
  }

  // An object's parts have names; items, pairs and states are lists.
  void name_section(Place& place, Role role) {
    switch (role) {
      case Role::kCallable:
        return json_.key("callable");
      case Role::kArguments:
        return json_.key("arguments");
      case Role::kKeywords:
        return json_.key("keywords");
      default:
        break;
    }
    // As in $dict, keys and values are one flat list.
    const Role section = role == Role::kValue ? Role::kKey : role;
    if (place.in_section && place.section == section)
      return;
    if (place.in_section)
      json_.end();
    place.in_section = true;
    place.section = section;
    json_.array(section == Role::kItem  ? "items"
                : section == Role::kKey ? "pairs"
                                        : "states");
  }

  void leaf(const Value& value) {
    switch (value.kind()) {
      case Kind::kNone:
        return json_.value(nullptr);
      case Kind::kBoolean:
        return json_.value(value.boolean());
      case Kind::kInteger:
        return integer(value.integer());
      case Kind::kBigInteger:
        return tagged("$int", repr_integer(value.text()));
      case Kind::kFloat:
        if (std::isfinite(value.floating()))
          return json_.value(value.floating());
        return tagged("$float", value.floating());
      case Kind::kString:
        // JSON can express lone surrogates, but no other invalid UTF-8.
        if (JsonWriter::keeps(value.text()))
          return json_.value(value.text());
        return bytes("$str", value.text());
      case Kind::kLegacyString:
        return bytes("$legacy", value.text());
      case Kind::kBytes:
        return bytes("$bytes", value.text());
      case Kind::kByteArray:
        return bytes("$bytearray", value.text());
      case Kind::kGlobal:
        json_.object();
        json_.array("$global");
        name(value.global().module);
        name(value.global().name);
        return end(2);
      case Kind::kExtension:
        return tagged("$extension", value.integer());
      case Kind::kReadOnlyBuffer:
        json_.object();
        json_.field("$buffer", value.integer());
        json_.field("readonly", true);
        return json_.end();
      default:
        return tagged("$buffer", value.integer());
    }
  }

  // Not a JSON string, which would be mistaken for one of the pickle's.
  void integer(std::int64_t number) {
    constexpr std::int64_t kExact = std::int64_t{1} << 53;
    if (number <= kExact && number >= -kExact)
      return json_.value(number);
    tagged("$int", number);
  }

  template <class T>
  void tagged(std::string_view key, const T& value) {
    json_.object();
    json_.field(key, value);
    json_.end();
  }

  void bytes(std::string_view key, std::string_view text) {
    json_.object();
    json_.key(key);
    json_.value(text);
    if (!JsonWriter::keeps(text))
      json_.field("escaped", true);
    json_.end();
  }

  void name(std::string_view name) {
    const std::uint32_t anchor = sharing_.anchor(name);
    if (anchor != 0 && !open_anchor(anchor))
      return;
    json_.value(name);
    end(anchor != 0 ? 1 : 0);
  }

  Sharing sharing_;
  JsonWriter& json_;
  std::deque<Place>
      path_;  // a vector would take three times the memory to grow
  std::vector<bool> shown_;
};

void write_audit(const Audit& audit, JsonWriter& json) {
  json.array("globals");
  for (const GlobalUse& use : audit.globals) {
    json.object();
    json.field("module", use.module);
    json.field("name", use.name);
    json.field("trust", trust_name(use.trust));
    json.field("uses", use.uses);
    json.end();
  }
  json.end();
  json.array("calls");
  for (const CallUse& use : audit.calls) {
    json.object();
    json.field("callable", use.callable);
    json.field("making", making_name(use.making));
    json.field("trust", trust_name(use.trust));
    json.field("reason", use.reason);
    json.field("uses", use.uses);
    json.end();
  }
  json.end();
}

void write_verdict(const SafetyVerdict& verdict, JsonWriter& json) {
  json.field("name", safety_name(verdict.safety()));
  json.array("reasons");
  for (const Reason& reason : verdict.reasons()) {
    json.object();
    json.field("verdict", safety_name(reason.safety));
    json.field("kind", reason.kind);
    json.field("message", reason.message);
    json.field("where", reason.where);
    json.end();
  }
  json.end();
  json.field("reasons_omitted", verdict.omitted());
}

}  // namespace

void write_pickle_json(const Value& root, JsonWriter& json) {
  JsonTree(root, json);
}

void write_pickle_report_json(std::string_view name, const PickleFile& file,
                              const PickleReportOptions& options, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.pickle/1");
  json.field("file", name);
  json.object("verdict");
  json.field("runs_code", file.runs_code());
  json.field("trust", trust_name(file.worst()));
  json.field("intact", file.intact());
  write_verdict(file.verdict(), json);
  json.end();
  write_findings(file.findings, json);
  json.array("pickles");
  for (const LoadedPickle& loaded : file.pickles) {
    json.object();
    json.field("where", loaded.where);
    json.field("offset", loaded.offset);
    json.field("size", loaded.bytes.size());
    json.field("protocol", loaded.pickle.protocol);
    write_audit(loaded.audit, json);
    if (loaded.error) {
      json.field("error", *loaded.error);
    } else if (options.tree) {
      json.key("value");
      write_pickle_json(loaded.pickle.root, json);
    }
    json.end();
  }
  json.end();
  json.finish();
}

}  // namespace postflight
