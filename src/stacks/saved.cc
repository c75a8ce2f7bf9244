#include "stacks/saved.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "json/json_value.h"
#include "pickle/builder.h"

namespace postflight {
namespace {

std::optional<std::int64_t> number_in(std::string_view text, int base = 10) {
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end == text.data())
    return std::nullopt;
  return number;
}

std::size_t leading_digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

// What is between two texts, the last `close` on the line.
std::optional<std::string_view> between(std::string_view line,
                                        std::string_view open,
                                        std::string_view close) {
  const std::size_t begin = line.find(open);
  if (begin == line.npos)
    return std::nullopt;
  line.remove_prefix(begin + open.size());
  const std::size_t end = line.find(close);
  if (end == line.npos)
    return std::nullopt;
  return line.substr(0, end);
}

// The five entities that templates write.
std::string without_entities(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 6> kEntities = {
      {{"&lt;", '<'},
       {"&gt;", '>'},
       {"&#34;", '"'},
       {"&quot;", '"'},
       {"&#39;", '\''},
       {"&amp;", '&'}}};
  std::string plain;
  while (!text.empty()) {
    const auto entity = std::ranges::find_if(kEntities, [&](const auto& one) {
      return text.starts_with(one.first);
    });
    plain += entity == kEntities.end() ? text[0] : entity->second;
    text.remove_prefix(entity == kEntities.end() ? 1 : entity->first.size());
  }
  return plain;
}

// "train.py:52"
void set_place(std::string_view place, StackFrame& frame) {
  const std::size_t colon = place.rfind(':');
  frame.file = place.substr(0, colon);
  if (colon != place.npos)
    frame.line = static_cast<std::int32_t>(
        number_in(place.substr(colon + 1)).value_or(0));
}

// Reads the text formats line by line. They can be told apart by each line, so
// files may mix them: a log with several programs' output.
class SavedStacks {
 public:
  explicit SavedStacks(std::string_view name)
      : name_(name), rank_of_file_(rank_in_name(name)) {}

  void line(std::string_view text) {
    std::string plain;
    if (is_page_) {
      for (const std::string_view tag : {"<pre>", "</pre>"})
        if (const std::size_t at = text.find(tag); at != text.npos)
          text = tag == "<pre>" ? text.substr(at + tag.size())
                                : text.substr(0, at);
      plain = without_entities(text);
      text = plain;
    }
    is_page_ = is_page_ || text.starts_with("<!doctype") ||
               text.starts_with("<!DOCTYPE") || text.starts_with("<html");
    text = without_prefix(text);
    if (heading(text) || process(text) || thread(text) || frame(text))
      return;
    // Any other line at the margin ends a traceback.
    if (!text.empty() && text[0] != ' ' && text[0] != '\t')
      style_ = Style::kNone;
  }

  std::vector<ProcessStacks> take() {
    std::erase_if(processes_, [](const ProcessStacks& process) {
      return process.threads.empty();
    });
    return std::move(processes_);
  }

 private:
  enum class Style : std::uint8_t { kNone, kPySpy, kPython, kGdb };

  // "[rank3]: " of torchrun and "[default3]:" of torch's elastic agent.
  std::string_view without_prefix(std::string_view text) {
    for (const std::string_view open : {"[rank", "[default"}) {
      if (!text.starts_with(open))
        continue;
      const std::size_t digits = leading_digits(text.substr(open.size()));
      const std::string_view rest = text.substr(open.size() + digits);
      if (digits == 0 || !rest.starts_with("]:"))
        continue;
      const auto rank = static_cast<std::int32_t>(
          number_in(text.substr(open.size())).value_or(-1));
      if (processes_.empty() || processes_.back().rank != rank)
        start_process(rank);
      const std::string_view message = rest.substr(2);
      return message.starts_with(' ') ? message.substr(1) : message;
    }
    return text;
  }

  ProcessStacks& start_process(std::int32_t rank) {
    style_ = Style::kNone;
    again_.reset();
    ids_.clear();
    return processes_.emplace_back(
        ProcessStacks{.rank = rank, .source = std::string(name_)});
  }
  ProcessStacks& current() {
    return processes_.empty() ? start_process(rank_of_file_)
                              : processes_.back();
  }
  ThreadStack& start_thread(Style style) {
    ProcessStacks& process = current();
    style_ = style;
    again_.reset();
    filled_ = process.threads.size();
    return process.threads.emplace_back(
        ThreadStack{.python = style != Style::kGdb});
  }
  void start_gdb_thread(std::int64_t tid, std::string name) {
    ThreadStack& made = start_thread(Style::kGdb);
    made.tid = tid;
    made.name = std::move(name);
  }

