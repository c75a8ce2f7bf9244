#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/fork_lock.h"
#include "base/temporary_folder.h"
#include "library/boundary.h"
#include "profile/phase/table.h"

using namespace postflight;

namespace postflight {
namespace {

// The phases of this process, for whoever profiles it. A forked child writes
// its own table to the same folder.
class Phases {
 public:
  static Phases& of_this_process() {
    static Phases phases;
    return phases;
  }

  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }

  void publish_in(const std::filesystem::path& folder) {
    const std::lock_guard lock(mutex_);
    table_.reset();
    folder_ = folder;
    wanted_ = !folder_.empty();
  }

  void begin(const char* name, const char* frame_id) {
    const std::lock_guard lock(mutex_);
    if (PhaseTable* const table = current())
      table->begin(::gettid(), name, frame_id == nullptr ? "" : frame_id);
  }

  void end() {
    const std::lock_guard lock(mutex_);
    if (table_ && pid_ == ::getpid())
      table_->end(::gettid());
  }

 private:
  Phases() {
    hold_during_forks(mutex_, /*rank=*/0);
    if (const char* const folder = std::getenv("POSTFLIGHT_PHASES"))
      publish_in(folder);
  }

  PhaseTable* current() {
    if (table_ && pid_ == ::getpid())
      return &*table_;
    table_.reset();
    pid_ = ::getpid();
    Result<PhaseTable> made =
        PhaseTable::create(phase_table_path(folder_, pid_));
    if (!made) {
      wanted_ = false;  // the program is more important than its phases
      return nullptr;
    }
    table_.emplace(*std::move(made));
    return &*table_;
  }

  std::atomic<bool> wanted_ = false;
  std::mutex mutex_;
  std::filesystem::path folder_;
  std::optional<PhaseTable> table_;
  pid_t pid_ = 0;
};

std::string program_beside_library() {
  Dl_info found{};
  if (::dladdr(reinterpret_cast<const void*>(&postflight_session_new),
               &found) == 0 ||
      found.dli_fname == nullptr)
    return "";
  std::error_code failed;
  const std::filesystem::path folder =
      std::filesystem::canonical(found.dli_fname, failed).parent_path();
  for (const char* const up : {"../bin", "../../bin", "."}) {
    const std::filesystem::path program = folder / up / "postflight";
    if (!failed && ::access(program.c_str(), X_OK) == 0)
      return program.native();
  }
  return "";
}

std::string program_of(const postflight_session_options& options) {
  if (options.program != nullptr)
    return options.program;
  if (const char* const named = std::getenv("POSTFLIGHT_PROGRAM"))
    return named;
  const std::string beside = program_beside_library();
  return beside.empty() ? "postflight" : beside;
}

std::vector<std::string> command_of(const postflight_session_options& options,
                                    const std::string& file) {
  // The shell waits until the program may read this process.
  std::vector<std::string> command = {"/bin/sh",
                                      "-c",
                                      "read -r go; exec \"$@\"",
                                      "sh",
                                      program_of(options),
                                      "profile",
                                      "--pid",
                                      std::to_string(::getpid()),
                                      "--quiet",
                                      "--output",
                                      file};
  const auto add = [&command](const char* name, std::string value) {
    command.emplace_back(name);
    command.push_back(std::move(value));
  };
  if (options.interval > 0)
    add("--rate", fmt::format("{:.0f}us", options.interval * 1e6));
  if (options.duration > 0)
    add("--duration", fmt::format("{:.0f}ms", options.duration * 1e3));
  if (options.mode != nullptr)
    add("--mode", options.mode);
  if (options.most_frames > 0)
    add("--max-stack", std::to_string(options.most_frames));
  if (options.without_children != 0)
    command.emplace_back("--no-children");
  return command;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The program, with its standard input, and its standard error in memory.
struct Started {
  pid_t pid = 0;
  Descriptor input;
  Descriptor words;
};

Result<Started> start(std::vector<std::string> command,
                      const std::filesystem::path& phases) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail_errno("cannot start the profiler");
  const Descriptor read_end(ends[0]);
  Started started{
      .input = Descriptor(ends[1]),
      .words = Descriptor(::memfd_create("postflight-words", MFD_CLOEXEC))};
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one)
    if (!std::string_view(*one).starts_with("POSTFLIGHT_PHASES="))
      variables.emplace_back(*one);
  variables.push_back("POSTFLIGHT_PHASES=" + phases.native());
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, read_end.number(), 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, started.words.number(), 2);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> environment = pointers(variables);
  const int failed =
      ::posix_spawn(&started.pid, arguments[0], &actions, nullptr,
                    arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    errno = failed;
    return fail_errno("cannot start the profiler");
  }
  return started;
}

