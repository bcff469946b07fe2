// SPDX-License-Identifier: Apache-2.0
#include "help.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "table.hpp"

namespace tessera::app {
namespace {

constexpr std::size_t description_column = 27;

// "-o, --output FILE"
std::string spelling(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += "-" + name + ", ";
  if (names.empty()) names = "    ";
  for (const std::string& name : option.get_lnames()) names += "--" + name;
  // CLI11 appends what its validators say after a colon; the description says it in words.
  const std::string type = option.get_type_name();
  const std::string placeholder = type.substr(0, type.find(':'));
  return placeholder.empty() ? names : names + " " + placeholder;
}

std::string describe(const CLI::Option& option) {
  std::string left = "  " + spelling(option);
  std::string text = option.get_description();
  const std::string fallback = option.get_default_str();
  if (!fallback.empty()) text += fmt::format(" (default {})", fallback);
  if (left.size() + 2 > description_column) {
    left += '\n' + std::string(description_column, ' ');
  } else {
    left.resize(description_column, ' ');
  }
  return left + wrapped(text, description_column) + '\n';
}

std::string describe_group(const CLI::App& app, const std::string& group) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() == group) text += describe(*option);
  }
  return text.empty() ? text : "\n" + group + ":\n" + text;
}

}  // namespace

std::string program_help() {
  Table table("ll");
  for (const Verb* verb : verbs()) table.add({verb->name, verb->summary});
  return fmt::format(
      "tessera - graphs for graph neural networks\n\n"
      "Usage: tessera VERB [options]\n\nVerbs:\n{}\n"
      "'tessera help VERB' or 'tessera VERB --help' explains one, with examples.\n"
      "'tessera --version' says which release this is.\n\n"
      "Data is named the same way everywhere:\n{}\n{}",
      table.text(),
      "  path/to/file.npz | .mtx | .mtx.gz | .tsr      a file\n"
      "  embedded:karate                               a data set inside the program\n"
      "  'generate:rmat?scale=17&edges=2e6&seed=1'     a random graph\n"
      "  twin:reddit                                   a random graph of a known size\n",
      exit_code_help());
}

std::string verb_help(const Verb& verb, const CLI::App& app) {
  std::string text = fmt::format("tessera {} - {}\n\nUsage: tessera {} {}\n", verb.name,
                                 verb.summary, verb.name, verb.usage);
  std::vector<std::string> groups;
  for (const CLI::Option* option : app.get_options()) {
    const std::string group = option->get_group();
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  for (const std::string& group : groups) text += describe_group(app, group);

  text += "\nExamples:\n";
  std::istringstream examples(verb.examples);
  for (std::string line; std::getline(examples, line);) text += "  " + line + '\n';
  return text + '\n' + exit_code_help();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace tessera::app
