#include "report/checkpoint/values.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/escape.h"
#include "checkpoint/model/value_repr.h"
#include "report/checkpoint/report.h"

namespace postflight {
namespace {

void write_repr(const Value& value, JsonWriter& json) {
  constexpr std::size_t kMost = 1 << 20;
  json.object();
  json.field("$repr", value_repr(value, kMost));
  json.end();
}

class ValuesTree {
 public:
  ValuesTree(const Checkpoint& checkpoint,
             std::span<const std::uint32_t> leaves, JsonWriter& json)
      : checkpoint_(checkpoint),
        nodes_(checkpoint.nodes()),
        wanted_(nodes_.size()),
        json_(json) {
    for (std::uint32_t node : leaves)
      for (; !wanted_[node]; node = nodes_[node].parent)
        wanted_[node] = true;
  }

  void write(std::uint32_t root = 0) {
    if (nodes_.empty()) {
      json_.value(nullptr);
      return;
    }
    begin(root);
    while (!open_.empty()) {
      Open& now = open_.back();
      while (now.next < now.end && !wanted_[now.next])
        now.next = nodes_[now.next].end;
      if (now.next >= now.end) {
        close(now.form);
        open_.pop_back();
        continue;
      }
      const std::uint32_t child = now.next;
      now.next = nodes_[child].end;
      if (now.form == Form::kItems) {
        json_.array();
        write_key(nodes_[child].key);
        const std::size_t before = open_.size();
        begin(child);
        if (open_.size() > before)
          pairs_.push_back(open_.size());
        else
          json_.end();
        continue;
      }
      if (now.form == Form::kObject)
        json_.key(key_text(nodes_[child].key));
      begin(child);
    }
  }

 private:
  enum class Form : std::uint8_t { kArray, kObject, kItems };
  struct Open {
    Form form;
    std::uint32_t next;
    std::uint32_t end;
  };

  static std::string key_text(const Key& key) {
    return key.is_number() ? std::to_string(key.number) : std::string(key.text);
  }

  void write_key(const Key& key) {
    if (key.is_number()) {
      json_.value(key.number);
    } else if (key.kind == Key::Kind::kOther || !JsonWriter::keeps(key.text)) {
      json_.object();
      json_.field(key.kind == Key::Kind::kOther ? "$repr" : "$text", key.text);
      json_.end();
    } else {
      json_.value(key.text);
    }
  }

  // Whether each wanted key can be a key of a JSON object, of which no reader
  // would see two as one.
  bool fits_object(std::uint32_t container) const {
    std::set<std::string> texts;
    for (std::uint32_t at = container + 1; at < nodes_[container].end;
         at = nodes_[at].end) {
      const Key& key = nodes_[at].key;
      if (wanted_[at] &&
          (key.kind == Key::Kind::kOther || key.text.starts_with('$') ||
           !JsonWriter::keeps(key.text) || !texts.insert(key_text(key)).second))
        return false;
    }
    return true;
  }

  void begin(std::uint32_t index) {
    const Node& node = nodes_[index];
    switch (node.kind) {
      case NodeKind::kValue:
        write_json_value(node, json_);
        return;
      case NodeKind::kReference:
        json_.object();
        json_.field("$same_as", checkpoint_.path_of(node.index));
        json_.end();
        return;
      case NodeKind::kTensor:
        json_.object();
        json_.object("$tensor");
        write_type(checkpoint_.tensors()[node.index], json_);
        json_.end();
        json_.end();
        return;
      case NodeKind::kList:
      case NodeKind::kTuple:
      case NodeKind::kSet:
        json_.array();
        open_.push_back({Form::kArray, index + 1, node.end});
        return;
      case NodeKind::kDict:
      case NodeKind::kObject:
        json_.object();
        if (node.kind == NodeKind::kObject)
          json_.field("$class", node.type);
        if (fits_object(index)) {
          open_.push_back({Form::kObject, index + 1, node.end});
        } else {
          json_.array("$items");
          open_.push_back({Form::kItems, index + 1, node.end});
        }
        return;
    }
  }

  void close(Form form) {
    json_.end();
    if (form == Form::kItems)
      json_.end();
    if (!pairs_.empty() && pairs_.back() == open_.size()) {
      json_.end();
      pairs_.pop_back();
    }
  }

  const Checkpoint& checkpoint_;
  const std::span<const Node> nodes_;
  std::vector<bool> wanted_;
  JsonWriter& json_;
  std::vector<Open> open_;
  // How many containers are open when the second half of a [key, value] ends.
  std::vector<std::size_t> pairs_;
};

}  // namespace

void write_json_value(const Node& node, JsonWriter& json) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  const Value& value = node.value;
  switch (value.kind()) {
    case Kind::kNone:
      json.value(nullptr);
      return;
    case Kind::kBoolean:
      json.value(value.boolean());
      return;
    case Kind::kFloat:
      json.value(value.floating());
      return;
    case Kind::kInteger:
      if (value.integer() >= -kExact && value.integer() <= kExact)
        json.value(value.integer());
      else
        write_repr(value, json);
      return;
    case Kind::kString:
      if (JsonWriter::keeps(value.text()))
        json.value(value.text());
      else
        write_repr(value, json);
      return;
    default:
      write_repr(value, json);
  }
}

void write_values_tree(const Checkpoint& checkpoint,
                       std::span<const std::uint32_t> leaves,
                       JsonWriter& json) {
  ValuesTree(checkpoint, leaves, json).write();
}

void write_subtree_json(const Checkpoint& checkpoint, std::uint32_t node,
                        JsonWriter& json) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = node; i < checkpoint.nodes()[node].end; ++i)
    all.push_back(i);
  ValuesTree(checkpoint, all, json).write(node);
}

void write_subtree(const Checkpoint& checkpoint, std::uint32_t node,
                   Output& out) {
  constexpr std::size_t kDeepest = 32;  // deeper nodes are not indented more
  const std::span<const Node> nodes = checkpoint.nodes();
  std::vector<std::uint32_t> ends;
  for (std::uint32_t i = node; i < nodes[node].end; ++i) {
    const Node& at = nodes[i];
    while (!ends.empty() && ends.back() <= i)
      ends.pop_back();
    std::string name;
    if (i == node) {
      name = shown_path(checkpoint, node);
    } else {
      append_key(at.key, name);
      name = escape_for_terminal(name);
    }
    out += fmt::format(
        "{}{}  ", std::string(2 * std::min(ends.size(), kDeepest), ' '), name);
    if (const Tensor* const tensor = checkpoint.tensor_at(at))
      out += fmt::format("{}{}\n", escape_for_terminal(tensor->dtype.name),
                         shape_text(*tensor));
    else if (at.kind == NodeKind::kReference)
      out += fmt::format("-> {}\n", shown_path(checkpoint, at.index));
    else if (at.kind == NodeKind::kValue)
      out += fmt::format("{}\n", escape_for_terminal(value_repr(at.value)));
    else
      out +=
          fmt::format("{}, {} item{}\n",
                      escape_for_terminal(
                          at.type.empty() ? node_kind_name(at.kind) : at.type),
                      at.children, at.children == 1 ? "" : "s");
    ends.push_back(at.end);
  }
}

}  // namespace postflight
