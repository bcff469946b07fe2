// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/core/error.hpp"

namespace tessera::app {

/// What the program tells the shell. Scripts rely on these numbers: they never change meaning.
enum class ExitCode : int {
  ok = 0,
  internal_error = 1,
  usage = 2,
  bad_data = 3,
  io = 4,
  out_of_memory = 5,
  unavailable = 6,
  check_failed = 7,
  interrupted = 130,
};

ExitCode exit_code(ErrorCode code) noexcept;

/// The line about exit codes that every help text ends with.
std::string exit_code_help();

/// To be called while an exception is being handled: prints its one line to stderr, begun with
/// `program` ("tessera info"), and returns the code to exit with.
ExitCode report_failure(const std::string& program) noexcept;

}  // namespace tessera::app
