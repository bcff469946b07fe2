// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "verb.hpp"

/// The options of every verb as data: what help, completion, the manual page and suggestions are
/// made from.
namespace tessera::app {

struct OptionEntry {
  std::vector<std::string> names;  ///< "-o", "--output"; none where the place alone says it
  std::string placeholder;         ///< "FILE"; empty for a flag
  std::string description;
  std::vector<std::string> choices;  ///< the words it takes, where they are few
  std::string group;

  bool takes_value() const { return !placeholder.empty(); }
  bool takes_file() const { return placeholder == "FILE" || placeholder == "FILE|-"; }
};

/// The options of one verb, in the order of its help.
std::vector<OptionEntry> entries_of(const CLI::App& app);

struct VerbEntry {
  const Verb* verb;
  std::vector<OptionEntry> options;
};

/// All verbs with all their options.
std::vector<VerbEntry> command_table();

/// Every spelling of every option, for suggestions.
std::vector<std::string> option_names(const CLI::App& app);

/// The options of a verb and those of all verbs, ready to parse.
Action set_up(const Verb& verb, CLI::App& app, CommonOptions& common);

}  // namespace tessera::app