  // "=== Rank 3: http://host:1234/handler/dump_traceback? ===", and the page's
  // "<h2>Rank 3: ...</h2>".
  bool heading(std::string_view text) {
    text = trimmed(text);
    for (const std::string_view open : {"=== Rank ", "<h2>Rank "}) {
      if (!text.starts_with(open))
        continue;
      const auto rank = number_in(text.substr(open.size()));
      if (!rank)
        return false;
      ProcessStacks& process = start_process(static_cast<std::int32_t>(*rank));
      if (const auto host = between(text, "://", ":"))
        process.host = *host;
      return true;
    }
    return false;
  }

  // "Process 4711: python train.py" and "Python v3.11.2 (/usr/bin/python3.11)"
  // of py-spy.
  bool process(std::string_view text) {
    const std::string_view shown = trimmed(text);
    if (shown.starts_with("Process ") && leading_digits(shown.substr(8)) > 0) {
      const std::string_view rest =
          shown.substr(8 + leading_digits(shown.substr(8)));
      if (!rest.starts_with(':'))
        return false;
      // The heading of the debug server stands before it.
      ProcessStacks* into = &current();
      if (into->pid != 0 || !into->threads.empty())
        into = &start_process(rank_of_file_);
      into->pid = *number_in(shown.substr(8));
      into->command = trimmed(rest.substr(1));
      return true;
    }
    if (shown.starts_with("Python v") && !processes_.empty()) {
      current().python = shown.substr(8, shown.find(' ', 8) - 8);
      return true;
    }
    return false;
  }

  bool thread(std::string_view text) {
    const std::string_view shown = trimmed(text);
    // "Current thread 0x00007f.. [name] (most recent call first):"
    if (shown.ends_with("(most recent call first):")) {
      const bool named = shown.starts_with("Thread 0x") ||
                         shown.starts_with("Current thread 0x");
      if (!named && !shown.starts_with("Traceback ") &&
          !shown.starts_with("Stack "))
        return false;
      // gdb's py-bt follows the native stack of the same thread.
      if (shown.starts_with("Traceback ") && style_ == Style::kGdb &&
          !current().threads.empty()) {
        py_bt();
        return true;
      }
      // A thread that is listed again begins the next dump.
      current();
      const std::string id(between(shown, "hread ", " ").value_or(""));
      if (!ids_.insert(id).second && named)
        start_process(current().rank);
      ids_.insert(id);
      ThreadStack& made = start_thread(Style::kPython);
      if (named && shown.starts_with("Current"))
        made.state = ThreadState::kRunning;
      if (const auto name = between(shown, " [", "] ("))
        made.name = *name;
      return true;
    }
    if (!shown.starts_with("Thread "))
      return false;
    const std::string_view rest = shown.substr(7);
    // "Thread 2 (Thread 0x7f.. (LWP 4712) "python3"):"
    if (const auto lwp = between(rest, "(LWP ", ")")) {
      const std::int64_t tid = number_in(*lwp).value_or(0);
      const std::vector<ThreadStack>& known = current().threads;
      const auto same = std::ranges::find(known, tid, &ThreadStack::tid);
      if (same == known.end()) {
        start_gdb_thread(tid,
                         std::string(between(rest, "\"", "\"").value_or("")));
      } else {
        style_ = Style::kGdb;
        again_ = static_cast<std::size_t>(same - known.begin());
      }
      return true;
    }
    // "Thread 4711 (active+gil): "MainThread""
    const auto state = between(rest, " (", ")");
    if (!state || !(state->starts_with("active") || state->starts_with("idle")))
      return false;
    ThreadStack& made = start_thread(Style::kPySpy);
    made.tid = rest.starts_with("0x") ? 0 : number_in(rest).value_or(0);
    made.state = state->starts_with("idle") ? ThreadState::kWaiting
                                            : ThreadState::kRunning;
    if (const auto name = between(rest, ": \"", "\""))
      made.name = *name;
    return true;
  }

  // The Python frames of a thread take the place of the interpreter's own.
  void py_bt() {
    filled_ = again_.value_or(current().threads.size() - 1);
    again_.reset();
    ThreadStack& thread = current().threads[filled_];
    thread.python = true;
    const auto loop =
        std::ranges::find_if(thread.frames, [](const StackFrame& frame) {
          return frame.function.starts_with("_PyEval_EvalFrame");
        });
    thread.frames.erase(loop, thread.frames.end());
    style_ = Style::kPython;
  }

  bool frame(std::string_view text) {
    if (current_style_is(Style::kPython))
      return python_frame_line(text);
    if (current_style_is(Style::kPySpy))
      return py_spy_frame(text);
    return gdb_frame(text);
  }
  bool current_style_is(Style style) const { return style_ == style; }
  std::vector<StackFrame>& frames() {
    return current().threads[filled_].frames;
  }

