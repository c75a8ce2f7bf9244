#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/output.h"

namespace postflight {

struct LayoutOptions {
  std::size_t width = 80;
  std::size_t margin = 0;       // columns before every line
  std::size_t max_indent = 40;  // deeper groups are not indented further
};

// Lays out nested groups of text: a group that fits into the rest of the line
// is printed on it, any other has each item on its own line, indented by two
// columns. (Oppen, "Prettyprinting", 1980: linear time, and memory for one
// line.)
//
//   layout.open("[");  layout.item();  layout.text("1");  layout.item();
//   layout.text("2");  layout.close("]");      prints [1, 2] or four lines
//
// Text must be escaped already; it is written to `out` as soon as its layout is
// decided.
class Layout {
 public:
  Layout(const LayoutOptions& options, Output& out);

  void text(std::string_view text);
  void open(std::string_view bracket);
  void item();  // before each item of a group
  void close(std::string_view bracket);
  // Ends the line; the groups must all be closed.
  void finish();

 private:
  enum class What : unsigned char {
    kText,
    kOpen,
    kFirstItem,
    kNextItem,
    kClose
  };
  struct Token {
    What what{};
    std::string text;
    std::size_t width = 0;
    std::size_t start = 0;  // width of all tokens before it
    std::size_t end = 0;    // kOpen: width up to its close; 0 while unknown
  };

  void add(What what, std::string_view text);
  // Prints the leading tokens whose layout is decided.
  void settle();
  void print_group();
  void print_front();
  void new_line();

  LayoutOptions options_;
  Output& out_;
  std::deque<Token> pending_;
  std::size_t printed_ = 0;          // tokens that left pending_
  std::vector<std::size_t> opened_;  // numbers of open groups' tokens
  std::size_t total_width_ = 0;
  std::size_t column_;
  std::size_t depth_ = 0;  // broken groups around the next token
  bool first_item_ = false;
};

}  // namespace postflight
