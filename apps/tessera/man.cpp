// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include <fmt/format.h>

#include "command_table.hpp"
#include "help.hpp"
#include "tessera/core/version.hpp"

namespace tessera::app {
namespace {

const std::string common_group = "Common options";

/// Text as roff takes it: hyphens that can be copied, no line that reads as a request.
std::string roff(const std::string& text) {
  std::string result;
  bool line_starts = true;
  for (const char c : text) {
    if (line_starts && (c == '.' || c == '\'')) result += "\\&";
    line_starts = c == '\n';
    if (c == '-') {
      result += "\\-";
    } else if (c == '\\') {
      result += "\\e";
    } else {
      result += c;
    }
  }
  return result;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

std::string described(const OptionEntry& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + bold(name);
  if (option.takes_value()) names += (names.empty() ? "" : " ") + italic(option.placeholder);
  return fmt::format(".TP\n{}\n{}\n", names, roff(option.description));
}

std::string verbatim(const std::string& text) { return ".PP\n.nf\n" + roff(text) + "\n.fi\n"; }

std::string section_of(const VerbEntry& entry) {
  const Verb& verb = *entry.verb;
  std::string text = fmt::format(".SS tessera {}\n{}.\n.PP\n{} {}\n", verb.name, roff(verb.summary),
                                 bold(std::string("tessera ") + verb.name), roff(verb.usage));
  std::string group = "Options";
  for (const OptionEntry& option : entry.options) {
    // One that a verb has in place of the common one is told apart by its placeholder.
    const bool is_common = option.group == common_group && option.placeholder != "LIST";
    if (is_common) continue;
    if (option.group != group && option.group != common_group) {
      group = option.group;
      text += ".PP\n" + italic(group + ":") + "\n";
    }
    text += described(option);
  }
  return text + ".PP\nExamples:\n" + verbatim(verb.examples);
}

std::string manual_page() {
  const std::vector<VerbEntry> table = command_table();
  std::string text = fmt::format(
      ".TH TESSERA 1 \"\" \"tessera {}\" \"User Commands\"\n.SH NAME\ntessera \\- {}\n"
      ".SH SYNOPSIS\n.B tessera\n.I VERB\n[options]\n.SH DESCRIPTION\n"
      "Tessera trains graph neural networks and runs them, on CPUs and on NVIDIA GPUs.\n"
      "Data is named the same way everywhere:\n{}.SH VERBS\n",
      version(), roff(program_summary()), verbatim(data_help()));
  for (const VerbEntry& entry : table) text += section_of(entry);
  text += ".SH OPTIONS OF EVERY VERB\n";
  for (const OptionEntry& option : table.front().options) {
    if (option.group == common_group) text += described(option);
  }
  text +=
      ".SH ENVIRONMENT\n"
      ".TP\n.B NO_COLOR\nIf set, and not empty, there are no colours unless \\-\\-color asks for "
      "them.\n"
      ".TP\n.B TESSERA_PROGRESS_SECONDS\nHow often a line of progress is written where standard "
      "error is no terminal (60).\n"
      ".TP\n.B TESSERA_COMMIT\nWhat bench notes as the commit that it measured.\n"
      ".SH EXIT STATUS\n" +
      verbatim(exit_code_help());
  return text;
}

Action setup(Arguments&) {
  return {[](Session& session) {
    const std::string page = manual_page();
    session.deliver_text(page, {{"verb", "man"}, {"page", page}});
    return ExitCode::ok;
  }};
}

}  // namespace

const Verb man_verb{"man", "print the manual page", "[options]",
                    "tessera man | man -l -\n"
                    "tessera man > ~/.local/share/man/man1/tessera.1",
                    setup};

}  // namespace tessera::app
