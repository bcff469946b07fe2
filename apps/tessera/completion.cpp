// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "command_table.hpp"
#include "options.hpp"
#include "tessera/core/error.hpp"
#include "tessera/data/embedded.hpp"

namespace tessera::app {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  return fmt::format("{}", fmt::join(words, between));
}

/// Data that needs no file.
std::string sources() {
  std::vector<std::string> names;
  for (const auto& entry : embedded_datasets()) names.push_back("embedded:" + entry.name);
  for (const auto& entry : twins()) names.push_back("twin:" + entry.name);
  for (const auto& entry : generator_kinds()) names.push_back("generate:" + entry.name);
  return joined(names, " ");
}

/// The text with a backslash before each of these characters.
std::string escaped(const std::string& text, const std::string& special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

/// Between single quotes of a POSIX shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::vector<std::string> verb_names(const std::vector<VerbEntry>& table) {
  std::vector<std::string> names;
  for (const VerbEntry& entry : table) names.emplace_back(entry.verb->name);
  return names;
}

// Words are taken from the line: bash itself splits them at colons, which names of data have.
constexpr const char* bash_frame =
    R"(# Completion of tessera for bash, made by 'tessera completion bash'.
_tessera() {{
  local line=${{COMP_LINE:0:COMP_POINT}} word= before= options= kept=
  local -a words
  read -ra words <<< "$line"
  if [[ $line != *[[:space:]] ]]; then
    word=${{words[${{#words[@]}}-1]}}
    words=("${{words[@]:0:${{#words[@]}}-1}}")
  fi
  before=${{words[${{#words[@]}}-1]}}
  COMPREPLY=()
  if [ "${{#words[@]}}" -lt 2 ]; then
    mapfile -t COMPREPLY < <(compgen -W "{verbs} help --help --version" -- "$word")
    return
  fi
  if [[ $word == --*=* ]]; then
    before=${{word%%=*}}
    word=${{word#*=}}
  fi
  case "${{words[1]}} $before" in
{values}  esac
  case "${{words[1]}}" in
    help) options="{verbs}" ;;
{options}  esac
  if [[ $word == -* || ${{words[1]}} == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  else
    _tessera_source
  fi
}}
_tessera_file() {{
  compopt -o filenames 2> /dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$word")
}}
_tessera_source() {{
  if [[ $word == *:* ]]; then
    kept=${{word%"${{word##*:}}"}}
    mapfile -t COMPREPLY < <(compgen -W "{sources}" -- "$word")
    COMPREPLY=("${{COMPREPLY[@]#"$kept"}}")
  else
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word"; compgen -W "{sources}" -- "$word")
  fi
}}
complete -F _tessera tessera
)";

std::string bash_script(const std::vector<VerbEntry>& table) {
  std::string values, options;
  for (const VerbEntry& entry : table) {
    const std::string verb = entry.verb->name;
    std::vector<std::string> names;
    for (const OptionEntry& option : entry.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.names.empty() || !option.takes_value()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) {
        patterns.push_back(fmt::format("\"{} {}\"", verb, name));
      }
      std::string action;
      if (!option.choices.empty()) {
        action = fmt::format("mapfile -t COMPREPLY < <(compgen -W \"{}\" -- \"$word\"); ",
                             joined(option.choices, " "));
      } else if (option.takes_file()) {
        action = "_tessera_file; ";
      } else if (option.placeholder == "SOURCE") {
        action = "_tessera_source; ";
      }
      values += fmt::format("    {}) {}return ;;\n", joined(patterns, " | "), action);
    }
    options += fmt::format("    {}) options=\"{}\" ;;\n", verb, joined(names, " "));
    for (const OptionEntry& option : entry.options) {
      if (!option.names.empty() || option.choices.empty()) continue;
      options.insert(options.size() - 3,
                     fmt::format("; [[ $word == -* ]] || {{ mapfile -t COMPREPLY < <(compgen -W "
                                 "\"{}\" -- \"$word\"); return; }}",
                                 joined(option.choices, " ")));
    }
  }
  return fmt::format(fmt::runtime(bash_frame), fmt::arg("verbs", joined(verb_names(table), " ")),
                     fmt::arg("values", values), fmt::arg("options", options),
                     fmt::arg("sources", sources()));
}

/// What zsh is to do with the value of an option: ":FILE:_files".
std::string zsh_value(const OptionEntry& option) {
  if (!option.takes_value()) return {};
  std::string action = " ";
  if (!option.choices.empty()) {
    action = fmt::format("({})", escaped(joined(option.choices, " "), ":"));
  } else if (option.takes_file()) {
    action = "_files";
  } else if (option.placeholder == "SOURCE") {
    action = "_tessera_source";
  }
  return fmt::format(":{}:{}", escaped(option.placeholder, ":"), action);
}

std::string zsh_option(const OptionEntry& option) {
  if (option.names.empty()) return quoted("*" + zsh_value(option));
  const std::string rest =
      fmt::format("[{}]{}", escaped(option.description, "[]:\\"), zsh_value(option));
  if (option.names.size() == 1) return option.names[0] + quoted(rest);
  return fmt::format("{}{{{}}}{}", quoted("(" + joined(option.names, " ") + ")"),
                     joined(option.names, ","), quoted(rest));
}

std::string zsh_script(const std::vector<VerbEntry>& table) {
  std::string verbs, cases;
  for (const VerbEntry& entry : table) {
    verbs += fmt::format("    {}\n", quoted(fmt::format("{}:{}", entry.verb->name,
                                                        escaped(entry.verb->summary, ":"))));
    cases += fmt::format("    {})\n      _arguments", entry.verb->name);
    bool has_source = false;
    for (const OptionEntry& option : entry.options) {
      cases += " \\\n        " + zsh_option(option);
      has_source = has_source || option.placeholder == "SOURCE";
    }
    if (has_source) cases += " \\\n        '*:SOURCE:_tessera_source'";
    cases += "\n      ;;\n";
  }
  return fmt::format(
      "#compdef tessera\n# Completion of tessera for zsh, made by 'tessera completion zsh'.\n"
      "_tessera_source() {{\n  local -a data\n  data=({})\n  _files\n  compadd -a data\n}}\n"
      "_tessera() {{\n  local -a verbs\n  verbs=(\n{}    'help:explain a verb'\n  )\n"
      "  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n"
      "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $verb in\n{}"
      "    help)\n      _describe verb verbs\n      ;;\n  esac\n}}\n"
      "# Loaded by name the script is run as the function itself, otherwise it is sourced.\n"
      "if [ \"$funcstack[1]\" = _tessera ]; then\n  _tessera \"$@\"\nelse\n"
      "  compdef _tessera tessera\nfi\n",
      sources(), verbs, cases);
}

/// Between single quotes of fish, which knows two escapes there.
std::string fish_quoted(const std::string& text) { return "'" + escaped(text, "\\'") + "'"; }

std::string fish_script(const std::vector<VerbEntry>& table) {
  std::string script = "# Completion of tessera for fish, made by 'tessera completion fish'.\n";
  const std::string names = joined(verb_names(table), " ");
  for (const VerbEntry& entry : table) {
    const std::string verb = entry.verb->name;
    script += fmt::format("complete -c tessera -f -n __fish_use_subcommand -a {} -d {}\n", verb,
                          fish_quoted(entry.verb->summary));
    const std::string here = fish_quoted("__fish_seen_subcommand_from " + verb);
    for (const OptionEntry& option : entry.options) {
      std::string line = fmt::format("complete -c tessera -n {}", here);
      for (const std::string& name : option.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      const bool is_source = option.placeholder == "SOURCE";
      if (option.takes_value()) line += option.takes_file() || is_source ? " -r -F" : " -x";
      if (option.names.empty()) line = fmt::format("complete -c tessera -n {} -f", here);
      if (!option.choices.empty()) {
        line += " -a " + fish_quoted(joined(option.choices, " "));
      } else if (is_source) {
        line += " -a " + fish_quoted(sources());
      }
      script += line + " -d " + fish_quoted(option.description) + "\n";
    }
  }
  return script +
         fmt::format("complete -c tessera -f -n '__fish_seen_subcommand_from help' -a {}\n",
                     fish_quoted(names));
}

Action setup(Arguments& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->type_name("SHELL")
      ->check(one_of({"bash", "zsh", "fish"}));
  return {[shell](Session& session) {
    if (shell->empty()) {
      throw Error(ErrorCode::invalid_argument, "no shell named", "",
                  "use tessera completion bash, zsh or fish");
    }
    const std::vector<VerbEntry> table = command_table();
    const std::string script = *shell == "bash"  ? bash_script(table)
                               : *shell == "zsh" ? zsh_script(table)
                                                 : fish_script(table);
    session.deliver_text(script, {{"verb", "completion"}, {"shell", *shell}, {"script", script}});
    return ExitCode::ok;
  }};
}

}  // namespace

const Verb completion_verb{
    "completion", "print a script that completes commands in a shell", "SHELL [options]",
    "tessera completion bash > ~/.local/share/bash-completion/completions/tessera\n"
    "tessera completion zsh > ~/.zfunc/_tessera\n"
    "tessera completion fish > ~/.config/fish/completions/tessera.fish",
    setup};

}  // namespace tessera::app
