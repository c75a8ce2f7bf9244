#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/display_width.h"
#include "base/escape.h"
#include "base/units.h"
#include "checkpoint/model/value_repr.h"
#include "checkpoint/verification/safety.h"
#include "report/checkpoint/report.h"
#include "report/finding_text.h"

namespace postflight {
namespace {

// Aligned columns, each as wide as its widest cell up to a limit; the last has
// any width. All cells are in one string and are measured once, as a file may
// have very many.
class Columns {
 public:
  explicit Columns(std::size_t rows) {
    ends_.reserve(rows * kColumns);
    cell_widths_.reserve(rows * kColumns);
    text_.reserve(rows * 48);
  }

  // Text appended up to end_cell() is the next cell.
  std::string& text() { return text_; }

  void end_cell() {
    const std::size_t begin = ends_.empty() ? 0 : ends_.back();
    const std::string_view cell = std::string_view(text_).substr(begin);
    const std::size_t column = ends_.size() % kColumns;
    const std::size_t width =
        column < kWidest.size()
            ? std::min<std::size_t>(display_width(cell), kWidest[column])
            : 0;
    widths_[column] = std::max(widths_[column], width);
    ends_.push_back(text_.size());
    cell_widths_.push_back(static_cast<std::uint8_t>(width));
  }

  void add_cell(std::string_view text) {
    text_ += text;
    end_cell();
  }

  void write(Output& out) const {
    std::string line;
    std::size_t at = 0;
    for (std::size_t i = 0; i < ends_.size(); i += kColumns) {
      line.assign("  ");
      std::size_t spaces = 0;
      for (std::size_t column = 0; column < kColumns; ++column) {
        const std::size_t end = ends_[i + column];
        if (end > at) {
          line.append(spaces, ' ');
          line.append(text_, at, end - at);
          spaces = 0;
          at = end;
        }
        spaces += 2 + widths_[column] - cell_widths_[i + column];
      }
      line += '\n';
      out += line;
    }
  }

 private:
  static constexpr std::array<std::uint8_t, 4> kWidest = {60, 20, 24, 10};
  static constexpr std::size_t kColumns = kWidest.size() + 1;

