#include <algorithm>
#include <memory>

#include "base/escape.h"
#include "cli/ckpt/options.h"
#include "report/checkpoint/history.h"

namespace postflight {
namespace {

struct HistoryOptions {
  std::string run;
  bool deep = false;
};

Result<std::vector<RunStep>> steps_of(const HistoryOptions& options) {
  std::vector<RunStep> steps = TRY(list_run(options.run));
  if (steps.empty())
    return fail(ErrorKind::kUsage,
                "{} has no checkpoints with a step in their names, such as "
                "step_100.pt, checkpoint-100 or iter_0000100",
                options.run);
  return steps;
}

Result<Exit> log_run(const HistoryOptions& options, Session& session) {
  const std::vector<RunStep> steps = TRY(steps_of(options));
  const std::unique_ptr<Progress> progress =
      session.progress({.label = "Looking", .total_files = steps.size()});
  std::vector<ListedStep> listed;
  for (const RunStep& step : steps) {
    listed.push_back({step, state_of(step, session.context(), options.deep)});
    progress->advance(step.bytes, 1);
  }
  progress->finish();
  const std::optional<std::string> stated = stated_latest(options.run);
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_log_json(options.run, listed, stated, out);
  else
    write_log(options.run, listed, stated, session.terminal(), out);
  return exit_for(std::ranges::any_of(
      listed, [](const ListedStep& one) { return !one.state.whole; }));
}

// From the newest on, so that usually one is opened.
Result<Exit> latest(const HistoryOptions& options, Session& session) {
  const std::vector<RunStep> steps = TRY(steps_of(options));
  std::vector<ListedStep> damaged;
  std::optional<ListedStep> found;
  for (auto step = steps.rbegin(); step != steps.rend() && !found; ++step) {
    ListedStep one{*step, state_of(*step, session.context(), options.deep)};
    if (one.state.whole) {
      found = std::move(one);
      continue;
    }
    session.complain(fmt::format("{} is not whole: {}", one.step.path.string(),
                                 one.state.problem));
    damaged.push_back(std::move(one));
  }
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json)
    write_latest_json(options.run, found ? &*found : nullptr, damaged, out);
  else if (found)
    out += escape_for_terminal(found->step.path.string()) + "\n";
  if (!found)
    session.complain(fmt::format("none of {} steps is whole", steps.size()));
  return exit_for(!found);
}

struct BisectOptions {
  std::string run;
  std::string until;
};

Result<Exit> bisect_run(const BisectOptions& options, Session& session) {
  const Condition condition = TRY(Condition::parse(options.until));
  std::vector<RunStep> steps = TRY(steps_of({.run = options.run}));
  const std::size_t all = steps.size();
  // What cannot be read says nothing about when it broke.
  std::erase_if(steps, [&session](const RunStep& step) {
    const StepState state = state_of(step, session.context(), false);
    if (!state.whole)
      session.complain(fmt::format("left out: {} is not whole: {}",
                                   step.path.string(), state.problem));
    return !state.whole;
  });
  std::vector<LookedAt> looked_at;
  const Bisection found = TRY(bisect(steps, condition, session.context(),
                                     [&](const RunStep& step, bool met) {
                                       looked_at.push_back({step, met});
                                     }));
  Output out([&session](std::string_view piece) { session.print(piece); });
  const BisectReport report{options.run, options.until, steps, looked_at, all};
  if (session.options().json)
    write_bisection_json(report, found, out);
  else
    write_bisection(report, found, session.terminal(), out);
  return exit_for(found.first.has_value());
}

void add_history_options(CommandArguments& arguments, HistoryOptions& options) {
  arguments
      .positional("RUN", options.run,
                  "The folder in which a run saves its checkpoints")
      .required();
  arguments.flag("--deep", options.deep,
                 "Check every CRC, and look for NaN and Inf, too");
  add_threads_option(arguments);
}

}  // namespace

Command ckpt_log_command() {
  return {
      .name = "log",
      .sentence =
          "Lists the checkpoints of a run by step: whole or not, size, date.\n"
          "Exit 1 if one is damaged.",
      .examples = {{"postflight ckpt log runs/7b", "by structure and sizes"},
                   {"postflight ckpt log runs/7b --deep", "all of their bytes"},
                   {"postflight ckpt log --json runs/7b", "for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<HistoryOptions>();
        add_history_options(arguments, *options);
        return
            [options](Session& session) { return log_run(*options, session); };
      }};
}

Command ckpt_bisect_command() {
  return {
      .name = "bisect",
      .sentence =
          "Finds the first checkpoint of a run at which a condition starts to "
          "hold.\n"
          "About log2 of the steps are read, as what broke stays broken. Exit "
          "1 if there is such a step.",
      .examples = {{"postflight ckpt bisect runs/7b --until nan",
                    "since when are there NaN?"},
                   {"postflight ckpt bisect runs/7b --until '*layer.3* std>5'",
                    "since when is it so wide?"},
                   {"postflight ckpt bisect --json runs/7b --until inf",
                    "for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<BisectOptions>();
        arguments
            .positional("RUN", options->run,
                        "The folder in which a run saves its checkpoints")
            .required();
        arguments
            .option("--until", options->until, "CONDITION",
                    "A sign of ckpt stats (nan, inf, ...), or keys and a "
                    "statistic: 'KEYS STAT>NUMBER'")
            .required();
        add_threads_option(arguments);
        return [options](Session& session) {
          return bisect_run(*options, session);
        };
      }};
}

Command ckpt_latest_command() {
  return {
      .name = "latest",
      .sentence =
          "Prints the newest checkpoint of a run that is whole, to resume "
          "from.\n"
          "Newer damaged ones are listed on standard error. Exit 1 if none "
          "is whole.",
      .examples = {{"postflight ckpt latest runs/7b", "by structure and sizes"},
                   {"postflight ckpt latest runs/7b --deep",
                    "after reading all of it"},
                   {"postflight ckpt latest --json runs/7b", "for a program"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<HistoryOptions>();
        add_history_options(arguments, *options);
        return
            [options](Session& session) { return latest(*options, session); };
      }};
}

}  // namespace postflight
