// SPDX-License-Identifier: Apache-2.0
#include "command_table.hpp"

#include <fmt/format.h>

#include "options.hpp"

namespace tessera::app {
namespace {

OptionEntry entry_of(const Option& option) {
  OptionEntry entry{option.names(), option.placeholder(), option.description(), option.choices(),
                    option.group()};
  if (const std::string fallback = option.default_text(); !fallback.empty()) {
    entry.description += fmt::format(" (default {})", fallback);
  }
  return entry;
}

}  // namespace

std::vector<OptionEntry> entries_of(const Arguments& app) {
  std::vector<OptionEntry> entries;
  for (const auto& option : app.options()) entries.push_back(entry_of(*option));
  return entries;
}

std::vector<VerbEntry> command_table() {
  std::vector<VerbEntry> table;
  for (const Verb* verb : verbs()) {
    Arguments app(verb->summary, verb->name);
    CommonOptions common;
    set_up(*verb, app, common);
    table.push_back({verb, entries_of(app)});
  }
  return table;
}

Action set_up(const Verb& verb, Arguments& app, CommonOptions& common) {
  Action action = verb.setup(app);
  add_common_options(app, common);
  guard_values(app);
  return action;
}

}  // namespace tessera::app