// What the program has said of why it ended.
std::string words_of(const Descriptor& words) {
  std::array<char, 2000> text{};
  const ssize_t count = ::pread(words.number(), text.data(), text.size(), 0);
  std::string said(text.data(),
                   count > 0 ? static_cast<std::size_t>(count) : 0);
  said.erase(std::min(said.find('\n'), said.size()));
  constexpr std::string_view kName = "postflight: ";
  if (said.starts_with(kName))
    said.erase(0, kName.size());
  return said.empty() ? "the profiler did not start" : said;
}

}  // namespace
}  // namespace postflight

struct postflight_session {
  std::string file;
  std::optional<TemporaryFolder> phases = {};
  std::optional<Started> program = {};
  pid_t owner = 0;

  // Whether it has ended; waits for that if it has to.
  bool ended(int options) {
    int status = 0;
    const pid_t found = ::waitpid(program->pid, &status, options);
    return found == program->pid || (found < 0 && errno == ECHILD);
  }

  void stop() {
    if (!program || owner != ::getpid())
      return;
    using std::chrono::milliseconds;
    if (!ended(WNOHANG)) {
      ::kill(program->pid, SIGINT);
      constexpr int kMostWaits = 3000;
      int waits = 0;
      for (; waits < kMostWaits && !ended(WNOHANG); ++waits)
        std::this_thread::sleep_for(milliseconds(10));
      if (waits == kMostWaits) {
        ::kill(program->pid, SIGKILL);
        ended(0);
      }
    }
    program.reset();
    Phases::of_this_process().publish_in("");
    phases.reset();
  }

  ~postflight_session() {
    stop();
    // The folder is the parent's.
    if (phases && owner != ::getpid())
      phases->keep();
  }
};

namespace postflight {
namespace {

Result<> begin(const postflight_session_options& options,
               postflight_session& session) {
  if (options.size != sizeof(options))
    return fail(ErrorKind::kUsage,
                "postflight_session_options has {} bytes instead of {}; begin "
                "with POSTFLIGHT_SIZED",
                options.size, sizeof(options));
  session.file = std::filesystem::absolute(
      options.output == nullptr ? "profile.pflog" : options.output);
  session.owner = ::getpid();
  std::error_code failed;
  if (std::filesystem::exists(session.file, failed))
    return fail(ErrorKind::kUsage, "{} exists; name another file",
                session.file);
  session.phases.emplace(TRY(TemporaryFolder::create()));
  session.program.emplace(
      TRY(start(command_of(options, session.file), session.phases->path())));
  // Where only parents may read a process, this child may, too.
  ::prctl(PR_SET_PTRACER, static_cast<unsigned long>(session.program->pid), 0,
          0, 0);
  Phases::of_this_process().publish_in(session.phases->path());
  if (::write(session.program->input.number(), "go\n", 3) != 3)
    return fail_errno("cannot start the profiler");
  session.program->input = Descriptor();
  constexpr int kMostWaits = 2000;
  for (int waits = 0; !std::filesystem::exists(session.file, failed); ++waits) {
    if (waits == kMostWaits || session.ended(WNOHANG)) {
      std::string why = words_of(session.program->words);
      session.stop();
      return fail(ErrorKind::kIo, "{}", why);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

}  // namespace
}  // namespace postflight

void postflight_phase_begin(const char* name, const char* frame_id) {
  Phases& phases = Phases::of_this_process();
  if (!phases.wanted())
    return;
  guarded(nullptr, [&]() -> Result<> {
    phases.begin(name, frame_id);
    return {};
  });
}

void postflight_phase_end(void) {
  Phases& phases = Phases::of_this_process();
  if (phases.wanted())
    guarded(nullptr, [&]() -> Result<> {
      phases.end();
      return {};
    });
}

postflight_status postflight_session_new(
    const postflight_session_options* options, postflight_session** session,
    postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    auto made = std::make_unique<postflight_session>();
    TRY(begin(*options, *made));
    hand_out(std::move(made), session);
    return {};
  });
}

postflight_status postflight_session_finish(postflight_session* session,
                                            postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    session->stop();
    return {};
  });
}

void postflight_session_free(postflight_session* session) {
  delete session;
}

const char* postflight_session_file(const postflight_session* session) {
  return session->file.c_str();
}
