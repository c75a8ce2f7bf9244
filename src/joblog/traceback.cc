#include "joblog/traceback.h"

#include <algorithm>
#include <array>
#include <utility>

namespace postflight {
namespace {

constexpr std::string_view kHeader = "Traceback (most recent call last)";
// Unrelated lines, or lines of a long message, after which a traceback ends.
constexpr std::uint32_t kPatience = 100;

std::size_t indentation_of(std::string_view text) {
  // Exception groups draw bars.
  return std::min(text.find_first_not_of(" \t|+"), text.size());
}

bool is_name(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
         c == '_' || c == '.';
}

// "RuntimeError: ...", "KeyboardInterrupt", "__main__.Odd: ...". Not "INFO:"
// or other output in between.
bool is_exception(std::string_view text) {
  const std::size_t size = static_cast<std::size_t>(
      std::ranges::find_if_not(text, is_name) - text.begin());
  if (size == 0 || (size < text.size() && text[size] != ':'))
    return false;
  const std::string_view name = text.substr(0, size);
  const std::size_t dot = name.rfind('.');
  const char first = name[dot == name.npos ? 0 : dot + 1 < size ? dot + 1 : 0];
  if (first < 'A' || first > 'Z')
    return false;
  constexpr std::array<std::string_view, 9> kEndings = {
      "Error", "Exception", "Exit",    "Interrupt", "Warning",
      "Group", "Iteration", "Expired", "Timeout"};
  return dot != name.npos ||
         std::ranges::any_of(kEndings, [&](std::string_view ending) {
           return name.ends_with(ending);
         });
}

bool is_library_file(std::string_view file) {
  return file.starts_with('<') || file.find("/site-packages/") != file.npos ||
         file.find("/dist-packages/") != file.npos ||
         file.find("/lib/python") != file.npos;
}

// The file and line of "File "train.py", line 212, in step".
struct FileAndLine {
  std::string_view file;
  std::string_view line;
};

std::optional<FileAndLine> read_frame(std::string_view text) {
  if (!text.starts_with("File \""))
    return std::nullopt;
  const std::size_t end = text.find("\", line ", 6);
  if (end == text.npos)
    return std::nullopt;
  const std::string_view number = text.substr(end + 8);
  return FileAndLine{text.substr(6, end - 6),
                     number.substr(0, number.find_first_not_of("0123456789"))};
}

bool is_chain(std::string_view text) {
  return text.starts_with("During handling of the above exception") ||
         text.starts_with("The above exception was the direct cause");
}

}  // namespace

std::string TracebackReader::cut(std::string_view text) const {
  return std::string(text.substr(0, limits_.max_log_message_bytes));
}

bool TracebackReader::take_inside(Open& open, std::string_view text) {
  const std::size_t indentation = indentation_of(text);
  const std::string_view body = text.substr(indentation);
  if (open.has_exception) {
    if (is_chain(body)) {
      open.chained = true;
      return true;
    }
    ++open.others;
    return false;
  }
  if (const std::optional<FileAndLine> frame = read_frame(body)) {
    const bool library = is_library_file(frame->file);
    if (!library || !open.user_frame)
      open.traceback.frame =
          cut(frame->file) + ":" + cut(frame->line.substr(0, 20));
    open.user_frame = open.user_frame || !library;
    return true;
  }
  if (body.empty() || indentation > open.indentation)
    return true;
  if (is_exception(body)) {
    open.traceback.exception = cut(body);
    open.has_exception = true;
    return true;
  }
  ++open.others;
  return false;
}

void TracebackReader::start(std::uint64_t process, const LogLine& line,
                            const LogOrigin& origin) {
  if (open_.size() >= limits_.max_open_tracebacks)
    finish();
  Open& open = open_[process];
  Open next;
  next.traceback.origin = origin;
  next.indentation = indentation_of(line.text);
  if (open.chained) {
    next.traceback.origin = open.traceback.origin;
    next.traceback.cause = open.traceback.cause.empty()
                               ? open.traceback.exception
                               : open.traceback.cause;
  } else if (open.has_exception) {
    end(std::move(open));
  }
  open = std::move(next);
}

bool TracebackReader::take(const LogLine& line, const LogOrigin& origin) {
  if (line.text.find(kHeader) != line.text.npos) {
    start(line.process, line, origin);
    return true;
  }
  if (open_.empty())
    return false;
  const auto found = open_.find(line.process);
  if (found == open_.end())
    return false;
  const bool taken = take_inside(found->second, line.text);
  if (found->second.others > kPatience) {
    end(std::move(found->second));
    open_.erase(found);
  }
  return taken;
}

void TracebackReader::end(Open&& open) {
  ended_.push_back(std::move(open.traceback));
}

void TracebackReader::finish() {
  std::vector<Open> rest;
  for (auto& [process, open] : open_)
    rest.push_back(std::move(open));
  open_.clear();
  std::ranges::sort(
      rest, {}, [](const Open& open) { return open.traceback.origin.line; });
  for (Open& open : rest)
    end(std::move(open));
}

}  // namespace postflight
