#include "base/progress.h"

#include "base/display_width.h"
#include "base/escape.h"
#include "base/units.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace postflight {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr Clock::Duration kDelay = std::chrono::milliseconds(500);
constexpr Clock::Duration kInterval = std::chrono::milliseconds(100);
constexpr std::size_t kMinBar = 10;
constexpr std::size_t kMaxBar = 30;
constexpr std::string_view kGap = "  ";
// A longer estimate is too unreliable to show.
constexpr Seconds kLongestGuess = std::chrono::hours(24 * 30);

struct State {
  const ProgressOptions& options;
  std::uint64_t bytes;
  std::uint64_t files;
  Seconds elapsed;

  std::optional<double> fraction() const {
    const bool by_bytes = options.total_bytes > 0;
    const std::uint64_t total =
        by_bytes ? options.total_bytes : options.total_files;
    if (total == 0)
      return std::nullopt;
    const std::uint64_t done = std::min(by_bytes ? bytes : files, total);
    return static_cast<double>(done) / static_cast<double>(total);
  }
};

std::string bytes_text(const State& state) {
  if (state.bytes == 0 && state.options.total_bytes == 0)
    return "";
  if (state.options.total_bytes == 0)
    return human_bytes(state.bytes);
  return fmt::format("{} of {}", human_bytes(state.bytes),
                     human_bytes(state.options.total_bytes));
}

std::string files_text(const State& state) {
  if (state.options.total_files > 0)
    return fmt::format("{} of {} files", state.files,
                       state.options.total_files);
  if (state.files == 0)
    return "";
  return fmt::format("{} {}", state.files, state.files == 1 ? "file" : "files");
}

std::string rate_text(const State& state) {
  const double rate = static_cast<double>(state.bytes) / state.elapsed.count();
  if (rate < 1 || rate > 1e18)
    return "";
  return human_bytes(static_cast<std::uint64_t>(rate)) + "/s";
}

std::string time_left_text(const State& state) {
  const double fraction = state.fraction().value_or(0);
  if (fraction <= 0)
    return "";
  const Seconds left = state.elapsed * ((1 - fraction) / fraction);
  if (left > kLongestGuess)
    return "";
  const auto whole =
      std::chrono::ceil<std::chrono::seconds>(left);  // "0 s" would be a lie
  return human_duration(whole) + " left";
}

std::string bar(double fraction, std::size_t width) {
  const auto done =
      static_cast<std::size_t>(fraction * static_cast<double>(width));
  return fmt::format("[{}{}]", std::string(done, '#'),
                     std::string(width - done, '.'));
}

// In a narrow terminal the least important parts are left out.
std::string line(const State& state, const Terminal& terminal) {
  // The last column stays free, as some terminals wrap once it is written.
  const std::size_t width = terminal.width - 1;
  const std::optional<double> fraction = state.fraction();
  enum Part { kLabel, kBar, kPercent, kBytes, kFiles, kRate, kTimeLeft };
  std::array<std::string, 7> wanted;
  wanted[kLabel] =
      cut_to_width(escape_for_terminal(state.options.label),
                   std::max<std::size_t>(width / 3, 8), terminal.ellipsis());
  wanted[kPercent] =
      fraction ? fmt::format("{}%", static_cast<int>(*fraction * 100)) : "";
  wanted[kBytes] = bytes_text(state);
  wanted[kFiles] = files_text(state);
  wanted[kRate] = rate_text(state);
  wanted[kTimeLeft] = time_left_text(state);

  std::array<std::string, 7> shown;
  std::size_t used = 0;
  const auto show = [&](Part part) {
    const std::size_t gap = used == 0 ? 0 : kGap.size();
    const std::size_t columns = display_width(wanted[part]);
    if (columns == 0 || used + gap + columns > width)
      return;
    used += gap + columns;
    shown[part] = wanted[part];
  };
  for (const Part part : {kPercent, kLabel, kTimeLeft, kBytes, kRate, kFiles})
    show(part);
  const std::size_t around_bar = kGap.size() + 2;
  if (fraction && used + around_bar + kMinBar <= width) {
    wanted[kBar] = bar(*fraction, std::min(kMaxBar, width - used - around_bar));
    show(kBar);
  }

  std::string text;
  for (const std::string& part : shown) {
    if (!part.empty() && !text.empty())
      text += kGap;
    text += part;
  }
  return text;
}

}  // namespace

Progress::Progress(const Terminal& terminal, const Clock& clock, Sink sink,
                   ProgressOptions options)
    : terminal_(terminal),
      clock_(clock),
      sink_(std::move(sink)),
      options_(std::move(options)),
      enabled_(terminal.stderr_is_terminal && !terminal.dumb &&
               terminal.width > 0 && !options_.quiet && sink_ != nullptr),
      start_(clock.now()),
      next_draw_(start_ + kDelay),
      cleanup_([this] { finish(); }) {}

Progress::~Progress() {
  finish();
}

void Progress::advance(std::uint64_t bytes, std::uint64_t files) {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  files_.fetch_add(files, std::memory_order_relaxed);
  if (!enabled_)
    return;
  const Clock::TimePoint now = clock_.now();
  Clock::TimePoint due = next_draw_.load(std::memory_order_relaxed);
  // Of several threads that find a redraw due, the one that wins the exchange
  // draws.
  if (now >= due && next_draw_.compare_exchange_strong(due, now + kInterval))
    draw(now);
}

void Progress::draw(Clock::TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (finished_)
    return;
  const State state{options_, bytes_.load(), files_.load(), now - start_};
  sink_(fmt::format("\r{}\x1b[K", line(state, terminal_)));
  drawn_ = true;
}

void Progress::erase() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(drawn_, false))
    sink_("\r\x1b[K");
}

void Progress::finish() {
  erase();
  const std::lock_guard lock(mutex_);
  finished_ = true;
}

}  // namespace postflight
