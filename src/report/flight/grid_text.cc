#include "report/flight/grid_text.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "base/display_width.h"
#include "base/escape.h"
#include "flight/model/rank_set.h"
#include "report/flight/entry_text.h"

namespace postflight {
namespace {

constexpr std::size_t kMargin = 2;
constexpr std::size_t kGap = 2;         // between columns
constexpr std::size_t kCellWidth = 26;  // "_all_gather_base completed"
constexpr std::size_t kLeastWidth = 10;
constexpr std::string_view kOperation = "operation";

Style style_of(State state) {
  switch (state) {
    case State::kCompleted:
      return Style::kGreen;
    case State::kStarted:
      return Style::kCyan;
    case State::kScheduled:
      return Style::kYellow;
    case State::kUnknown:
      return Style::kDim;
  }
  return Style::kDim;
}

std::string state_text(const Look& look) {
  std::string text(state_name(look.state));
  if (look.retired && look.state != State::kCompleted)
    text += ", retired";
  return text;
}

}  // namespace

GridText::GridText(const Job& job, const EntriesGrid& looks,
                   const GroupGrid& grid, const Terminal& terminal,
                   StackNumbers* stacks, Output& out)
    : job_(job),
      looks_(looks),
      grid_(grid),
      terminal_(terminal),
      stacks_(stacks),
      out_(out) {}

void GridText::write() {
  choose_operations();
  name_columns();
  measure();
  const std::size_t fixed = fixed_width();
  for (std::size_t first = 0; first < grid_.columns.size();) {
    std::size_t last = first;
    std::size_t used = fixed;
    while (last < grid_.columns.size() &&
           (last == first || used + widths_[last] <= terminal_.width)) {
      used += widths_[last] + kGap;
      ++last;
    }
    if (first > 0)
      out_ += "\n";
    write_table(first, last);
    first = last;
  }
}

// Each row's most frequent call, by the ranks that show it.
void GridText::choose_operations() {
  struct Count {
    std::size_t ranks = 0;
    std::uint32_t look = 0;
  };
  std::vector<std::unordered_map<std::uint32_t, Count>> counts(
      grid_.rows.size());
  for (const GridColumn& column : grid_.columns)
    for (const GridCell& cell : column.cells) {
      const Look& look = looks_.look(cell.look);
      Count& count = counts[cell.row][look.call.value];
      if (count.ranks == 0)
        count.look = cell.look;
      count.ranks += column.ranks.size();
    }
  common_.assign(grid_.rows.size(), nullptr);
  for (std::size_t row = 0; row < counts.size(); ++row) {
    if (grid_.rows[row].message)
      continue;
    Count best;
    for (const auto& [call, count] : counts[row])
      if (count.ranks > best.ranks ||
          (count.ranks == best.ranks && count.look < best.look))
        best = count;
    if (best.ranks > 0)
      common_[row] = &looks_.look(best.look);
  }
}

std::string GridText::stack_mark(StackId stack) const {
  if (stacks_ == nullptr || stack == StackId{})
    return "";
  return fmt::format(" s{}", stacks_->number(stack));
}

std::string GridText::operation_text(const Look& look) const {
  return escape_for_terminal(call_text(job_, job_.tables.call(look.call)));
}

// Without tensors; of a message only the other rank, for the column has its
// own: "send->1" instead of "send 0->1".
std::string GridText::operation_name(const Look& look) const {
  const Call& call = job_.tables.call(look.call);
  const Operation operation = job_.operation(call);
  std::string name = escape_for_terminal(operation.name);
  if (operation.kind == OperationKind::kSend && operation.destination >= 0)
    name +=
        fmt::format("->{}", job_rank(job_, call.group, operation.destination));
  if (operation.kind == OperationKind::kReceive && operation.source >= 0)
    name += fmt::format("<-{}", job_rank(job_, call.group, operation.source));
  return name;
}

GridText::Text GridText::cell_text(std::uint32_t row, const Look& look) const {
  const Look* const common = common_[row];
  const bool usual = common != nullptr && common->call == look.call;
  const std::string state = state_text(look);
  Text text;
  text.style = style_of(look.state);
  text.styled = true;
  if (usual) {
    text.text = state;
    if (common->stack != look.stack)
      text.text += stack_mark(look.stack);
    return text;
  }
  if (common != nullptr)
    text.style = Style::kRed;
  const std::string name = operation_name(look);
  const Call& call = job_.tables.call(look.call);
  const std::string tensors = escape_for_terminal(
      tensors_text(job_.tables, call.inputs, call.input_dtypes));
  const std::string mark = stack_mark(look.stack);
  text.brief = fmt::format("{} {}{}", name, state, mark);
  text.text = tensors.empty()
                  ? text.brief
                  : fmt::format("{} {} {}{}", name, tensors, state, mark);
  return text;
}

GridText::Text GridText::gap_text(std::uint32_t row,
                                  const GridColumn& column) const {
  if (grid_.rows[row].message)
    return {};
  if (row < column.known_from || row < grid_.current_from)
    return {"?", "", Style::kDim, true};
  if (row >= column.absent_from)
    return column.tells_absence ? Text{"-", "", Style::kRed, true}
                                : Text{"?", "", Style::kDim, true};
  return {};
}

GridText::Text GridText::text_at(std::uint32_t row, const GridColumn& column,
                                 std::size_t& next) const {
  if (next < column.cells.size() && column.cells[next].row == row)
    return cell_text(row, looks_.look(column.cells[next++].look));
  return gap_text(row, column);
}

std::string GridText::label(const GridRow& row) const {
  std::string text = fmt::format("#{}", row.sequence);
  if (row.message)
    text += fmt::format("+{}", row.position + 1);
  else if (row.position > 0)
    text += fmt::format(".{}", row.position + 1);
  if (row.incarnation < grid_.rows.back().incarnation)
    text += fmt::format("@{}", row.incarnation + 1);
  return text;
}

// A set of ranks that is too long for its column goes by a number instead,
// which is explained above the table.
void GridText::name_columns() {
  std::size_t sets = 0;
  for (const GridColumn& column : grid_.columns) {
    std::string name = rank_set_text(column.ranks);
    if (name.size() > kCellWidth) {
      const std::string set = fmt::format("set {}", ++sets);
      out_ += fmt::format("  {}: ranks {}\n", set, name);
      name = set;
    }
    names_.push_back(std::move(name));
  }
}

// Of what stands before the first rank.
std::size_t GridText::fixed_width() const {
  const std::size_t operation =
      operation_width_ > 0 ? operation_width_ + kGap : 0;
  return kMargin + label_width_ + kGap + operation;
}

void GridText::measure() {
  for (std::uint32_t row = 0; row < grid_.rows.size(); ++row) {
    label_width_ = std::max(label_width_, label(grid_.rows[row]).size());
    if (common_[row] != nullptr) {
      const std::string text =
          operation_text(*common_[row]) + stack_mark(common_[row]->stack);
      operation_width_ = std::max(operation_width_, display_width(text));
    }
  }
  if (operation_width_ > 0)
    operation_width_ = std::max(operation_width_, kOperation.size());
  operation_width_ = std::min(operation_width_,
                              std::max(kLeastWidth, terminal_.width * 2 / 5));
  const std::size_t fixed = fixed_width();
  const std::size_t room = terminal_.width > fixed + kLeastWidth
                               ? terminal_.width - fixed
                               : kLeastWidth;
  for (std::size_t i = 0; i < grid_.columns.size(); ++i) {
    std::size_t width = names_[i].size();
    std::size_t next = 0;
    for (std::uint32_t row = 0; row < grid_.rows.size(); ++row)
      width = std::max(
          width, display_width(text_at(row, grid_.columns[i], next).text));
    widths_.push_back(std::min({width, kCellWidth, room}));
  }
}

void GridText::put(const Text& text, std::size_t width, bool last,
                   std::string& line) {
  const bool narrow = !text.brief.empty() && display_width(text.text) > width;
  const std::string shown = cut_to_width(narrow ? text.brief : text.text, width,
                                         terminal_.ellipsis());
  line += text.styled ? terminal_.styled(text.style, shown) : shown;
  if (!last)
    line.append(width - display_width(shown) + kGap, ' ');
}

void GridText::write_table(std::size_t first, std::size_t last) {
  std::string line(kMargin, ' ');
  put({}, label_width_, false, line);
  if (operation_width_ > 0)
    put({std::string(kOperation), "", Style::kBold, true}, operation_width_,
        false, line);
  for (std::size_t i = first; i < last; ++i)
    put({names_[i], "", Style::kBold, true}, widths_[i], i + 1 == last, line);
  out_ += line + "\n";

  std::vector<std::size_t> next(grid_.columns.size());
  for (std::uint32_t row = 0; row < grid_.rows.size(); ++row) {
    line.assign(kMargin, ' ');
    put({label(grid_.rows[row]), ""}, label_width_, false, line);
    Text operation;
    if (common_[row] != nullptr)
      operation.text =
          operation_text(*common_[row]) + stack_mark(common_[row]->stack);
    if (operation_width_ > 0)
      put(operation, operation_width_, false, line);
    for (std::size_t i = first; i < last; ++i)
      put(text_at(row, grid_.columns[i], next[i]), widths_[i], i + 1 == last,
          line);
    while (line.ends_with(' '))
      line.pop_back();
    out_ += line + "\n";
  }
}

}  // namespace postflight
