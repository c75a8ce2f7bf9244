#include "report/python_table.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace postflight {
namespace {

// tabulate makes columns this much wider than their headers.
constexpr std::size_t kHeaderPadding = 2;

struct TableColumn {
  std::size_t width = 0;
  bool numbers = true;  // only numbers and None
  bool filled = false;
};

// Code points, as Python's len() counts them.
std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

class Line {
 public:
  explicit Line(Output& out) : out_(out) {}

  void add(std::string_view text, const TableColumn& column) {
    if (!first_)
      blanks_ += 2;
    first_ = false;
    const std::size_t rest =
        column.width - std::min(column.width, length(text));
    const bool right = column.numbers && column.filled;
    if (right)
      blanks_ += rest;
    if (!text.empty()) {
      out_ += std::string(blanks_, ' ');
      blanks_ = 0;
      out_ += text;
    }
    if (!right)
      blanks_ += rest;
  }
  void end() { out_ += "\n"; }

 private:
  Output& out_;
  std::size_t blanks_ = 0;  // pending, written only before other text
  bool first_ = true;
};

}  // namespace

void write_python_table(
    std::span<const std::string> headers, std::size_t rows,
    const std::function<TableCell(std::size_t row, std::size_t column)>& cell,
    Output& out) {
  std::vector<TableColumn> columns(headers.size());
  for (std::size_t i = 0; i < headers.size(); ++i)
    columns[i].width = length(headers[i]) + kHeaderPadding;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const TableCell found = cell(row, i);
      columns[i].width = std::max(columns[i].width, length(found.text));
      if (found.kind == TableCell::Kind::kNone)
        continue;
      columns[i].filled = true;
      columns[i].numbers =
          columns[i].numbers && found.kind == TableCell::Kind::kNumber;
    }

  Line header(out);
  for (std::size_t i = 0; i < columns.size(); ++i)
    header.add(headers[i], columns[i]);
  header.end();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0)
      out += "  ";
    out += std::string(columns[i].width, '-');
  }
  out += "\n";
  for (std::size_t row = 0; row < rows; ++row) {
    Line line(out);
    for (std::size_t i = 0; i < columns.size(); ++i)
      line.add(cell(row, i).text, columns[i]);
    line.end();
  }
}

}  // namespace postflight
