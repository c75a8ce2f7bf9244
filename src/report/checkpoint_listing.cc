#include <algorithm>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "base/units.h"
#include "checkpoint/value_repr.h"
#include "report/checkpoint_report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

std::string_view kind_word(NodeKind kind) {
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
    default:
      return "";
  }
}

// What is special about a tensor, in the last column.
std::string remarks(const Checkpoint& checkpoint, std::uint32_t node,
                    const Tensor& tensor, std::span<const StorageUse> uses) {
  std::vector<std::string> all;
  const bool shared = tensor.storage != kNoIndex &&
                      uses[tensor.storage].uses > 1 &&
                      uses[tensor.storage].first != node;
  const bool strided = !tensor.has_parts() && !is_contiguous(tensor);
  if (!tensor.problem.empty())
    all.push_back(fmt::format("unreadable: {}", tensor.problem));
  if (tensor.device != "cpu")
    all.emplace_back(tensor.device);
  if (tensor.role == TensorRole::kParameter)
    all.emplace_back(tensor.requires_grad ? "parameter" : "parameter, frozen");
  else if (tensor.role == TensorRole::kBuffer)
    all.emplace_back("buffer");
  else if (tensor.requires_grad)
    all.emplace_back("requires grad");
  if (tensor.has_parts())
    all.emplace_back(tensor.layout);
  else if (strided)
    all.emplace_back("strided");
  if (!tensor.type.empty() && !tensor.has_parts())
    all.emplace_back(tensor.type);
  if (tensor.conjugated)
    all.emplace_back("conjugated");
  if (tensor.negated)
    all.emplace_back("negated");
  if (shared)
    all.push_back(fmt::format("shares {}",
                              checkpoint.path_of(uses[tensor.storage].first)));
  std::string text;
  for (const std::string& one : all)
    text += (text.empty() ? "" : ", ") + one;
  return text.empty() ? text : escape_for_terminal(text);
}

struct Row {
  std::string key;
  std::string dtype;
  std::string shape;
  std::string size;
  std::string remark;
};

std::size_t width_of(std::span<const Row> rows, std::string Row::*column,
                     std::size_t most) {
  std::size_t width = 0;
  for (const Row& row : rows)
    width = std::max(width, display_width(row.*column));
  return std::min(width, most);
}

void append_padded(const std::string& text, std::size_t width,
                   std::string& line) {
  const std::size_t have = display_width(text);
  line += text;
  line.append(2 + (have < width ? width - have : 0), ' ');
}

Row value_row(const Checkpoint& checkpoint, std::uint32_t index) {
  const Node& node = checkpoint.nodes()[index];
  Row row;
  row.key = shown_path(checkpoint, index);
  if (node.kind == NodeKind::kReference) {
    row.dtype = "reference";
    row.remark = fmt::format("to {}", shown_path(checkpoint, node.index));
  } else if (node.kind == NodeKind::kValue) {
    row.dtype = escape_for_terminal(value_type(node.value));
    row.remark = escape_for_terminal(value_repr(node.value));
  } else {
    row.dtype = node.type.empty() ? std::string(kind_word(node.kind))
                                  : escape_for_terminal(node.type);
    row.remark =
        fmt::format("{} item{}", node.children, node.children == 1 ? "" : "s");
  }
  return row;
}

}  // namespace

std::vector<StorageUse> storage_uses(const Checkpoint& checkpoint) {
  std::vector<StorageUse> uses(checkpoint.storages().size());
  for (std::uint32_t i = 0; i < checkpoint.nodes().size(); ++i) {
    const Tensor* const tensor = checkpoint.tensor_at(checkpoint.nodes()[i]);
    if (tensor == nullptr || tensor->storage == kNoIndex)
      continue;
    StorageUse& use = uses[tensor->storage];
    if (use.uses++ == 0)
      use.first = i;
  }
  return uses;
}

std::string shown_path(const Checkpoint& checkpoint, std::uint32_t node) {
  const std::string path = checkpoint.path_of(node);
  return path.empty() ? "(root)" : escape_for_terminal(path);
}

std::string shape_text(const Tensor& tensor) {
  if (!tensor.shape_known)
    return "[?]";
  std::string text = "[";
  for (const std::int64_t size : tensor.shape) {
    if (text.size() > 1)
      text += ", ";
    text += fmt::format_int(size).c_str();
  }
  return text + "]";
}

std::string checkpoint_summary(const Checkpoint& checkpoint,
                               std::span<const std::uint32_t> nodes) {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  for (const std::uint32_t index : nodes) {
    const Tensor* const tensor =
        checkpoint.tensor_at(checkpoint.nodes()[index]);
    if (tensor == nullptr)
      continue;
    ++tensors;
    if (tensor->has_parts())
      continue;
    elements += tensor->elements();
    bytes += tensor->bytes();
  }
  return fmt::format("{}, {} tensor{}, {} element{}, {}",
                     format_title(checkpoint.format), tensors,
                     tensors == 1 ? "" : "s", elements,
                     elements == 1 ? "" : "s", human_bytes(bytes));
}

void write_listing(std::string_view name, const Checkpoint& checkpoint,
                   const ListingOptions& options, const Terminal& terminal,
                   Output& out) {
  const std::vector<StorageUse> uses = storage_uses(checkpoint);
  out += fmt::format("{}  {}\n",
                     terminal.styled(Style::kBold, escape_for_terminal(name)),
                     checkpoint_summary(checkpoint, options.nodes));
  std::vector<Row> rows;
  rows.reserve(options.nodes.size());
  for (const std::uint32_t index : options.nodes) {
    const Tensor* const tensor =
        checkpoint.tensor_at(checkpoint.nodes()[index]);
    if (tensor == nullptr) {
      rows.push_back(value_row(checkpoint, index));
      continue;
    }
    rows.push_back({shown_path(checkpoint, index),
                    escape_for_terminal(tensor->dtype.name),
                    shape_text(*tensor),
                    tensor->has_parts() ? "" : human_bytes(tensor->bytes()),
                    remarks(checkpoint, index, *tensor, uses)});
  }
  const std::size_t key = width_of(rows, &Row::key, 60);
  const std::size_t dtype = width_of(rows, &Row::dtype, 20);
  const std::size_t shape = width_of(rows, &Row::shape, 24);
  const std::size_t size = width_of(rows, &Row::size, 10);
  std::string line;
  for (const Row& row : rows) {
    line.assign("  ");
    append_padded(row.key, key, line);
    append_padded(row.dtype, dtype, line);
    append_padded(row.shape, shape, line);
    append_padded(row.size, size, line);
    line += row.remark;
    while (line.ends_with(' '))
      line.pop_back();
    line += '\n';
    out += line;
  }
  write_findings(checkpoint.findings, terminal, out);
}

}  // namespace postflight
