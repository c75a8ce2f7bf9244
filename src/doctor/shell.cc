#include "doctor/shell.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"

namespace postflight {
namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

template <std::size_t kCount>
bool is_one_of(std::string_view word,
               const std::array<std::string_view, kCount>& words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::array<std::string_view, 12> kBeforeCommands = {
    "if",    "then", "elif", "else", "do",   "while",
    "until", "!",    "{",    "time", "exec", "nohup"};
constexpr std::array<std::string_view, 5> kShells = {"sh", "bash", "zsh",
                                                     "dash", "ksh"};
// Their words are text, not settings.
constexpr std::array<std::string_view, 13> kTalkers = {
    "echo", "printf", "cat", "tee",    "grep", "sed", "awk",
    "test", "[",      "[[",  "logger", "read", "case"};
// What they start is the job.
constexpr std::array<std::string_view, 16> kLaunchers = {
    "srun",        "mpirun",     "mpiexec", "prun",
    "torchrun",    "accelerate", "python",  "apptainer",
    "singularity", "docker",     "podman",  "enroot",
    "deepspeed",   "horovodrun", "kubectl", "ray"};

bool is_launcher(std::string_view command) {
  return is_one_of(command, kLaunchers) || command.starts_with("python");
}

// A job's settings; other variables are only of interest where they are used.
bool is_setting(std::string_view name) {
  for (const std::string_view prefix : {"TORCH", "NCCL_"})
    if (name.starts_with(prefix))
      return true;
  return false;
}

// Of a list such as ALL,A=1,B; false if it has no ALL.
template <class Take>
bool each_of_list(std::string_view list, const Take& take) {
  bool all = false;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    all = all || part == "ALL";
    if (auto assignment = assignment_of(part))
      take(*std::move(assignment));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
  }
  return all;
}

}  // namespace

std::size_t variable_name_length(std::string_view text) {
  if (text.empty() || is_digit(text[0]))
    return 0;
  std::size_t size = 0;
  while (size < text.size() &&
         (is_letter(text[size]) || is_digit(text[size]) || text[size] == '_'))
    ++size;
  return size;
}

std::optional<Assignment> assignment_of(std::string_view word) {
  const std::size_t size = variable_name_length(word);
  if (size == 0 || size >= word.size() || word[size] != '=')
    return std::nullopt;
  return Assignment{std::string(word.substr(0, size)),
                    std::string(word.substr(size + 1))};
}

bool takes_text(std::string_view command) {
  return is_one_of(base_name(command), kTalkers);
}

Shell::Shell(const JobEnvironment& known) {
  for (const auto& [name, value] : known)
    variables_[name] = {.value = value};
}

void Shell::run(const std::vector<std::string>& words) {
  std::span<const std::string> rest = words;
  while (!rest.empty() && is_one_of(rest[0], kBeforeCommands))
    rest = rest.subspan(1);
  std::vector<Assignment> before;
  for (; !rest.empty(); rest = rest.subspan(1)) {
    auto assignment = assignment_of(rest[0]);
    if (!assignment)
      break;
    before.push_back(*std::move(assignment));
  }
  if (rest.empty()) {
    for (Assignment& one : before)
      assign(std::move(one), export_all_);
    return;
  }
  command(base_name(rest[0]), rest.subspan(1), before);
}

void Shell::sbatch(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view list = words[i];
    if (list == "--export" && i + 1 < words.size())
      list = words[i + 1];
    else if (list.starts_with("--export="))
      list.remove_prefix(9);
    else
      continue;
    passes_all_ = each_of_list(
        list, [this](Assignment one) { assign(std::move(one), true); });
  }
}

std::optional<std::string> Shell::value(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::nullopt
                                   : std::optional(found->second.value);
}

std::vector<std::string> Shell::take_scripts() {
  return std::exchange(scripts_, {});
}

JobScript Shell::finish() && {
  JobScript script;
  script.environment = std::move(launched_);
  if (!has_launched_)
    script.environment.merge(exported());
  for (const auto& [name, variable] : variables_)
    if (is_setting(name) && !variable.exported && variable.assigned &&
        !script.environment.contains(name))
      script.findings.push_back(
          {"not_exported", Severity::kWarning,
           fmt::format("{}={} is set but not exported, so that no program "
                       "sees it: export {}",
                       name, variable.value, name),
           name});
  if (!lost_by_.empty())
    script.findings.push_back(
        {"not_passed_on", Severity::kError,
         fmt::format("{}: what the script exports does not reach the ranks; "
                     "use srun --export=ALL",
                     lost_by_),
         ""});
  for (const std::string& file : sources_)
    script.findings.push_back(
        {"sourced_file", Severity::kNote,
         fmt::format("the script sources {}, which was not read: check it "
                     "with postflight doctor --env",
                     file),
         file});
  script.folders = std::move(folders_);
  return script;
}

