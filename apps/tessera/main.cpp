// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <regex>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "colour.hpp"
#include "command_table.hpp"
#include "exit_code.hpp"
#include "help.hpp"
#include "interrupt.hpp"
#include "option_errors.hpp"
#include "output.hpp"
#include "suggest.hpp"
#include "tessera/core/version.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

// "--data: 1 required SOURCE missing" as "--data needs a value: --data SOURCE", and the like.
std::string in_plain_words(const std::string& problem) {
  static const std::regex twice("(-[^ :]*): At Most 1 required but received .*");
  static const std::regex missing("(-[^ :]*): 1 required ([^ :]+)[^ ]* missing");
  std::smatch parts;
  if (std::regex_match(problem, parts, twice)) return parts[1].str() + " was given more than once";
  if (!std::regex_match(problem, parts, missing)) return problem;
  return fmt::format("{0} needs a value: {0} {1}", parts[1].str(), parts[2].str());
}

// False when help was asked for and nothing is to be run.
bool parse(CLI::App& app, const Verb& verb, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ExtrasError&) {
    const std::string extra = app.remaining().front();
    const std::string near_name = suggestion(extra.substr(0, extra.find('=')), option_names(app));
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} '{}'", extra[0] == '-' ? "unknown option" : "unexpected argument", extra),
        "", near_name.empty() ? fmt::format("see 'tessera help {}'", verb.name) : near_name);
  } catch (const CLI::ParseError& error) {
    const std::string problem = in_plain_words(error.what());
    const bool says_how = problem.find("; use ") != std::string::npos;
    throw Error(ErrorCode::invalid_argument, problem, "",
                says_how ? "" : fmt::format("see 'tessera help {}'", verb.name));
  }
}

ExitCode run_verb(const Verb& verb, int argc, char** argv) {
  CLI::App app(verb.summary, verb.name);
  CommonOptions common;
  const Action action = set_up(verb, app, common);
  if (!parse(app, verb, argc, argv)) {
    write_stdout(verb_help(verb, app));
    return ExitCode::ok;
  }
  set_colour_mode(common.color);
  std::vector<FileUse> files = action.files();
  files.push_back({"--json", common.json, FileRole::report});
  check_files(files, common.force);
  Session session(common);
  try {
    return action.run(session);
  } catch (const Error& error) {
    throw naming_option(app, error);
  }
}

ExitCode show_help(int argc, char** argv) {
  if (argc < 1) {
    write_stdout(program_help());
    return ExitCode::ok;
  }
  std::string verb_name = argv[0];
  std::string help_flag = "--help";
  char* arguments[] = {verb_name.data(), help_flag.data()};
  return run_verb(find_verb(verb_name), 2, arguments);
}

ExitCode route(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "--help";
  if (first == "--help" || first == "-h") return show_help(0, nullptr);
  if (first == "help") return show_help(argc - 2, argv + 2);
  if (first == "--version") {
    write_stdout(fmt::format("tessera {}\n", version()));
    return ExitCode::ok;
  }
  return run_verb(find_verb(first), argc - 1, argv + 1);
}

// "tessera info" once the verb is known to be one, so that errors say who speaks.
std::string speaker(int argc, char** argv) {
  for (const Verb* verb : verbs()) {
    if (argc > 1 && argv[1] == std::string(verb->name)) return std::string("tessera ") + argv[1];
  }
  return "tessera";
}

}  // namespace
}  // namespace tessera::app

int main(int argc, char** argv) {
  using namespace tessera::app;
  end_on_signals();
  guard_standard_streams();
  // A reader that goes away is an error of writing, not a reason to vanish silently.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return static_cast<int>(route(argc, argv));
  } catch (...) {
    return static_cast<int>(report_failure(speaker(argc, argv)));
  }
}