  // "  File "/x/train.py", line 52 in step"; gdb writes ", in step".
  bool python_frame_line(std::string_view text) {
    const std::string_view shown = trimmed(text);
    const auto file = between(shown, "File \"", "\", line ");
    if (!shown.starts_with("File \"") || !file)
      return false;
    std::string_view rest = shown.substr(file->size() + 14);
    const std::int64_t line = number_in(rest).value_or(0);
    rest.remove_prefix(leading_digits(rest));
    for (const std::string_view word : {" in ", ", in "})
      if (rest.starts_with(word))
        frames().push_back({.function = std::string(rest.substr(word.size())),
                            .file = std::string(*file),
                            .line = static_cast<std::int32_t>(line)});
    return true;
  }

  // "    step (train.py:52)", and with --locals below it
  // "        Locals:" and "            x: 1".
  bool py_spy_frame(std::string_view text) {
    if (!text.starts_with("    "))
      return false;
    const std::string_view shown = trimmed(text);
    if (text.starts_with("        ")) {
      const std::size_t colon = shown.find(": ");
      if (colon != shown.npos && !frames().empty())
        frames().back().locals.push_back(
            {std::string(shown.substr(0, colon)),
             std::string(shown.substr(colon + 2))});
      return true;
    }
    const std::size_t open = shown.rfind(" (");
    if (open == shown.npos || !shown.ends_with(')'))
      return false;
    StackFrame frame = {.function = std::string(shown.substr(0, open)),
                        .file = {}};
    set_place(shown.substr(open + 2, shown.size() - open - 3), frame);
    frame.native = frame.file.find(".so") != frame.file.npos || frame.line == 0;
    frames().push_back(std::move(frame));
    return true;
  }

  // "#1  0x00007f.. in foo (x=1) at file.c:12", or "... from /lib/libc.so.6".
  bool gdb_frame(std::string_view text) {
    if (!text.starts_with('#') || leading_digits(text.substr(1)) == 0)
      return false;
    const bool is_first = *number_in(text.substr(1)) == 0;
    std::string_view rest =
        trimmed(text.substr(1 + leading_digits(text.substr(1))));
    if (rest.starts_with("0x")) {
      const std::size_t in = rest.find(" in ");
      if (in == rest.npos)
        return false;
      rest.remove_prefix(in + 4);
    }
    // The native stack of a thread that is listed again begins the next dump.
    if (again_) {
      const ThreadStack before = current().threads[*again_];
      start_process(current().rank);
      start_gdb_thread(before.tid, before.name);
    }
    // A single `bt` has no line for its thread.
    if (style_ != Style::kGdb || (is_first && !frames().empty()))
      start_thread(Style::kGdb);
    StackFrame frame = {.function = {}, .file = {}, .native = true};
    frame.function = trimmed(rest.substr(0, rest.find(" (")));
    if (const std::size_t from = rest.rfind(" from "); from != rest.npos)
      frame.file = rest.substr(from + 6);
    else if (const std::size_t at = rest.rfind(" at "); at != rest.npos)
      set_place(rest.substr(at + 4), frame);
    if (!frame.function.empty())
      frames().push_back(std::move(frame));
    return true;
  }