  std::string text_;
  std::vector<std::size_t> ends_;  // of the cells in it
  std::vector<std::uint8_t> cell_widths_;
  std::array<std::size_t, kColumns> widths_{};
};

// The last column: what is unusual about a tensor.
std::string remarks(const Checkpoint& checkpoint, std::uint32_t node,
                    const Tensor& tensor, std::span<const StorageUse> uses) {
  std::string text;
  const auto add = [&text](std::string_view one) {
    text += text.empty() ? "" : ", ";
    text += one;
  };
  const bool shared = tensor.storage != kNoIndex &&
                      uses[tensor.storage].uses > 1 &&
                      uses[tensor.storage].first != node;
  const bool strided = !tensor.has_parts() && !is_contiguous(tensor);
  if (!tensor.problem.empty())
    add(fmt::format("unreadable: {}", tensor.problem));
  if (tensor.device != "cpu")
    add(tensor.device);
  if (tensor.role == TensorRole::kParameter)
    add(tensor.requires_grad ? "parameter" : "parameter, frozen");
  else if (tensor.role == TensorRole::kBuffer)
    add("buffer");
  else if (tensor.requires_grad)
    add("requires grad");
  if (tensor.has_parts())
    add(tensor.layout);
  else if (strided)
    add("strided");
  if (!tensor.type.empty() && !tensor.has_parts())
    add(tensor.type);
  if (tensor.conjugated)
    add("conjugated");
  if (tensor.negated)
    add("negated");
  if (shared)
    add(fmt::format("shares {}",
                    checkpoint.path_of(uses[tensor.storage].first)));
  return text.empty() ? text : escape_for_terminal(text);
}

void append_escaped(std::string_view text, std::string& to) {
  if (printable_ascii_prefix(text) == text.size())
    to += text;
  else
    to += escape_for_terminal(text);
}

void append_shape(const Tensor& tensor, std::string& to) {
  if (!tensor.shape_known) {
    to += "[?]";
    return;
  }
  to += '[';
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const fmt::format_int size(tensor.shape[i]);
    to += i == 0 ? "" : ", ";
    to.append(size.data(), size.size());
  }
  to += ']';
}

// "950", "12.3 k", "1.3 M", "70.6 B": how people count parameters.
std::string human_count(std::uint64_t count) {
  std::string text = human_bytes(count);
  const std::size_t space = text.find(' ');
  const char prefix = text[space + 1];
  text.resize(space);
  if (prefix != 'B')  // bytes have no prefix
    text.append({' ', prefix == 'G' ? 'B' : prefix});
  return text;
}

bool is_weight(const Dtype& dtype) {
  return is_float8(dtype.numeric) || dtype.numeric == Numeric::kFloat ||
         dtype.numeric == Numeric::kBfloat16 ||
         dtype.numeric == Numeric::kComplex;
}

// What a checkpoint has beside parameters: moments, and the running statistics
// of normalisation layers.
bool is_kept_beside(std::span<const Key> keys) {
  constexpr std::array kLastNames = {"exp_avg",         "exp_avg_sq",
                                     "momentum_buffer", "running_mean",
                                     "running_var",     "max_exp_avg_sq"};
  bool beside = false;
  for (const Key& key : keys) {
    std::string_view text = key.text;
    for (;;) {
      const std::size_t dot = text.find('.');
      const std::string_view name = text.substr(0, dot);
      beside |= name == "opt" || name.starts_with("optim") || name == "rng" ||
                std::ranges::find(kLastNames, name) != kLastNames.end();
      if (dot == text.npos)
        break;
      text.remove_prefix(dot + 1);
    }
  }
  return beside;
}

// What a safetensors or GGUF file says of itself.
void write_metadata(const Checkpoint& checkpoint, Output& out) {
  constexpr std::size_t kMost = 200;
  if (checkpoint.format() != Format::kSafetensors &&
      checkpoint.format() != Format::kShards &&
      checkpoint.format() != Format::kGguf)
    return;
  std::set<std::string_view> written;
  for (const auto& [key, text] : checkpoint.properties())
    if (written.insert(key).second)
      out += fmt::format("  metadata: {} = {}{}\n", escape_for_terminal(key),
                         escape_for_terminal(text.substr(0, kMost)),
                         text.size() > kMost ? "..." : "");
}

class Listing {
 public:
  Listing(const Checkpoint& checkpoint, std::size_t rows)
      : checkpoint_(checkpoint),
        uses_(storage_uses(checkpoint)),
        columns_(rows) {}

  void add(std::uint32_t index) {
    checkpoint_.write_path(index, path_);
    if (path_.empty())
      path_ = "(root)";
    add_escaped(path_);
    const Node& node = checkpoint_.nodes()[index];
    if (const Tensor* const tensor = checkpoint_.tensor_at(node))
      add_tensor(index, *tensor);
    else
      add_value(node);
  }

  void write(Output& out) const { columns_.write(out); }

 private:
  void add_tensor(std::uint32_t index, const Tensor& tensor) {
    add_escaped(tensor.dtype.name);
    append_shape(tensor, columns_.text());
    columns_.end_cell();
    columns_.add_cell(tensor.has_parts() ? "" : human_bytes(tensor.bytes()));
    columns_.add_cell(remarks(checkpoint_, index, tensor, uses_));
  }

  void add_value(const Node& node) {
    std::string remark;
    if (node.kind == NodeKind::kReference) {
      columns_.add_cell("reference");
      remark = fmt::format("to {}", shown_path(checkpoint_, node.index));
    } else if (node.kind == NodeKind::kValue) {
      add_escaped(value_type(node.value));
      remark = escape_for_terminal(value_repr(node.value));
    } else {
      add_escaped(node.type.empty() ? node_kind_name(node.kind) : node.type);
      remark = fmt::format("{} item{}", node.children,
                           node.children == 1 ? "" : "s");
    }
    columns_.add_cell("");  // no shape
    columns_.add_cell("");  // and no size
    columns_.add_cell(remark);
  }

  void add_escaped(std::string_view text) {
    append_escaped(text, columns_.text());
    columns_.end_cell();
  }

  const Checkpoint& checkpoint_;
  std::vector<StorageUse> uses_;
  Columns columns_;
  std::string path_;
};

}  // namespace

