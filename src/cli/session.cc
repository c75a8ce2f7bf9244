#include "cli/session.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/truncation_guard.h"

namespace postflight {
namespace {

ColourChoice colour_choice(std::string_view color) {
  return color == "always"  ? ColourChoice::kAlways
         : color == "never" ? ColourChoice::kNever
                            : ColourChoice::kAuto;
}

}  // namespace

Session::Session(const CommonOptions& options)
    : options_(options),
      context_({.threads = options.threads}),
      terminal_(Terminal::detect(colour_choice(options.color))) {}

std::unique_ptr<Progress> Session::progress(ProgressOptions options) const {
  options.quiet = options_.quiet;
  const auto sink = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
  };
  return std::make_unique<Progress>(terminal_, clock_, sink,
                                    std::move(options));
}

void Session::print(std::string_view text) {
  if (write_failed_)
    return;
  write_failed_ =
      std::fwrite(text.data(), 1, text.size(), stdout) != text.size();
}

void Session::complain(std::string_view message) const {
  const std::string line =
      fmt::format("postflight: {}\n", escape_for_terminal(message));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int Session::finish(Exit exit) {
  if (std::fflush(stdout) != 0)
    write_failed_ = true;
  const int error = errno;
  const std::vector<std::filesystem::path> shrunk =
      TruncationGuard::shrunk_files();
  if (!shrunk.empty())
    complain(fmt::format(
        "{} became shorter while it was being read, so the answer may be "
        "wrong; is it still being written?",
        shrunk.front().string()));
  if (!write_failed_)
    return static_cast<int>(shrunk.empty() ? exit : Exit::kCouldNotLook);
  complain(fmt::format("cannot write to standard output: {}",
                       std::generic_category().message(error)));
  return static_cast<int>(Exit::kCouldNotLook);
}

}  // namespace postflight