  const std::string_view name_;
  const std::int32_t rank_of_file_;
  bool is_page_ = false;
  Style style_ = Style::kNone;
  std::size_t filled_ = 0;  // the thread that frames are of
  // The thread of gdb's that is listed again: with its Python frames (py-bt),
  // or in the next dump.
  std::optional<std::size_t> again_;
  std::set<std::string> ids_;  // faulthandler's, of this process
  std::vector<ProcessStacks> processes_;
};

std::string text_of(const Value& object, std::string_view key) {
  const Value* const value = object.find(key);
  return value != nullptr && value->is(Kind::kString)
             ? std::string(value->text())
             : std::string();
}

std::int64_t number_of(const Value& object, std::string_view key,
                       std::int64_t otherwise = 0) {
  const Value* const value = object.find(key);
  return value != nullptr && value->is(Kind::kInteger) ? value->integer()
                                                       : otherwise;
}

std::span<const Value> list_of(const Value& object, std::string_view key) {
  const Value* const value = object.find(key);
  return value != nullptr && value->is(Kind::kList) ? value->items()
                                                    : std::span<const Value>();
}

// A frame of py-spy or of ours.
StackFrame frame_of(const Value& value) {
  StackFrame frame;
  frame.function = text_of(value, "function");
  if (frame.function.empty())
    frame.function = text_of(value, "name");
  frame.file = text_of(value, "file");
  if (frame.file.empty())
    frame.file = text_of(value, "filename");
  frame.line = static_cast<std::int32_t>(number_of(value, "line"));
  const Value* const native = value.find("native");
  frame.native = native != nullptr && native->is(Kind::kBoolean)
                     ? native->boolean()
                     : frame.line == 0;
  for (const Value& local : list_of(value, "locals"))
    if (local.is(Kind::kDict)) {
      std::string shown = text_of(local, "value");
      if (shown.empty())
        shown = text_of(local, "repr");
      frame.locals.push_back({text_of(local, "name"), std::move(shown)});
    }
  return frame;
}

std::vector<StackFrame> frames_of_json(const Value& thread) {
  std::vector<StackFrame> frames;
  for (const Value& frame : list_of(thread, "frames"))
    if (frame.is(Kind::kDict))
      frames.push_back(frame_of(frame));
  return frames;
}

// A list of threads, each with its process.
std::vector<ProcessStacks> py_spy_json(const Value& root,
                                       std::string_view name) {
  std::vector<ProcessStacks> processes;
  const std::int32_t rank = rank_in_name(name);
  for (const Value& value : root.items()) {
    if (!value.is(Kind::kDict) || value.find("frames") == nullptr)
      continue;
    const std::int64_t pid = number_of(value, "pid");
    if (processes.empty() || processes.back().pid != pid)
      processes.push_back(
          {.rank = rank, .pid = pid, .source = std::string(name)});
    ThreadStack thread = {.tid = number_of(value, "os_thread_id"),
                          .name = text_of(value, "thread_name"),
                          .python = true,
                          .frames = frames_of_json(value)};
    const Value* const active = value.find("active");
    if (active != nullptr && active->is(Kind::kBoolean))
      thread.state =
          active->boolean() ? ThreadState::kRunning : ThreadState::kWaiting;
    const Value* const info = value.find("process_info");
    if (info != nullptr && info->is(Kind::kDict))
      processes.back().command = text_of(*info, "command_line");
    processes.back().threads.push_back(std::move(thread));
  }
  return processes;
}

std::vector<ProcessStacks> our_json(const Value& root, std::string_view name) {
  std::vector<ProcessStacks> processes;
  for (const Value& value : list_of(root, "processes")) {
    if (!value.is(Kind::kDict))
      continue;
    ProcessStacks& process = processes.emplace_back();
    process.rank = static_cast<std::int32_t>(number_of(value, "rank", -1));
    process.pid = number_of(value, "pid");
    process.host = text_of(value, "host");
    process.command = text_of(value, "command");
    process.python = text_of(value, "python");
    process.source = name;
    for (const Value& one : list_of(value, "threads")) {
      if (!one.is(Kind::kDict))
        continue;
      ThreadStack& thread = process.threads.emplace_back();
      thread.tid = number_of(one, "tid");
      thread.name = text_of(one, "name");
      const std::string state = text_of(one, "state");
      for (const ThreadState known :
           {ThreadState::kRunning, ThreadState::kWaiting})
        if (state == thread_state_name(known))
          thread.state = known;
      const Value* const python = one.find("python");
      thread.python =
          python != nullptr && python->is(Kind::kBoolean) && python->boolean();
      thread.frames = frames_of_json(one);
    }
  }
  return processes;
}

}  // namespace

std::int32_t rank_in_name(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  const std::size_t rank = lowered(name).rfind("rank");
  std::size_t at = name.npos;
  if (rank != name.npos) {
    at = rank + 4;
    while (at < name.size() && (name[at] == '_' || name[at] == '-' ||
                                name[at] == '.' || name[at] == '='))
      ++at;
  }
  if (at >= name.size() || !is_digit(name[at]))
    return -1;
  return static_cast<std::int32_t>(std::min<std::int64_t>(
      number_in(name.substr(at)).value_or(-1), INT32_MAX));
}

Result<std::vector<ProcessStacks>> read_saved_stacks(Bytes bytes,
                                                     std::string_view name,
                                                     const Limits& limits) {
  std::string_view text = as_text(bytes);
  std::vector<ProcessStacks> processes;
  const std::string_view front = trimmed(text.substr(0, 100));
  const bool is_json =
      front.starts_with('{') ||
      (front.starts_with('[') && trimmed(front.substr(1)).starts_with('{'));
  if (is_json) {
    Builder builder;
    const Value root =
        TRY(parse_json(bytes, builder, {.limits = limits}).in(name));
    if (root.is(Kind::kList))
      processes = py_spy_json(root, name);
    else if (root.is(Kind::kDict))
      processes = our_json(root, name);
  } else {
    SavedStacks saved(name);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      if (line.ends_with('\r'))
        line.remove_suffix(1);
      saved.line(line.substr(0, limits.max_log_line_bytes));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    processes = saved.take();
  }
  if (processes.empty())
    return fail(ErrorKind::kUnsupported,
                "{}: no stacks found; give the output of py-spy dump, "
                "faulthandler, torch's debug server, gdb or postflight stacks "
                "--json",
                name);
  return processes;
}

}  // namespace postflight
