#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "doctor/settings.h"

namespace postflight {

// What a shell or sbatch script sets for the programs that it launches.
struct JobScript {
  JobEnvironment environment = {};
  std::vector<std::string> folders = {};  // that it makes
  std::vector<Finding> findings = {};     // settings that reach nobody
};

// "A=1"
struct Assignment {
  std::string name;
  std::string value;
};

// The length of the name of a variable that a text starts with; 0: none.
std::size_t variable_name_length(std::string_view text);

std::optional<Assignment> assignment_of(std::string_view word);

// Whether a command takes words for people to read rather than settings: echo.
bool takes_text(std::string_view command);

// The variables of a shell, and what its commands do to them.
class Shell {
 public:
  explicit Shell(const JobEnvironment& known);

  // One command, or assignments alone.
  void run(const std::vector<std::string>& words);

  // A line "#SBATCH --export=ALL,A=1".
  void sbatch(const std::vector<std::string>& words);
  std::optional<std::string> value(std::string_view name) const;

  // Scripts that a command was given as text: bash -c '...'.
  std::vector<std::string> take_scripts();
  // What the whole script says.
  JobScript finish() &&;

 private:
  struct Variable {
    std::string value;
    bool exported = false;
    bool assigned = false;  // by the script
  };

  void assign(Assignment assignment, bool exports);
  JobEnvironment exported() const;
  void command(std::string_view name, std::span<const std::string> words,
               const std::vector<Assignment>& before);
  void unset(std::span<const std::string> words);
  void declare(std::string_view command, std::span<const std::string> words);
  void set(std::span<const std::string> words);

  // Any other command: its variables, and those among its options.
  void launch(std::string_view name, std::span<const std::string> words,
              const std::vector<Assignment>& before);

  std::map<std::string, Variable, std::less<>> variables_;
  JobEnvironment launched_;  // what the programs that were started have
  bool has_launched_ = false;
  std::vector<std::string> scripts_;
  std::vector<std::string> folders_;
  std::set<std::string> sources_;
  bool export_all_ = false;
  bool passes_all_ = true;  // sbatch, and so srun unless it is told otherwise
  std::string_view lost_by_;
};

}  // namespace postflight
