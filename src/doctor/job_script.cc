#include "doctor/job_script.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"

namespace postflight {
namespace {

constexpr int kDeepest = 8;

// Splits shell text into commands and gives them to a Shell.
class ScriptReader {
 public:
  ScriptReader(std::string_view text, Shell& shell, int depth)
      : text_(text), shell_(shell), depth_(depth) {}

  void read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        end_command();
        ++at_;
        read_documents();
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        comment();
      } else if (c == '<' || c == '>' ||
                 (c == '&' && text_.substr(at_).starts_with("&>"))) {
        redirection();
      } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
        end_command();
        ++at_;
      } else {
        std::string word = read_word();
        // The descriptor of a redirection: 2>&1.
        const bool redirects = at_ < text_.size() &&
                               (text_[at_] == '<' || text_[at_] == '>') &&
                               std::ranges::all_of(word, is_digit);
        if (!redirects)
          words_.push_back(std::move(word));
      }
    }
    end_command();
  }

 private:
  struct Document {
    std::string end;
    bool tabs = false;    // may be indented by them
    bool script = false;  // is read by a shell, or written to a script
  };

  void end_command() {
    if (words_.empty())
      return;
    shell_.run(words_);
    words_.clear();
    for (const std::string& script : shell_.take_scripts())
      run_script(script);
  }

  void run_script(std::string_view script) {
    if (depth_ < kDeepest)
      ScriptReader(script, shell_, depth_ + 1).read();
  }

  void comment() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end;
    if (!line.starts_with("#SBATCH"))
      return;
    std::vector<std::string> words;
    ScriptReader options(line.substr(7), shell_, depth_);
    while (options.at_ < options.text_.size() &&
           options.text_[options.at_] != '#') {
      std::string word = options.read_word();
      options.at_ += word.empty() ? 1 : 0;
      if (!word.empty())
        words.push_back(std::move(word));
    }
    shell_.sbatch(words);
  }

  void redirection() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_not_of("<>&|", at_), text_.size());
    const std::string_view sign = text_.substr(begin, at_ - begin);
    Document document;
    if (sign == "<<" && at_ < text_.size() && text_[at_] == '-') {
      document.tabs = true;
      ++at_;
    }
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t'))
      ++at_;
    const std::string word = read_word();
    if (sign == "<<") {
      document.end = word;
      documents_.push_back(std::move(document));
    } else if (sign[0] == '>') {
      target_ = word;
    }
  }

  // The here-documents that the last line has announced.
  void read_documents() {
    for (Document& document : std::exchange(documents_, {})) {
      std::string body;
      while (at_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        while (document.tabs && line.starts_with('\t'))
          line.remove_prefix(1);
        if (line == document.end)
          break;
        body += line;
        body += '\n';
      }
      const std::string_view target =
          std::string_view(target_).substr(target_.rfind('/') + 1);
      // Text for people is neither given to a program nor made a script.
      if (target_.empty() ? !document_is_text_
                          : target.ends_with(".sh") || target.ends_with(".env"))
        run_script(body);
    }
    target_.clear();
  }

  std::string read_word() {
    std::string word;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\'') {
        const std::size_t end =
            std::min(text_.find('\'', at_ + 1), text_.size());
        word += text_.substr(at_ + 1, end - at_ - 1);
        at_ = end;
      } else if (c == '"') {
        quoted(word);
      } else if (c == '\\') {
        if (++at_ < text_.size() && text_[at_] != '\n')
          word += text_[at_];
      } else if (c == '$' || c == '`') {
        expand(word);
      } else if (std::string_view(" \t\r\n;&|()<>").find(c) !=
                 std::string_view::npos) {
        break;
      } else {
        word += c;
      }
    }
    if (words_.empty() && documents_.empty())
      document_is_text_ = takes_text(word);
    return word;
  }

  void quoted(std::string& word) {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      const char c = text_[at_];
      if (c == '$' || c == '`') {
        expand(word);
      } else if (c == '\\' && at_ + 1 < text_.size()) {
        const char next = text_[++at_];
        if (std::string_view("$`\"\\\n").find(next) == std::string_view::npos)
          word += c;
        if (next != '\n')
          word += next;
      } else {
        word += c;
      }
    }
  }

  // At a $ or `; leaves at_ on its last character. What is not known is kept as
  // it is written.
  void expand(std::string& word) {
    const std::string_view rest = text_.substr(at_);
    std::size_t size = 1;
    std::optional<std::string> value;
    if (rest[0] == '`') {
      size = std::min(rest.find('`', 1), rest.size() - 1) + 1;
    } else if (rest.starts_with("$(")) {
      size = balanced(rest, '(', ')');
    } else if (rest.starts_with("${")) {
      size = balanced(rest, '{', '}');
      value = braced(rest.substr(2, size < 3 ? 0 : size - 3));
    } else if (const std::size_t name = variable_name_length(rest.substr(1));
               name > 0) {
      size = name + 1;
      value = shell_.value(rest.substr(1, name));
    }
    word += value ? std::string_view(*value) : rest.substr(0, size);
    at_ += size - 1;
  }

  static std::size_t balanced(std::string_view text, char open, char close) {
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      depth += text[i] == open ? 1 : text[i] == close ? -1 : 0;
      if (depth == 0 && i > 0)
        return i + 1;
    }
    return text.size();
  }

  // "NAME" or "NAME:-default".
  std::optional<std::string> braced(std::string_view inside) {
    const std::size_t size = variable_name_length(inside);
    if (size == 0)
      return std::nullopt;
    auto value = shell_.value(inside.substr(0, size));
    std::string_view rest = inside.substr(size);
    if (rest.empty())
      return value;
    const bool colon = rest.starts_with(':');
    rest.remove_prefix(colon ? 1 : 0);
    if (!rest.starts_with('-') && !rest.starts_with('='))
      return std::nullopt;
    if (value && !(colon && value->empty()))
      return value;
    return depth_ < kDeepest
               ? ScriptReader(rest.substr(1), shell_, depth_ + 1).whole_text()
               : std::string(rest.substr(1));
  }

  std::string whole_text() {
    std::string text;
    while (at_ < text_.size()) {
      text += read_word();
      if (at_ < text_.size())
        text += text_[at_++];
    }
    return text;
  }

  std::string_view text_;
  Shell& shell_;
  const int depth_;
  std::size_t at_ = 0;
  std::vector<std::string> words_;  // of the command so far
  std::vector<Document> documents_;
  bool document_is_text_ = false;
  std::string target_;  // the file that the command writes
};

bool looks_like_script(std::string_view text) {
  if (text.starts_with("#!"))
    return true;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = trimmed(line);
    for (const std::string_view word :
         {"export ", "declare ", "#SBATCH", "set -", "srun ", "source "})
      if (line.starts_with(word))
        return true;
  }
  return false;
}

}  // namespace

JobScript read_job_script(std::string_view text, const JobEnvironment& known) {
  Shell shell(known);
  ScriptReader(text, shell, 0).read();
  return std::move(shell).finish();
}

JobScript read_environment_file(std::string_view text,
                                const JobEnvironment& known) {
  if (text.find('\0') != text.npos)
    return {.environment = environment_of_process(text)};
  if (looks_like_script(text))
    return read_job_script(text, known);
  JobScript file;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    auto assignment = assignment_of(line);
    if (!assignment)
      continue;
    std::string& value = assignment->value;
    // Docker keeps quotes, others remove them; no setting has any.
    if (value.size() > 1 && (value[0] == '"' || value[0] == '\'') &&
        value.back() == value[0])
      value = value.substr(1, value.size() - 2);
    file.environment.insert_or_assign(std::move(assignment->name),
                                      std::move(value));
  }
  return file;
}

}  // namespace postflight
