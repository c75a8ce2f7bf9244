#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/json_string.h"
#include "checkpoint/model/value_repr.h"
#include "report/checkpoint/report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

std::string numbers(std::span<const std::int64_t> all) {
  std::string text = "[";
  for (const std::int64_t number : all) {
    if (text.size() > 1)
      text += ',';
    constexpr std::int64_t kExact = std::int64_t{1} << 53;
    if (number > kExact || number < -kExact)
      text += fmt::format("\"{}\"", number);
    else
      text += fmt::format("{}", number);
  }
  return text + "]";
}

std::string_view truth(bool value) {
  return value ? "true" : "false";
}

std::string_view role_name(TensorRole role) {
  switch (role) {
    case TensorRole::kParameter:
      return "parameter";
    case TensorRole::kBuffer:
      return "buffer";
    default:
      return "tensor";
  }
}

void write_tensor(const Checkpoint& checkpoint, std::uint32_t node,
                  const Tensor& tensor, std::span<const StorageUse> uses,
                  Output& out) {
  out += "{";
  write_path_json(checkpoint, node, out);
  out += ",";
  write_type_json(tensor, out);
  if (!tensor.has_parts())
    out += fmt::format(",\"bytes\":{}", json_number(tensor.bytes()));
  out += fmt::format(",\"stride\":{},\"offset\":{},", numbers(tensor.stride),
                     json_number(tensor.offset));
  write_json_field("device", tensor.device, out);
  out += ",";
  write_json_field("layout", tensor.layout, out);
  out += fmt::format(",\"role\":\"{}\",\"requires_grad\":{}",
                     role_name(tensor.role), truth(tensor.requires_grad));
  if (!tensor.type.empty()) {
    out += ",";
    write_json_field("type", tensor.type, out);
  }
  if (tensor.conjugated)
    out += ",\"conjugated\":true";
  if (tensor.negated)
    out += ",\"negated\":true";
  if (tensor.storage != kNoIndex) {
    out += fmt::format(",\"storage\":{}", tensor.storage);
    const StorageUse& use = uses[tensor.storage];
    if (use.uses > 1 && use.first != node)
      out += fmt::format(",\"shares\":{}", checkpoint.path_json(use.first));
  }
  if (!tensor.problem.empty()) {
    out += ",";
    write_json_field("problem", tensor.problem, out);
  }
  out += "}";
}

std::string_view kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kDict:
      return "dict";
    case NodeKind::kList:
      return "list";
    case NodeKind::kTuple:
      return "tuple";
    case NodeKind::kSet:
      return "set";
    case NodeKind::kObject:
      return "object";
    case NodeKind::kReference:
      return "reference";
    default:
      return "value";
  }
}

void write_value(const Checkpoint& checkpoint, std::uint32_t index,
                 Output& out) {
  const Node& node = checkpoint.nodes()[index];
  out += "{";
  write_path_json(checkpoint, index, out);
  out += fmt::format(",\"kind\":\"{}\",", kind_name(node.kind));
  if (node.kind == NodeKind::kReference) {
    out += fmt::format("\"to\":{}", checkpoint.path_json(node.index));
  } else if (node.kind == NodeKind::kValue) {
    write_json_field("type", value_type(node.value), out);
    out += ",";
    write_json_field("value", value_repr(node.value), out);
  } else {
    write_json_field("type",
                     node.type.empty() ? kind_name(node.kind) : node.type, out);
    out += fmt::format(",\"length\":{}", node.children);
  }
  out += "}";
}

// What is not UTF-8 stands escaped; properties are for people. Each shard of a
// folder may have the same ones, of which the first is taken.
void write_properties(const Checkpoint& checkpoint, Output& out) {
  std::set<std::string, std::less<>> written;
  for (const auto& [key, text] : checkpoint.properties()) {
    std::string name;
    static_cast<void>(append_json_string(key, name));
    const auto [at, fresh] = written.insert(std::move(name));
    if (!fresh)
      continue;
    std::string field = written.size() == 1 ? "" : ",";
    field += *at + ":";
    static_cast<void>(append_json_string(text, field));
    out += field;
  }
}

}  // namespace

std::string json_number(std::uint64_t number) {
  constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
  return number > kExact ? fmt::format("\"{}\"", number)
                         : fmt::format("{}", number);
}

void write_path_json(const Checkpoint& checkpoint, std::uint32_t node,
                     Output& out) {
  out += fmt::format("\"path\":{},", checkpoint.path_json(node));
  write_json_field("key", checkpoint.path_of(node), out);
}

void write_type_json(const Tensor& tensor, Output& out) {
  write_json_field("dtype", tensor.dtype.name, out);
  out += fmt::format(",\"shape\":{}",
                     tensor.shape_known ? numbers(tensor.shape) : "null");
}

void write_listing_json(std::string_view name, const Checkpoint& checkpoint,
                        const ListingOptions& options, Output& out) {
  const std::vector<StorageUse> uses = storage_uses(checkpoint);
  out += "{\"schema\":\"postflight.ckpt.ls/1\",";
  write_json_field("file", name, out);
  out += fmt::format(",\"format\":\"{}\",\"properties\":{{",
                     format_name(checkpoint.format()));
  write_properties(checkpoint, out);
  out += "},\"tensors\":[";
  bool first = true;
  TensorTotals totals;
  for (const std::uint32_t index : options.nodes) {
    const Tensor* const tensor =
        checkpoint.tensor_at(checkpoint.nodes()[index]);
    if (tensor == nullptr)
      continue;
    totals.add(*tensor);
    out += first ? "" : ",";
    first = false;
    write_tensor(checkpoint, index, *tensor, uses, out);
  }
  out += "]";
  if (options.all) {
    out += ",\"values\":[";
    first = true;
    for (const std::uint32_t index : options.nodes) {
      if (checkpoint.tensor_at(checkpoint.nodes()[index]) != nullptr)
        continue;
      out += first ? "" : ",";
      first = false;
      write_value(checkpoint, index, out);
    }
    out += "]";
  }
  out += fmt::format(
      ",\"totals\":{{\"tensors\":{},\"elements\":{},\"bytes\":{}}},"
      "\"findings\":",
      totals.tensors, json_number(totals.elements), json_number(totals.bytes));
  write_findings_json(checkpoint.findings(), out);
  out += "}\n";
}

}  // namespace postflight
