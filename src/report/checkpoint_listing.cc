#include <algorithm>
#include <array>

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

struct TensorRow {
  std::string key;
  std::string dtype;
  std::string shape;
  std::string size;
  std::string remark;
};

// Columns under each other, as wide as the widest cell but no wider than is
// given for each; the last has any width. The text of all cells is one string,
// and they are measured once, for a file may have very many.
class Columns {
 public:
  explicit Columns(std::size_t rows) {
    cells_.reserve(rows * kColumns);
    text_.reserve(rows * 64);
  }

  void add(const TensorRow& row) {
    for (const std::string* const cell :
         {&row.key, &row.dtype, &row.shape, &row.size, &row.remark}) {
      const std::size_t column = cells_.size() % kColumns;
      const std::size_t width =
          column < kWidest.size() ? display_width(*cell) : 0;
      widths_[column] = std::max(widths_[column], width);
      cells_.push_back({cell->size(), width});
      text_ += *cell;
    }
  }

  void write(Output& out) const {
    std::string line;
    std::size_t at = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const Cell& cell = cells_[i];
      const std::size_t column = i % kColumns;
      if (column == 0)
        line.assign("  ");
      line.append(text_, at, cell.size);
      at += cell.size;
      if (column < kWidest.size()) {
        const std::size_t wide = std::min(widths_[column], kWidest[column]);
        line.append(2 + (cell.width < wide ? wide - cell.width : 0), ' ');
        continue;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      line += '\n';
      out += line;
    }
  }

 private:
  static constexpr std::array<std::size_t, 4> kWidest = {60, 20, 24, 10};
  static constexpr std::size_t kColumns = kWidest.size() + 1;

  struct Cell {
    std::size_t size;
    std::size_t width;
  };

  std::string text_;
  std::vector<Cell> cells_;
  std::array<std::size_t, kColumns> widths_{};
};

TensorRow value_row(const Checkpoint& checkpoint, std::uint32_t index) {
  const Node& node = checkpoint.nodes()[index];
  TensorRow row;
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

TensorRow tensor_row(const Checkpoint& checkpoint, std::uint32_t index,
                     const Tensor& tensor, std::span<const StorageUse> uses) {
  return {shown_path(checkpoint, index), escape_for_terminal(tensor.dtype.name),
          shape_text(tensor),
          tensor.has_parts() ? "" : human_bytes(tensor.bytes()),
          remarks(checkpoint, index, tensor, uses)};
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
  std::string path = checkpoint.path_of(node);
  if (path.empty())
    return "(root)";
  if (printable_ascii_prefix(path) == path.size())
    return path;
  return escape_for_terminal(path);
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
  Columns columns(options.nodes.size());
  for (const std::uint32_t index : options.nodes) {
    const Tensor* const tensor =
        checkpoint.tensor_at(checkpoint.nodes()[index]);
    columns.add(tensor == nullptr
                    ? value_row(checkpoint, index)
                    : tensor_row(checkpoint, index, *tensor, uses));
  }
  columns.write(out);
  write_findings(checkpoint.findings, terminal, out);
}

}  // namespace postflight
