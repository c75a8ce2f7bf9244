// What leaves a template begins at an attribute with underscores, such as
// __class__. The sandbox of Jinja forbids these, but some runtimes have none,
// and its holes were found in ways to spell them: filters that take an
// attribute's name, escapes in strings, and strings that are put together. What
// stands outside of {{ }} and {% %} is text.

#include "checkpoint/torch/chat_template.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/ascii.h"

namespace postflight {
namespace {

bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

// From behind {{ or {% to what closes it, which may also stand in a text or in
// braces.
class Block {
 public:
  Block(std::string_view code, bool is_statement)
      : code_(code),
        close_(is_statement ? "%}" : "}}"),
        is_statement_(is_statement) {}

  std::optional<std::string> reach() {
    while (at_ < code_.size() &&
           (braces_ > 0 || !code_.substr(at_).starts_with(close_))) {
      const char c = code_[at_];
      std::optional<std::string> found;
      if (c == '\'' || c == '"')
        found = judge_text(next_text());
      else if (is_word(c))
        found = judge_word(next_word());
      else
        judge_mark(c);
      if (found)
        return found;
      if (joins_in_brackets_)
        return "an attribute whose name is put together";
    }
    return std::nullopt;
  }

  std::size_t size() const { return at_; }

 private:
  std::string_view next_word() {
    const std::size_t begin = at_;
    while (at_ < code_.size() && is_word(code_[at_]))
      ++at_;
    return code_.substr(begin, at_ - begin);
  }

  std::string_view next_text() {
    const char quote = code_[at_++];
    const std::size_t begin = at_;
    while (at_ < code_.size() && code_[at_] != quote)
      at_ += code_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_, code_.size());
    const std::string_view text = code_.substr(begin, at_ - begin);
    at_ = std::min(at_ + 1, code_.size());
    before_ = quote;
    is_first_ = false;
    return text;
  }

  void judge_mark(char c) {
    ++at_;
    if (kBlanks.find(c) != kBlanks.npos || c == '\n' || c == '\r')
      return;
    if (c == '{')
      ++braces_;
    else if (c == '}' && braces_ > 0)
      --braces_;
    else if (c == '[')
      ++brackets_;
    else if (c == ']' && brackets_ > 0)
      --brackets_;
    else if (c == '~' && brackets_ > 0)
      joins_in_brackets_ = true;
    if (!(is_first_ && (c == '-' || c == '+')))
      is_first_ = false;
    before_ = c;
  }

  std::optional<std::string> judge_word(std::string_view word) {
    const bool is_filter = before_ == '|';
    const bool is_statement = is_first_ && is_statement_;
    before_ = 'a';
    is_first_ = false;
    if (word.find("__") != word.npos)
      return "'__'";
    if (word == "popen" || word == "subprocess")
      return "'" + std::string(word) + "'";
    if (is_filter && word == "attr")
      return "the filter attr";
    if (is_statement && (word == "include" || word == "import" ||
                         word == "from" || word == "extends"))
      return "the statement " + std::string(word);
    if (word != "attribute")
      return std::nullopt;
    // A filter's, as in map(attribute='role').
    const std::size_t is = code_.find_first_not_of(kSpaces, at_);
    if (is == code_.npos || code_[is] != '=' ||
        code_.substr(is).starts_with("=="))
      return std::nullopt;
    const std::size_t value = code_.find_first_not_of(kSpaces, is + 1);
    if (value != code_.npos && (code_[value] == '\'' || code_[value] == '"')) {
      const std::size_t end = code_.find(code_[value], value + 1);
      const std::size_t next = end == code_.npos
                                   ? code_.npos
                                   : code_.find_first_not_of(kSpaces, end + 1);
      if (next != code_.npos && (code_[next] == ',' || code_[next] == ')'))
        return std::nullopt;
    }
    return "an attribute whose name is put together";
  }

  static std::optional<std::string> judge_text(std::string_view text) {
    if (text.find("__") != text.npos)
      return "'__'";
    const std::size_t last = text.empty() ? 0 : text.size() - 1;
    for (std::size_t at = text.find('\\'); at < last;
         at = text.find('\\', at + 2))
      if (std::string_view("xuUN01234567").find(text[at + 1]) !=
          std::string_view::npos)
        return "an escaped character";
    if (text.find("%c") != text.npos)
      return "'%c'";
    if (text.starts_with('_') || text.ends_with('_'))
      return "a text of underscores";
    return std::nullopt;
  }

  std::string_view code_;
  std::string_view close_;
  bool is_statement_;
  std::size_t at_ = 0;
  char before_ = ' ';  // the last character that is no space
  bool is_first_ = true;
  std::size_t braces_ = 0;
  std::size_t brackets_ = 0;
  bool joins_in_brackets_ = false;
};

}  // namespace

std::optional<std::string> reach_of_template(std::string_view text) {
  const std::size_t last = text.empty() ? 0 : text.size() - 1;
  for (std::size_t at = text.find('{'); at < last;
       at = text.find('{', at + 1)) {
    const char kind = text[at + 1];
    if (kind == '#') {
      at = text.find("#}", at + 2);
      if (at == text.npos)
        break;
    }
    if (kind != '{' && kind != '%')
      continue;
    Block block(text.substr(at + 2), kind == '%');
    if (auto reach = block.reach())
      return reach;
    at += block.size();
  }
  return std::nullopt;
}

Reason template_reaches(std::string_view reach) {
  return {Safety::kRunsCode, "chat_template",
          fmt::format("its chat template has {}, by which a template reaches "
                      "Python",
                      reach),
          ""};
}

}  // namespace postflight
