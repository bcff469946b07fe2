// SPDX-License-Identifier: Apache-2.0
#include "help.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "command_table.hpp"
#include "table.hpp"

namespace tessera::app {
namespace {

constexpr std::size_t description_column = 27;

// "-o, --output FILE"
std::string spelling(const OptionEntry& entry) {
  std::string names;
  for (const std::string& name : entry.names) names += (names.empty() ? "" : ", ") + name;
  const bool has_short = names.size() > 1 && names[1] != '-';
  if (!has_short) names = "    " + names;
  return entry.takes_value() ? names + " " + entry.placeholder : names;
}

std::string describe(const OptionEntry& entry) {
  std::string left = "  " + spelling(entry);
  if (left.size() + 2 > description_column) {
    left += '\n' + std::string(description_column, ' ');
  } else {
    left.resize(description_column, ' ');
  }
  return left + wrapped(entry.description, description_column) + '\n';
}

std::string describe_group(const std::vector<OptionEntry>& entries, const std::string& group) {
  std::string text;
  for (const OptionEntry& entry : entries) {
    if (entry.group == group) text += describe(entry);
  }
  return text.empty() ? text : "\n" + group + ":\n" + text;
}

}  // namespace

std::string program_summary() { return "graph neural networks, fast on CPUs and GPUs"; }

std::string data_help() {
  return "  path/to/file                                  edge lists (.csv, .tsv, .txt), .npz, "
         ".mtx,\n"
         "                                                .graphml, METIS, .tsr; texts also "
         "gzipped\n"
         "  path/to/folder                                a data set of OGB or the TU collection\n"
         "  embedded:karate                               a data set inside the program\n"
         "  'generate:rmat?scale=17&edges=2e6&seed=1'     a random graph\n"
         "  twin:reddit                                   a random graph of a known size\n";
}

std::string program_help() {
  Table table("ll");
  for (const Verb* verb : verbs()) table.add({verb->name, verb->summary});
  return fmt::format(
      "tessera - {}\n\n"
      "Usage: tessera VERB [options]\n\nVerbs:\n{}\n"
      "'tessera help VERB' or 'tessera VERB --help' explains one, with examples.\n"
      "'tessera --version' prints the release.\n"
      "Start with: tessera train embedded:citation\n\n"
      "Data is named the same way everywhere:\n{}\n{}",
      program_summary(), table.text(), data_help(), exit_code_help());
}

std::string verb_help(const Verb& verb, const Arguments& app) {
  std::string text = fmt::format("tessera {} - {}\n\nUsage: tessera {} {}\n", verb.name,
                                 verb.summary, verb.name, verb.usage);
  const std::vector<OptionEntry> entries = entries_of(app);
  std::vector<std::string> groups;
  for (const OptionEntry& entry : entries) {
    if (std::find(groups.begin(), groups.end(), entry.group) == groups.end()) {
      groups.push_back(entry.group);
    }
  }
  for (const std::string& group : groups) text += describe_group(entries, group);

  text += "\nExamples:\n";
  std::istringstream examples(verb.examples);
  for (std::string line; std::getline(examples, line);) text += "  " + line + '\n';
  return text + '\n' + exit_code_help();
}

}  // namespace tessera::app
