// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"
#include "verb.hpp"

/// The options of every verb as data: what help, completion and the manual page are made from.
namespace tessera::app {

struct OptionEntry {
  std::vector<std::string> names;  ///< "-o", "--output"; none where the place alone says it
  std::string placeholder;         ///< "FILE"; empty for a flag
  std::string description;
  std::vector<std::string> choices;  ///< the words it takes, where they are few
  std::string group;

  bool takes_value() const { return !placeholder.empty(); }
  bool takes_file() const {
    return placeholder == "FILE" || placeholder == "FILE|-" || placeholder == "FOLDER";
  }
};

/// The options of one verb, in the order of its help.
std::vector<OptionEntry> entries_of(const Arguments& app);

struct VerbEntry {
  const Verb* verb;
  std::vector<OptionEntry> options;
};

/// All verbs with all their options.
std::vector<VerbEntry> command_table();

/// The options of a verb and those of all verbs, ready to parse.
Action set_up(const Verb& verb, Arguments& app, CommonOptions& common);

}  // namespace tessera::app
