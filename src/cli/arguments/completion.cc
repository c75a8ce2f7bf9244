#include "cli/arguments/completion.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace postflight {
namespace {

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

// For between single quotes, in all three shells.
std::string single_quoted(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

// Without the hidden ones.
std::string command_names(const Command& command) {
  std::vector<std::string_view> names;
  for (const Command& below : command.commands)
    if (!below.hidden)
      names.push_back(below.name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string option_names(const Command& command) {
  std::vector<std::string> names;
  for (const Parameter& parameter : command.parameters)
    if (!parameter.is_positional())
      names.insert(names.end(), parameter.names.begin(), parameter.names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

bool is_nested(const Command& command) {
  return command.path.find(' ') != command.path.npos;
}

// A shell pattern for the first two words after "postflight".
std::string words_pattern(const Command& command) {
  return is_nested(command) ? fmt::format("'{}'", command.path)
                            : fmt::format("'{} '*", command.path);
}

bool takes_file(const Parameter& parameter) {
  return parameter.value == "FILE";
}

// For between square brackets in an argument of _arguments.
std::string zsh_help(std::string_view help) {
  std::string out;
  for (const char c : help) {
    if (c == '[' || c == ']')
      out += '\\';
    out += c;
  }
  return single_quoted(out);
}

std::string zsh_value(const Parameter& parameter) {
  if (!parameter.has_value())
    return "";
  if (!parameter.choices.empty())
    return fmt::format(":value:({})", fmt::join(parameter.choices, " "));
  return takes_file(parameter) ? ":file:_files" : ":value: ";
}

std::string fish_value(const Parameter& parameter) {
  if (!parameter.has_value())
    return "";
  if (!parameter.choices.empty())
    return fmt::format(" -x -a '{}'", fmt::join(parameter.choices, " "));
  return takes_file(parameter) ? " -r -F" : " -x";
}

// The condition under which fish offers the options of a command.
std::string fish_condition(const Command& command) {
  std::string seen;
  std::string_view path = command.path;
  while (!path.empty()) {
    const std::string_view word = path.substr(0, path.find(' '));
    seen += fmt::format("{}__fish_seen_subcommand_from {}",
                        seen.empty() ? "" : "; and ", word);
    path.remove_prefix(std::min(word.size() + 1, path.size()));
  }
  if (const std::string below = command_names(command); !below.empty())
    seen += "; and not __fish_seen_subcommand_from " + below;
  return seen;
}

}  // namespace

std::string bash_completion(const Command& program) {
  std::string values;
  std::string nested;
  std::string options;
  std::string groups;
  for (const Command& command : program.commands)
    if (const std::string below = command_names(command); !below.empty())
      groups += fmt::format("    {}) words='{}' ;;\n", command.name, below);
  groups += fmt::format("    help) words='{}' ;;\n", command_names(program));
  for (const Command* const command : runnable_commands(program)) {
    (is_nested(*command) ? nested : options) +=
        fmt::format("    {}) words='{}' ;;\n", words_pattern(*command),
                    option_names(*command));
    for (const Parameter& parameter : command->parameters) {
      if (parameter.choices.empty() || parameter.is_positional())
        continue;
      const std::string line =
          fmt::format("    {}) words='{}' ;;\n", parameter.name(),
                      fmt::join(parameter.choices, " "));
      if (values.find(line) == values.npos)
        values += line;
    }
  }
  return fmt::format(R"(# bash completion for postflight
_postflight() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local words=''
  if [[ $before == '=' ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  if [[ $word == '=' ]]; then word=''; fi
  case $before in
{}  esac
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    return
  fi
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
    return
  fi
  if (( COMP_CWORD == 2 )) && [[ $word != -* ]]; then
    case ${{COMP_WORDS[1]}} in
{}    esac
    if [[ -n $words ]]; then
      COMPREPLY=($(compgen -W "$words" -- "$word"))
      return
    fi
  fi
  [[ $word == -* ]] || return
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{}{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _postflight postflight
)",
                     values, command_names(program), groups, nested, options);
}

std::string zsh_completion(const Command& program) {
  std::string commands;
  std::string groups;
  std::string nested;
  std::string options;
  for (const Command& command : program.commands) {
    if (command.hidden)
      continue;
    commands += fmt::format("    '{}:{}'\n", command.name,
                            single_quoted(first_line(command.sentence)));
    if (const std::string below = command_names(command); !below.empty())
      groups += fmt::format(
          "    '{} '|'{} '[^-]#)\n      (( CURRENT == 2 )) && compadd {} && "
          "return\n      ;|\n",
          command.name, command.name, below);
  }
  groups += fmt::format(
      "    'help '*)\n      (( CURRENT == 2 )) && compadd {} && return\n      "
      ";|\n",
      command_names(program));
  for (const Command* const command : runnable_commands(program)) {
    std::string& cases = is_nested(*command) ? nested : options;
    cases +=
        fmt::format("    {})\n      _arguments \\\n", words_pattern(*command));
    for (const Parameter& parameter : command->parameters)
      if (!parameter.is_positional())
        for (const std::string& name : parameter.names)
          cases += fmt::format("        '{}{}[{}]{}' \\\n", name,
                               parameter.has_value() ? "=" : "",
                               zsh_help(parameter.help), zsh_value(parameter));
    cases += "        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(R"(#compdef postflight
local -a commands
commands=(
{})
if (( CURRENT == 2 )); then
  _describe command commands
  return
fi
setopt local_options extended_glob
local command="$words[2] $words[3]"
shift words
(( CURRENT-- ))
case $command in
{}{}{}esac
)",
                     commands, groups, nested, options);
}

std::string fish_completion(const Command& program) {
  std::string out = "# fish completion for postflight\n";
  const std::string names = command_names(program);
  for (const Command& command : program.commands) {
    if (command.hidden)
      continue;
    out += fmt::format(
        "complete -c postflight -n 'not __fish_seen_subcommand_from {}' -f "
        "-a {} -d '{}'\n",
        names, command.name, single_quoted(first_line(command.sentence)));
    out += fmt::format(
        "complete -c postflight -n '__fish_seen_subcommand_from help' -f -a {} "
        "-d '{}'\n",
        command.name, single_quoted(first_line(command.sentence)));
    const std::string below = command_names(command);
    for (const Command& inner : command.commands)
      out += fmt::format(
          "complete -c postflight -n '__fish_seen_subcommand_from {}; and not "
          "__fish_seen_subcommand_from {}' -f -a {} -d '{}'\n",
          command.name, below, inner.name,
          single_quoted(first_line(inner.sentence)));
  }
  for (const Command* const command : runnable_commands(program))
    for (const Parameter& parameter : command->parameters) {
      if (parameter.is_positional())
        continue;
      out += fmt::format("complete -c postflight -n '{}'",
                         fish_condition(*command));
      for (const std::string& name : parameter.names)
        out += name.starts_with("--") ? " -l " + name.substr(2)
                                      : " -s " + name.substr(1);
      out += fmt::format("{} -d '{}'\n", fish_value(parameter),
                         single_quoted(parameter.help));
    }
  return out;
}

}  // namespace postflight