void Shell::assign(Assignment assignment, bool exports) {
  Variable& variable = variables_[assignment.name];
  variable.value = std::move(assignment.value);
  variable.exported = variable.exported || exports;
  variable.assigned = true;
}

JobEnvironment Shell::exported() const {
  JobEnvironment environment;
  for (const auto& [name, variable] : variables_)
    if (variable.exported)
      environment[name] = variable.value;
  return environment;
}

void Shell::command(std::string_view name, std::span<const std::string> words,
                    const std::vector<Assignment>& before) {
  if (name == "export" || name == "declare" || name == "typeset" ||
      name == "readonly" || name == "local")
    declare(name, words);
  else if (name == "unset")
    unset(words);
  else if (name == "set")
    set(words);
  else if ((name == "source" || name == ".") && !words.empty())
    sources_.insert(words[0]);
  else if (name == "mkdir")
    folders_.insert(folders_.end(), words.begin(), words.end());
  else if (!is_one_of(name, kTalkers))
    launch(name, words, before);
}

void Shell::unset(std::span<const std::string> words) {
  for (const std::string& word : words) {
    variables_.erase(word);
    passes_all_ = passes_all_ || word == "SLURM_EXPORT_ENV";
  }
}

void Shell::declare(std::string_view command,
                    std::span<const std::string> words) {
  bool exports = command == "export";
  for (const std::string& word : words) {
    if (word.starts_with('-')) {
      exports = exports || word.find('x') != word.npos;
      if (command == "export" && word.find('n') != word.npos)
        exports = false;
      continue;
    }
    if (auto assignment = assignment_of(word)) {
      assign(*std::move(assignment), exports || export_all_);
    } else if (const auto known = variables_.find(word);
               known != variables_.end()) {
      known->second.exported = exports;
    }
  }
}

void Shell::set(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool named = i > 0 && word == "allexport";
    if (named || (word.size() > 1 && word.find('a') != word.npos &&
                  (word[0] == '-' || word[0] == '+')))
      export_all_ = (named ? words[i - 1] : word)[0] == '-';
  }
}

void Shell::launch(std::string_view name, std::span<const std::string> words,
                   const std::vector<Assignment>& before) {
  JobEnvironment environment = exported();
  bool passes_all =
      passes_all_ || name != "srun" || value("SLURM_EXPORT_ENV") == "ALL";
  std::string_view lost_by =
      "#SBATCH --export has no ALL, which srun takes over";
  JobEnvironment own;
  const auto take = [&own](Assignment one) {
    own[one.name] = std::move(one.value);
  };
  for (const Assignment& one : before)
    take(one);
  bool launches = is_launcher(name);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const bool has_next = i + 1 < words.size();
    launches = launches || is_launcher(base_name(word));
    if (word.starts_with("--export=") || (word == "--export" && has_next)) {
      passes_all =
          each_of_list(word == "--export" ? words[++i] : word.substr(9), take);
      lost_by = "srun --export has no ALL";
    } else if (word.starts_with("--env=")) {
      each_of_list(word.substr(6), take);
    } else if ((word == "-e" || word == "-x" || word == "--env") && has_next &&
               assignment_of(words[i + 1])) {
      each_of_list(words[++i], take);
    } else if (word == "-genv" && i + 2 < words.size()) {
      take({words[i + 1], words[i + 2]});
      i += 2;
    } else if (name == "env" && word == "-u" && has_next) {
      environment.erase(words[++i]);
    } else if (name == "env" && (word == "-i" || word == "-")) {
      environment.clear();
    } else if (has_next && word.size() > 1 && word[0] == '-' &&
               word.back() == 'c' &&
               is_one_of(i == 0 ? name : base_name(words[i - 1]), kShells)) {
      scripts_.push_back(words[++i]);
    } else if (auto assignment = assignment_of(word)) {
      take(*std::move(assignment));
    }
  }
  const auto has_setting = [](const JobEnvironment& variables) {
    return std::ranges::any_of(
        variables, [](const auto& one) { return is_setting(one.first); });
  };
  if (!launches && !has_setting(own))
    return;
  has_launched_ = has_launched_ || launches;
  if (!passes_all) {
    if (has_setting(environment))
      lost_by_ = lost_by;
    environment.clear();
  }
  own.merge(environment);
  for (auto& [variable, text] : own)
    launched_.insert_or_assign(variable, std::move(text));
}

}  // namespace postflight