std::vector<std::pair<std::string_view, TensorTotals>> totals_by_dtype(
    const Checkpoint& checkpoint, std::span<const std::uint32_t> nodes) {
  std::map<std::string_view, TensorTotals> by_name;
  for (const std::uint32_t index : nodes)
    if (const Tensor* const tensor = checkpoint.tensor_at(index))
      if (!tensor->has_parts())
        by_name[tensor->dtype.name].add(*tensor);
  std::vector<std::pair<std::string_view, TensorTotals>> sorted(by_name.begin(),
                                                                by_name.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const auto& pair) { return pair.second.bytes; });
  return sorted;
}

std::optional<std::uint64_t> parameters_of(
    const Checkpoint& checkpoint, std::span<const std::uint32_t> nodes) {
  if (checkpoint.format() == Format::kRanks)
    return std::nullopt;
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> counted;
  std::uint64_t count = 0;
  for (const std::uint32_t index : nodes) {
    const Tensor* const tensor = checkpoint.tensor_at(index);
    if (tensor == nullptr || tensor->has_parts() || !tensor->problem.empty() ||
        !is_weight(tensor->dtype) ||
        is_kept_beside(checkpoint.keys_to(index)) ||
        (tensor->storage != kNoIndex &&
         !counted.emplace(tensor->storage, tensor->offset, tensor->elements())
              .second))
      continue;
    count = checked_add(count, tensor->elements())
                .value_or(std::numeric_limits<std::uint64_t>::max());
  }
  return count;
}

void TensorTotals::add(const Tensor& tensor) {
  ++tensors;
  if (tensor.has_parts())
    return;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  elements = checked_add(elements, tensor.elements()).value_or(kMost);
  bytes = checked_add(bytes, tensor.bytes()).value_or(kMost);
}

TensorTotals totals_of(const Checkpoint& checkpoint,
                       std::span<const std::uint32_t> nodes) {
  TensorTotals totals;
  for (const std::uint32_t index : nodes)
    if (const Tensor* const tensor =
            checkpoint.tensor_at(checkpoint.nodes()[index]))
      totals.add(*tensor);
  return totals;
}

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
  std::string text;
  append_escaped(path.empty() ? "(root)" : path, text);
  return text;
}

std::string shape_text(const Tensor& tensor) {
  std::string text;
  append_shape(tensor, text);
  return text;
}

std::string checkpoint_summary(const Checkpoint& checkpoint,
                               std::span<const std::uint32_t> nodes) {
  constexpr std::uint64_t kMany = 10'000;
  const TensorTotals totals = totals_of(checkpoint, nodes);
  const std::uint64_t parameters = parameters_of(checkpoint, nodes).value_or(0);
  return fmt::format(
      "{}, {} tensor{}, {} element{}, {}{}", format_title(checkpoint.format()),
      totals.tensors, totals.tensors == 1 ? "" : "s", totals.elements,
      totals.elements == 1 ? "" : "s", human_bytes(totals.bytes),
      parameters < kMany
          ? ""
          : fmt::format(", {} parameters", human_count(parameters)));
}

void write_listing(std::string_view name, const Checkpoint& checkpoint,
                   const ListingOptions& options, const Terminal& terminal,
                   Output& out) {
  out += fmt::format("{}  {}\n",
                     terminal.styled(Style::kBold, escape_for_terminal(name)),
                     checkpoint_summary(checkpoint, options.nodes));
  Listing listing(checkpoint, options.nodes.size());
  for (const std::uint32_t index : options.nodes)
    listing.add(index);
  listing.write(out);
  if (const auto dtypes = totals_by_dtype(checkpoint, options.nodes);
      dtypes.size() > 1)
    for (const auto& [dtype, totals] : dtypes)
      out += fmt::format("  total: {} in {} tensor{} of {}\n",
                         human_bytes(totals.bytes), totals.tensors,
                         totals.tensors == 1 ? "" : "s",
                         escape_for_terminal(dtype));
  write_metadata(checkpoint, out);
  write_safety(safety_of(checkpoint, /*quickly=*/true), terminal, out);
  write_findings(checkpoint.findings(), terminal, out);
}

}  // namespace postflight
