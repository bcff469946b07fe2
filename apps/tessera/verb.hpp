// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "exit_code.hpp"
#include "files.hpp"
#include "session.hpp"

namespace tessera::app {

/// What a verb does with the options that were parsed into it.
struct Action {
  std::function<ExitCode(Session&)> run;
  /// The files it reads and writes, apart from the report of --json.
  std::function<std::vector<FileUse>()> files = [] { return std::vector<FileUse>(); };
};

/// One thing the program can do. A new verb is a file that defines one of these and a line in
/// verb.cpp.
struct Verb {
  const char* name;
  const char* summary;   ///< one line, lower case, no full stop
  const char* usage;     ///< what follows "tessera NAME"
  const char* examples;  ///< full command lines, one per line
  /// Adds the verb's own options and returns what to do once they are parsed.
  Action (*setup)(Arguments& app);
};

extern const Verb info_verb;
extern const Verb generate_verb;
extern const Verb convert_verb;
extern const Verb reorder_verb;
extern const Verb prune_verb;
extern const Verb partition_verb;
extern const Verb tiles_verb;
extern const Verb train_verb;
extern const Verb tune_verb;
extern const Verb predict_verb;
extern const Verb plan_verb;
extern const Verb bench_verb;
extern const Verb calibrate_verb;
extern const Verb check_verb;
extern const Verb doctor_verb;
extern const Verb completion_verb;
extern const Verb man_verb;

/// All of them, in the order that help lists them.
std::span<const Verb* const> verbs();

/// Throws `invalid_argument`, with the nearest name there is, where no verb is called so.
const Verb& find_verb(const std::string& name);

}  // namespace tessera::app
