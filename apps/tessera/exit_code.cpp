// SPDX-License-Identifier: Apache-2.0
#include "exit_code.hpp"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "colour.hpp"
#include "interrupt.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::app {

ExitCode exit_code(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return ExitCode::usage;
    case ErrorCode::bad_data: return ExitCode::bad_data;
    case ErrorCode::io: return ExitCode::io;
    case ErrorCode::out_of_memory: return ExitCode::out_of_memory;
    case ErrorCode::unsupported:
    case ErrorCode::backend_unavailable: return ExitCode::unavailable;
    case ErrorCode::internal: return ExitCode::internal_error;
  }
  return ExitCode::internal_error;
}

std::string exit_code_help() {
  return "Exit codes:\n"
         "  0 ok, 1 internal error, 2 usage, 3 bad data, 4 input or output failed, 5 out of "
         "memory,\n"
         "  6 unavailable or unsupported, 7 a check failed, 130 interrupted\n";
}

ExitCode report_failure(const std::string& program) noexcept {
  const auto print_line = [&](const char* kind, const char* what) {
    std::fprintf(stderr, "%s: %s%s\n", program.c_str(), kind, what);
  };
  const auto print = [&](const char* kind, const char* what) {
    try {
      const bool coloured = *kind != '\0' && colour_on(STDERR_FILENO);
      print_line(coloured ? paint(kind, Paint::red).c_str() : kind, printable(what).c_str());
    } catch (const std::bad_alloc&) {
      print_line(kind, "out of memory");
    }
  };
  try {
    throw;
  } catch (const Interrupted& interrupted) {
    print("interrupted; ", interrupted.kept.c_str());
    return ExitCode::interrupted;
  } catch (const Error& error) {
    print("error: ", error.what());
    return exit_code(error.code());
  } catch (const std::bad_alloc&) {
    print("error: ", "out of memory; use a smaller graph or a larger machine");
    return ExitCode::out_of_memory;
  } catch (const std::length_error&) {
    print("error: ", "out of memory: an array would be larger than any can be; use smaller sizes");
    return ExitCode::out_of_memory;
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) {
      print("internal error: ", error.what());
      return ExitCode::internal_error;
    }
    print("error: ",
          "the system makes no further thread; raise the limit on memory (ulimit -v) or on "
          "processes (ulimit -u)");
    return ExitCode::out_of_memory;
  } catch (const std::exception& error) {
    print("internal error: ", error.what());
    return ExitCode::internal_error;
  } catch (...) {
    print("internal error: ", "unknown exception");
    return ExitCode::internal_error;
  }
}

}  // namespace tessera::app
