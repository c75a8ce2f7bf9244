#include "checkpoint/template.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <unordered_map>

#include "base/hash.h"
#include "base/hash_index.h"
#include "checkpoint/model/value_repr.h"
#include "json/json_value.h"

namespace postflight {
namespace {

// Recursion is as deep as the template is nested, up to here.
constexpr int kDeepestTemplate = 200;

Result<Template> convert(const Value& value, int depth) {
  if (depth > kDeepestTemplate)
    return fail(ErrorKind::kRefused, "the template nests more than {} deep",
                kDeepestTemplate);
  Template made;
  if (value.is(Kind::kNone))
    return made;
  if (value.is(Kind::kList)) {
    made.kind = Template::Kind::kList;
    for (const Value& item : value.items())
      made.list.push_back(TRY(convert(item, depth + 1)));
    return made;
  }
  if (!value.is(Kind::kDict))
    return fail(ErrorKind::kUsage,
                "{} in the template has no meaning; write null, an object, "
                "a list, {{\"$tensor\": ...}} or {{\"$value\": ...}}",
                value_repr(value, 60));
  if (const Value* const tensor = value.find("$tensor")) {
    made.kind = Template::Kind::kTensor;
    const Value* const dtype =
        tensor->is(Kind::kDict) ? tensor->find("dtype") : nullptr;
    const Value* const shape =
        tensor->is(Kind::kDict) ? tensor->find("shape") : nullptr;
    if (dtype == nullptr || !dtype->is(Kind::kString) || shape == nullptr ||
        !shape->is(Kind::kList))
      return fail(ErrorKind::kUsage,
                  "a $tensor in the template needs a dtype and a shape");
    std::string_view name = dtype->text();
    constexpr std::string_view kTorch = "torch.";
    if (name.starts_with(kTorch))
      name.remove_prefix(kTorch.size());
    made.dtype = name;
    for (const Value& size : shape->items()) {
      if (!size.is(Kind::kInteger))
        return fail(ErrorKind::kUsage,
                    "a shape in the template is not a list of integers");
      made.shape.push_back(size.integer());
    }
    return made;
  }
  if (const Value* const plain = value.find("$value")) {
    made.kind = Template::Kind::kValue;
    made.type = value_type(*plain);
    return made;
  }
  made.kind = Template::Kind::kDict;
  for (const Pair& pair : value.pairs())
    made.items.emplace_back(pair.key.text(),
                            TRY(convert(pair.value, depth + 1)));
  return made;
}

std::string class_text(std::string_view name) {
  return fmt::format("<class '{}'>", name);
}

std::string type_of(const Template& wanted) {
  switch (wanted.kind) {
    case Template::Kind::kDict:
      return class_text("dict");
    case Template::Kind::kList:
      return class_text("list");
    case Template::Kind::kTensor:
      return class_text("torch.Tensor");
    default:
      return class_text(wanted.type);
  }
}

std::string type_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::kTensor:
      return class_text("torch.Tensor");
    case NodeKind::kValue:
      return class_text(value_type(node.value));
    case NodeKind::kDict:
      return class_text(node.type.empty() ? "dict"
                        : node.type == "OrderedDict" ||
                                node.type == "defaultdict" ||
                                node.type == "Counter"
                            ? fmt::format("collections.{}", node.type)
                            : std::string(node.type));
    case NodeKind::kList:
      return class_text(node.type.empty() ? "list" : node.type);
    case NodeKind::kTuple:
      return class_text(node.type.empty() ? "tuple" : node.type);
    case NodeKind::kSet:
      return class_text(node.type.empty() ? "set" : node.type);
    default:
      return class_text(node.type.empty() ? "object" : node.type);
  }
}

std::string size_text(std::span<const std::int64_t> shape) {
  return fmt::format("torch.Size([{}])", fmt::join(shape, ", "));
}

bool is_number_type(std::string_view type) {
  return type == "int" || type == "float" || type == "bool";
}

class Selector {
 public:
  explicit Selector(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), nodes_(checkpoint.nodes()) {}

  Result<> visit(std::uint32_t index, const Template& wanted,
                 const std::string& path) {
    // A reference stands for the node that it refers to.
    if (nodes_[index].kind == NodeKind::kReference)
      index = nodes_[index].index;
    const Node& node = nodes_[index];
    const bool none =
        node.kind == NodeKind::kValue && node.value.is(Kind::kNone);
    if (wanted.kind == Template::Kind::kEverything || none) {
      take_all(index);
      return {};
    }
    switch (wanted.kind) {
      case Template::Kind::kDict:
        if (node.kind == NodeKind::kDict)
          return visit_dict(index, wanted, path);
        break;
      case Template::Kind::kList:
        if (node.kind == NodeKind::kList || node.kind == NodeKind::kTuple)
          return visit_list(index, wanted, path);
        break;
      case Template::Kind::kTensor:
        if (node.kind == NodeKind::kTensor)
          return visit_tensor(index, wanted, path);
        break;
      default: {
        const std::string type =
            node.kind == NodeKind::kValue ? value_type(node.value) : "";
        if (type == wanted.type ||
            (is_number_type(type) && is_number_type(wanted.type))) {
          selection_.values.push_back(index);
          return {};
        }
        break;
      }
    }
    return fail(ErrorKind::kRefused,
                "Target value {} is set to {}, but source value is {}", path,
                type_of(wanted), type_of(node));
  }

