#include "cli/completion.h"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/declared.h"

namespace postflight {
namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Inside single quotes of any shell we write for.
std::string single_quoted(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

std::string command_names(const CLI::App& program) {
  std::string names;
  for (const CLI::App* const command : visible_commands(program))
    names += (names.empty() ? "" : " ") + command->get_name();
  return names;
}

std::string flags_of(const CLI::App& app) {
  std::string flags;
  for (const CLI::Option* const option : app.get_options())
    if (!option->get_positional())
      for (const std::string& name : option_names(*option))
        flags += (flags.empty() ? "" : " ") + name;
  return flags;
}

std::string spaced(std::string values) {
  std::ranges::replace(values, '|', ' ');
  return values;
}

}  // namespace

std::string bash_completion(const CLI::App& program) {
  std::string values;
  std::string flags;
  std::string groups;
  for (const CLI::App* const command : visible_commands(program))
    if (const std::string below = command_names(*command); !below.empty())
      groups +=
          fmt::format("    {}) words='{}' ;;\n", command->get_name(), below);
  for (const CLI::App* const command : runnable_commands(program)) {
    const std::string name = command_line_name(*command);
    const bool nested = name.find(' ') != name.npos;
    flags +=
        fmt::format("    '{}'{}) words='{}' ;;\n", nested ? name : name + " ",
                    nested ? "" : "*", flags_of(*command));
    for (const CLI::Option* const option : command->get_options())
      if (const std::string value = option_value(*option);
          value.find('|') != value.npos) {
        const std::string line =
            fmt::format("    {}) words='{}' ;;\n", option_names(*option).back(),
                        spaced(value));
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
  if (( COMP_CWORD == 2 )); then
    case ${{COMP_WORDS[1]}} in
{}    esac
    if [[ -n $words ]]; then
      COMPREPLY=($(compgen -W "$words" -- "$word"))
      return
    fi
  fi
  [[ $word == -* ]] || return
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _postflight postflight
)",
                     values, command_names(program), groups, flags);
}

std::string zsh_completion(const CLI::App& program) {
  std::string commands;
  std::string cases;
  for (const CLI::App* const command : visible_commands(program)) {
    commands += fmt::format(
        "    '{}:{}'\n", command->get_name(),
        single_quoted(first_line(description_of(*command).sentence)));
    if (const std::string below = command_names(*command); !below.empty())
      cases += fmt::format(
          "    '{} '|'{} '[^-]#)\n      (( CURRENT == 2 )) && compadd {} && "
          "return\n      ;|\n",
          command->get_name(), command->get_name(), below);
  }
  for (const CLI::App* const command : runnable_commands(program)) {
    const std::string full = command_line_name(*command);
    const bool nested = full.find(' ') != full.npos;
    cases += fmt::format("    '{}'{})\n      _arguments \\\n",
                         nested ? full : full + " ", nested ? "" : "*");
    for (const CLI::Option* const option : command->get_options()) {
      if (option->get_positional())
        continue;
      const std::string value = option_value(*option);
      for (const std::string& name : option_names(*option))
        cases += fmt::format(
            "        '{}{}[{}]{}' \\\n", name, value.empty() ? "" : "=",
            single_quoted(option->get_description()),
            value.empty() ? "" : ":value:(" + spaced(value) + ")");
    }
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
{}esac
)",
                     commands, cases);
}

std::string fish_completion(const CLI::App& program) {
  std::string out = "# fish completion for postflight\n";
  const std::string names = command_names(program);
  for (const CLI::App* const command : visible_commands(program)) {
    out += fmt::format(
        "complete -c postflight -n 'not __fish_seen_subcommand_from {}' -f "
        "-a {} -d '{}'\n",
        names, command->get_name(),
        single_quoted(first_line(description_of(*command).sentence)));
    const std::string below = command_names(*command);
    for (const CLI::App* const inner : visible_commands(*command))
      out += fmt::format(
          "complete -c postflight -n '__fish_seen_subcommand_from {}; and not "
          "__fish_seen_subcommand_from {}' -f -a {} -d '{}'\n",
          command->get_name(), below, inner->get_name(),
          single_quoted(first_line(description_of(*inner).sentence)));
  }
  for (const CLI::App* const command : runnable_commands(program)) {
    for (const CLI::Option* const option : command->get_options()) {
      if (option->get_positional())
        continue;
      std::string seen = "__fish_seen_subcommand_from " + command->get_name();
      if (command->get_parent() != &program)
        seen = fmt::format("__fish_seen_subcommand_from {}; and {}",
                           command->get_parent()->get_name(), seen);
      std::string line = fmt::format("complete -c postflight -n '{}'", seen);
      for (const std::string& name : option->get_snames())
        line += " -s " + name;
      for (const std::string& name : option->get_lnames())
        line += " -l " + name;
      const std::string value = option_value(*option);
      if (!value.empty())
        line += fmt::format(" -x -a '{}'", spaced(value));
      out += line + fmt::format(" -d '{}'\n",
                                single_quoted(option->get_description()));
    }
  }
  return out;
}

}  // namespace postflight
