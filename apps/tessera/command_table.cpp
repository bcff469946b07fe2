// SPDX-License-Identifier: Apache-2.0
#include "command_table.hpp"

#include <sstream>

#include <fmt/format.h>

#include "options.hpp"

namespace tessera::app {
namespace {

/// What stands between braces in the description of a validator.
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open);
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::istringstream words(type.substr(open + 1, close - open - 1));
  for (std::string word; std::getline(words, word, ',');) choices.push_back(word);
  return choices;
}

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  // CLI11 appends what validators say after a colon; the description says it in words.
  const std::string type = option.get_type_name();
  entry.placeholder = type.substr(0, type.find(':'));
  entry.choices = choices_in(type);
  entry.description = option.get_description();
  if (const std::string fallback = option.get_default_str(); !fallback.empty()) {
    entry.description += fmt::format(" (default {})", fallback);
  }
  entry.group = option.get_group();
  return entry;
}

}  // namespace

std::vector<OptionEntry> entries_of(const CLI::App& app) {
  std::vector<OptionEntry> entries;
  for (const CLI::Option* option : app.get_options()) entries.push_back(entry_of(*option));
  return entries;
}

std::vector<VerbEntry> command_table() {
  std::vector<VerbEntry> table;
  for (const Verb* verb : verbs()) {
    CLI::App app(verb->summary, verb->name);
    CommonOptions common;
    set_up(*verb, app, common);
    table.push_back({verb, entries_of(app)});
  }
  return table;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const OptionEntry& entry : entries_of(app)) {
    for (const std::string& name : entry.names) {
      if (name.starts_with("--")) names.push_back(name);
    }
  }
  return names;
}

Action set_up(const Verb& verb, CLI::App& app, CommonOptions& common) {
  app.option_defaults()->group("Options");
  Action action = verb.setup(app);
  add_common_options(app, common);
  guard_values(app);
  return action;
}

}  // namespace tessera::app
