#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/output.h"

namespace postflight {

// A cell of a table. Its text is already escaped.
struct TableCell {
  enum class Kind : unsigned char { kText, kNumber, kNone };

  std::string text;
  Kind kind = Kind::kText;
};

// Writes a table in the "simple" format of Python's tabulate: two spaces
// between columns, a line of dashes below the headers, numbers right-aligned.
// `cell` is called twice for each cell, so that the table need not be stored.
void write_python_table(
    std::span<const std::string> headers, std::size_t rows,
    const std::function<TableCell(std::size_t row, std::size_t column)>& cell,
    Output& out);

}  // namespace postflight
