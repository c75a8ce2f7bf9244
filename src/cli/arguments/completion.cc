#include "cli/arguments/completion.h"

#include <algorithm>

#include <fmt/format.h>

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

std::string command_names(const DeclaredCommand& program) {
  std::string names;
  for (const DeclaredCommand& command : program.commands)
    names += (names.empty() ? "" : " ") + command.name;
  return names;
}

std::string flags_of(const DeclaredCommand& command) {
  std::string flags;
  for (const DeclaredOption& option : command.options)
    if (!option.positional)
      for (const std::string& name : option.names)
        flags += (flags.empty() ? "" : " ") + name;
  return flags;
}

std::string spaced(std::string values) {
  std::ranges::replace(values, '|', ' ');
  return values;
}

}  // namespace

std::string bash_completion(const DeclaredCommand& program) {
  std::string values;
  std::string flags;
  std::string groups;
  for (const DeclaredCommand& command : program.commands)
    if (const std::string below = command_names(command); !below.empty())
      groups += fmt::format("    {}) words='{}' ;;\n", command.name, below);
  for (const DeclaredCommand* const command : runnable_commands(program)) {
    const std::string name = command->called;
    const bool nested = name.find(' ') != name.npos;
    flags +=
        fmt::format("    '{}'{}) words='{}' ;;\n", nested ? name : name + " ",
                    nested ? "" : "*", flags_of(*command));
    for (const DeclaredOption& option : command->options)
      if (option.value.find('|') != option.value.npos) {
        const std::string line =
            fmt::format("    {}) words='{}' ;;\n", option.names.back(),
                        spaced(option.value));
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

std::string zsh_completion(const DeclaredCommand& program) {
  std::string commands;
  std::string cases;
  for (const DeclaredCommand& command : program.commands) {
    commands += fmt::format("    '{}:{}'\n", command.name,
                            single_quoted(first_line(command.sentence)));
    if (const std::string below = command_names(command); !below.empty())
      cases += fmt::format(
          "    '{} '|'{} '[^-]#)\n      (( CURRENT == 2 )) && compadd {} && "
          "return\n      ;|\n",
          command.name, command.name, below);
  }
  for (const DeclaredCommand* const command : runnable_commands(program)) {
    const std::string full = command->called;
    const bool nested = full.find(' ') != full.npos;
    cases += fmt::format("    '{}'{})\n      _arguments \\\n",
                         nested ? full : full + " ", nested ? "" : "*");
    for (const DeclaredOption& option : command->options) {
      if (option.positional)
        continue;
      for (const std::string& name : option.names)
        cases += fmt::format(
            "        '{}{}[{}]{}' \\\n", name, option.value.empty() ? "" : "=",
            single_quoted(option.help),
            option.value.empty() ? ""
                                 : ":value:(" + spaced(option.value) + ")");
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

std::string fish_completion(const DeclaredCommand& program) {
  std::string out = "# fish completion for postflight\n";
  const std::string names = command_names(program);
  for (const DeclaredCommand& command : program.commands) {
    out += fmt::format(
        "complete -c postflight -n 'not __fish_seen_subcommand_from {}' -f "
        "-a {} -d '{}'\n",
        names, command.name, single_quoted(first_line(command.sentence)));
    const std::string below = command_names(command);
    for (const DeclaredCommand& inner : command.commands)
      out += fmt::format(
          "complete -c postflight -n '__fish_seen_subcommand_from {}; and not "
          "__fish_seen_subcommand_from {}' -f -a {} -d '{}'\n",
          command.name, below, inner.name,
          single_quoted(first_line(inner.sentence)));
  }
  for (const DeclaredCommand* const command : runnable_commands(program)) {
    for (const DeclaredOption& option : command->options) {
      if (option.positional)
        continue;
      std::string seen = "__fish_seen_subcommand_from " + command->name;
      if (const std::size_t space = command->called.find(' ');
          space != command->called.npos)
        seen = fmt::format("__fish_seen_subcommand_from {}; and {}",
                           command->called.substr(0, space), seen);
      std::string line = fmt::format("complete -c postflight -n '{}'", seen);
      for (const std::string& name : option.names)
        line += name.starts_with("--") ? " -l " + name.substr(2)
                                       : " -s " + name.substr(1);
      if (!option.value.empty())
        line += fmt::format(" -x -a '{}'", spaced(option.value));
      out += line + fmt::format(" -d '{}'\n", single_quoted(option.help));
    }
  }
  return out;
}

}  // namespace postflight
