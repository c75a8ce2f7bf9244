#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/error.h"
#include "base/finding.h"
#include "base/progress.h"
#include "base/terminal.h"
#include "cli/arguments/common_options.h"

namespace postflight {

// The exit codes of every command but fr-trace.
enum class Exit : int {
  kWell = 0,
  kFound = 1,         // looked, and found a problem
  kCouldNotLook = 2,  // usage, or nothing readable
  kInterrupted = 130  // as a shell reports SIGINT
};

constexpr Exit exit_for(bool problem) {
  return problem ? Exit::kFound : Exit::kWell;
}
inline Exit exit_for(std::span<const Finding> findings, bool strict = false) {
  return exit_for(has_problem(findings, strict));
}

// What a command works with: options, terminal, standard output and stderr.
class Session {
 public:
  explicit Session(const CommonOptions& options);

  const CommonOptions& options() const { return options_; }
  const Terminal& terminal() const { return terminal_; }
  // What the command passes to the library. Valid while the Session lives.
  const Context& context() const { return context_; }

  // Whether outputs may replace files that exist: with --force.
  Existing existing() const {
    return options_.force ? Existing::kReplace : Existing::kRefuse;
  }

  // A progress line on stderr, if the options and the terminal allow one.
  std::unique_ptr<Progress> progress(ProgressOptions options) const;

  // Writes to stdout. finish() reports a failure.
  void print(std::string_view text);
  // One line on stderr, escaped: "postflight: rank 3: ...".
  void complain(std::string_view message) const;
  void complain(const Error& error) const { complain(error.message()); }

  // Flushes stdout. Returns `exit`, or kCouldNotLook if the answer could not be
  // written completely or files shrank while they were read.
  int finish(Exit exit);

 private:
  CommonOptions options_;
  Context context_;
  Terminal terminal_;
  SteadyClock clock_;
  bool write_failed_ = false;
};

}  // namespace postflight