  Selection take() { return std::move(selection_); }

 private:
  void take_all(std::uint32_t index) {
    for (std::uint32_t i = index; i < nodes_[index].end; ++i) {
      if (nodes_[i].kind == NodeKind::kTensor)
        selection_.tensors.push_back({i, nullptr});
      else if (nodes_[i].kind == NodeKind::kValue)
        selection_.values.push_back(i);
    }
  }

  Result<> visit_dict(std::uint32_t index, const Template& wanted,
                      const std::string& path) {
    HashIndex by_text;
    std::unordered_map<std::int64_t, std::uint32_t> by_number;
    std::vector<std::uint32_t> children;
    by_text.reserve(nodes_[index].children);
    children.reserve(nodes_[index].children);
    for (std::uint32_t at = index + 1; at < nodes_[index].end;
         at = nodes_[at].end) {
      const Key& key = nodes_[at].key;
      if (key.kind == Key::Kind::kString)
        by_text.add(hash_text(key.text), at);
      else if (key.kind == Key::Kind::kInteger)
        by_number.emplace(key.number, at);
      else
        continue;
      children.push_back(at);
    }
    std::vector<std::uint32_t> used;
    for (const auto& item : wanted.items) {
      const std::string& text = item.first;
      std::string deeper = path;
      append_key_as_torch(Key::string(text), deeper);
      std::uint32_t found = by_text.find(
          hash_text(text),
          [&](std::uint32_t child) { return nodes_[child].key.text == text; });
      if (found == kNoIndex) {
        // All keys of JSON are strings.
        std::int64_t number = 0;
        const auto read =
            std::from_chars(text.data(), text.data() + text.size(), number);
        const auto at = read.ptr == text.data() + text.size()
                            ? by_number.find(number)
                            : by_number.end();
        if (at != by_number.end())
          found = at->second;
      }
      if (found == kNoIndex) {
        selection_.missing.push_back(deeper);
        continue;
      }
      used.push_back(found);
      TRY(visit(found, item.second, deeper));
    }
    std::ranges::sort(used);
    std::vector<std::uint32_t> others;
    std::ranges::set_difference(children, used, std::back_inserter(others));
    if (!others.empty())
      selection_.left_out.push_back({path, std::move(others)});
    return {};
  }

  Result<> visit_list(std::uint32_t index, const Template& wanted,
                      const std::string& path) {
    std::size_t place = 0;
    for (std::uint32_t at = index + 1; at < nodes_[index].end;
         at = nodes_[at].end) {
      if (nodes_[at].key.kind != Key::Kind::kIndex)
        continue;
      const std::string deeper = fmt::format("{}[{}]", path, place);
      if (place < wanted.list.size())
        TRY(visit(at, wanted.list[place], deeper));
      else
        selection_.left_out.push_back({deeper});
      ++place;
    }
    for (; place < wanted.list.size(); ++place)
      selection_.missing.push_back(fmt::format("{}[{}]", path, place));
    return {};
  }

  Result<> visit_tensor(std::uint32_t index, const Template& wanted,
                        const std::string& path) {
    const Tensor& tensor = *checkpoint_.tensor_at(nodes_[index]);
    if (!std::ranges::equal(tensor.shape, wanted.shape) ||
        tensor.dtype.name != wanted.dtype)
      return fail(ErrorKind::kRefused,
                  "Target tensor size={} dtype=torch.{} does not match source "
                  "tensor size={} dtype=torch.{} for key {}",
                  size_text(wanted.shape), wanted.dtype,
                  size_text(tensor.shape), tensor.dtype.name, path);
    selection_.tensors.push_back({index, &wanted});
    for (std::uint32_t i = index + 1; i < nodes_[index].end; ++i)
      if (nodes_[i].kind == NodeKind::kTensor)
        selection_.tensors.push_back({i, nullptr});
    return {};
  }

  const Checkpoint& checkpoint_;
  std::span<const Node> nodes_;
  Selection selection_;
};

}  // namespace

Result<Template> parse_template(Bytes json) {
  Builder builder;
  const Value value = TRY(parse_json(json, builder).in("the template"));
  return convert(value, 0);
}

std::vector<std::string> Selection::unexpected(const Checkpoint& checkpoint,
                                               std::size_t most) const {
  std::vector<std::string> texts;
  for (const LeftOut& part : left_out) {
    if (part.nodes.empty() && texts.size() < most)
      texts.push_back(part.path);
    for (const std::uint32_t node : part.nodes) {
      if (texts.size() >= most)
        return texts;
      texts.push_back(part.path);
      append_key_as_torch(checkpoint.nodes()[node].key, texts.back());
    }
  }
  return texts;
}

std::size_t Selection::unexpected_count() const {
  std::size_t count = 0;
  for (const LeftOut& part : left_out)
    count += std::max<std::size_t>(part.nodes.size(), 1);
  return count;
}

Result<Selection> select(const Checkpoint& checkpoint, std::uint32_t root,
                         const Template& wanted) {
  Selector selector(checkpoint);
  TRY(selector.visit(root, wanted, ""));
  return selector.take();
}

}  // namespace postflight
