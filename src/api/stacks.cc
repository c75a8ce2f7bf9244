#include "api/stacks.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "api/checkpoint.h"
#include "base/file.h"
#include "base/glob.h"
#include "stacks/live.h"
#include "stacks/saved.h"

namespace postflight {
namespace {

// Collects what can be read, and the first reason for what cannot.
class Collection {
 public:
  void add(Result<std::vector<ProcessStacks>> read) {
    if (read) {
      std::ranges::move(*read, std::back_inserter(snapshot_.processes));
      return;
    }
    snapshot_.findings.push_back(
        {.kind = "unreadable_stacks",
         .severity = Severity::kError,
         .message = std::string(read.error().message()),
         .where = {}});
    if (!first_)
      first_ = std::move(read.error());
  }

  void note(std::string message) {
    snapshot_.findings.push_back({.kind = "read_once",
                                  .severity = Severity::kWarning,
                                  .message = std::move(message),
                                  .where = {}});
  }

  Result<StackSnapshot> finish() {
    if (snapshot_.processes.empty() && first_)
      return tl::unexpected<Error>(std::move(*first_));
    join_snapshots(snapshot_.processes);
    return std::move(snapshot_);
  }

 private:
  StackSnapshot snapshot_;
  std::optional<Error> first_;
};

Result<std::vector<ProcessStacks>> read_file_stacks(const std::string& name,
                                                    const Context& context) {
  const MappedFile file =
      TRY(MappedFile::open(input_path(name), context.limits));
  return read_saved_stacks(file.bytes(), name == "-" ? "standard input" : name,
                           context.limits);
}

void add_files(std::span<const std::string> files, const Context& context,
               Collection& into) {
  for (const std::string& name : files) {
    std::error_code error;
    // Of a folder all files that hold stacks.
    if (std::filesystem::is_directory(name, error)) {
      std::vector<std::string> inside;
      for (std::filesystem::directory_iterator entry(name, error);
           !error && entry != std::filesystem::directory_iterator();
           entry.increment(error))
        if (entry->is_regular_file(error))
          inside.push_back(entry->path());
      std::ranges::sort(inside);
      if (inside.empty())
        into.add(fail(ErrorKind::kUsage, "{}: no files in this folder", name));
      for (const std::string& one : inside)
        into.add(read_file_stacks(one, context));
      continue;
    }
    into.add(read_file_stacks(name, context));
  }
}

Result<std::vector<ProcessStacks>> read_process(pid_t pid,
                                                const StacksRequest& request,
                                                const Context& context,
                                                PythonLocator& locator) {
  ProcessStacks process = TRY(read_live_stacks(
      pid, {.native = request.native, .locals = request.locals}, context,
      locator));
  return std::vector<ProcessStacks>{std::move(process)};
}

}  // namespace

Result<StackSnapshot> collect_stacks(const StacksRequest& request,
                                     const Context& context) {
  Collection found;
  add_files(request.files, context, found);
  PythonLocator locator;
  std::vector<pid_t> pids;
  const auto add = [&pids](pid_t pid) {
    if (std::ranges::find(pids, pid) == pids.end())
      pids.push_back(pid);
  };
  for (const std::int32_t pid : request.pids) {
    const std::vector<pid_t> children =
        request.children ? python_children(pid, locator) : std::vector<pid_t>();
    // A shell or srun that has started Python need not run it itself.
    if (children.empty() || request.native || runs_python(pid, locator))
      add(pid);
    std::ranges::for_each(children, add);
  }
  if (request.mine)
    std::ranges::for_each(python_processes(locator), add);
  if (request.mine && pids.empty() && request.files.empty())
    return fail(ErrorKind::kUsage,
                "no process of this user runs Python, or none may be read");
  for (const pid_t pid : pids)
    found.add(read_process(pid, request, context, locator));
  if (request.again.count() > 0 && !pids.empty()) {
    std::this_thread::sleep_for(request.again);
    for (const pid_t pid : pids) {
      // One that has ended meanwhile keeps its first stack.
      auto again = read_process(pid, request, context, locator);
      if (again)
        found.add(std::move(again));
      else
        found.note(fmt::format(
            "process {} was read only once, so it is not known whether it "
            "moves: {}",
            pid, again.error().message()));
    }
  }
  return found.finish();
}

Result<StackSnapshot> read_stack_files(std::span<const std::string> files,
                                       const Context& context) {
  Collection found;
  add_files(files, context, found);
  return found.finish();
}

}  // namespace postflight
