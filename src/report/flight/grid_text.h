#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/output.h"
#include "base/terminal.h"
#include "flight/model/job.h"
#include "report/flight/entries_grid.h"

namespace postflight {

// Numbers stacks from 1 in the order in which they are first shown.
class StackNumbers {
 public:
  std::size_t number(StackId stack) {
    const auto [found, is_new] = numbers_.try_emplace(stack, order_.size() + 1);
    if (is_new)
      order_.push_back(stack);
    return found->second;
  }
  const std::vector<StackId>& order() const { return order_; }

 private:
  std::map<StackId, std::size_t> numbers_;
  std::vector<StackId> order_;
};

// Prints the grid of one group, in as many tables as its columns need.
class GridText {
 public:
  // `stacks` may be null: they are then not shown.
  GridText(const Job& job, const EntriesGrid& looks, const GroupGrid& grid,
           const Terminal& terminal, StackNumbers* stacks, Output& out);

  void write();

 private:
  struct Text {
    std::string text;   // escaped
    std::string brief;  // the same for narrow columns; empty if there is none
    Style style = Style::kDim;
    bool styled = false;
  };

  void choose_operations();
  std::string operation_text(const Look& look) const;
  std::string operation_name(const Look& look) const;
  std::string stack_mark(StackId stack) const;
  Text cell_text(std::uint32_t row, const Look& look) const;
  Text gap_text(std::uint32_t row, const GridColumn& column) const;
  Text text_at(std::uint32_t row, const GridColumn& column,
               std::size_t& next) const;
  void name_columns();
  void measure();
  std::size_t fixed_width() const;
  void write_table(std::size_t first, std::size_t last);
  void put(const Text& text, std::size_t width, bool last, std::string& line);
  std::string label(const GridRow& row) const;

  const Job& job_;
  const EntriesGrid& looks_;
  const GroupGrid& grid_;
  const Terminal& terminal_;
  StackNumbers* const stacks_;
  Output& out_;
  // What most ranks called in each row, or nothing for messages.
  std::vector<const Look*> common_;
  std::vector<std::string> names_;  // of columns
  std::vector<std::size_t> widths_;
  std::size_t label_width_ = 0;
  std::size_t operation_width_ = 0;
};

}  // namespace postflight
