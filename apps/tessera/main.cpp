// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <string>

#include <fmt/format.h>

#include "arguments.hpp"
#include "colour.hpp"
#include "command_table.hpp"
#include "exit_code.hpp"
#include "help.hpp"
#include "interrupt.hpp"
#include "option_errors.hpp"
#include "output.hpp"
#include "tessera/core/version.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

ExitCode run_verb(const Verb& verb, int argc, char** argv) {
  Arguments app(verb.summary, verb.name);
  CommonOptions common;
  const Action action = set_up(verb, app, common);
  if (!app.parse(argc, argv)) {
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
  // A reader that goes away, or a limit on the size of files, is an error of writing, not a reason
  // to vanish silently.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::string program = "tessera";
  try {
    program = speaker(argc, argv);
    return static_cast<int>(route(argc, argv));
  } catch (...) {
    return static_cast<int>(report_failure(program));
  }
}
