#include "report/layout.h"

#include <algorithm>

#include "base/display_width.h"

namespace postflight {

Layout::Layout(const LayoutOptions& options, Output& out)
    : options_(options), out_(out), column_(options.margin) {
  out_ += std::string(options_.margin, ' ');
}

void Layout::text(std::string_view text) {
  add(What::kText, text);
}

void Layout::open(std::string_view bracket) {
  add(What::kOpen, bracket);
  first_item_ = true;
}

void Layout::item() {
  add(first_item_ ? What::kFirstItem : What::kNextItem,
      first_item_ ? "" : ", ");
  first_item_ = false;
}

void Layout::close(std::string_view bracket) {
  add(What::kClose, bracket);
  first_item_ = false;
}

void Layout::finish() {
  settle();
  out_ += "\n";
}

void Layout::add(What what, std::string_view text) {
  const std::size_t width = display_width(text);
  pending_.push_back({what, std::string(text), width, total_width_});
  total_width_ += width;
  if (what == What::kOpen) {
    opened_.push_back(printed_ + pending_.size() - 1);
  } else if (what == What::kClose) {
    const std::size_t open = opened_.back();
    opened_.pop_back();
    if (open >= printed_)
      pending_[open - printed_].end = total_width_;
  }
  settle();
}

void Layout::settle() {
  while (!pending_.empty()) {
    const Token& front = pending_.front();
    if (front.what == What::kOpen) {
      const bool closed = front.end != 0;
      const std::size_t width =
          (closed ? front.end : total_width_) - front.start;
      // A comma may follow it on the line.
      const bool fits = column_ + width < options_.width;
      const bool is_empty =
          pending_.size() > 1 && pending_[1].what == What::kClose;
      if (closed && (fits || is_empty)) {
        print_group();
        continue;
      }
      if (fits || pending_.size() == 1)
        return;  // not decided yet
      print_front();
      ++depth_;
      continue;
    }
    if (front.what == What::kClose) {
      --depth_;
      new_line();
    } else if (front.what == What::kNextItem) {
      pending_.front().text.pop_back();  // no trailing blank
    }
    const bool is_item =
        front.what == What::kFirstItem || front.what == What::kNextItem;
    print_front();
    if (is_item)
      new_line();
  }
}

void Layout::print_group() {
  std::size_t depth = 0;
  do {
    const What what = pending_.front().what;
    depth += what == What::kOpen;
    depth -= what == What::kClose;
    print_front();
  } while (depth > 0);
}

void Layout::print_front() {
  out_ += pending_.front().text;
  column_ += pending_.front().width;
  pending_.pop_front();
  ++printed_;
}

void Layout::new_line() {
  const std::size_t indent =
      options_.margin + std::min(depth_ * 2, options_.max_indent);
  out_ += "\n";
  out_ += std::string(indent, ' ');
  column_ = indent;
}

}  // namespace postflight
