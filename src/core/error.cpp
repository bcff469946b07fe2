// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/error.hpp"

#include <utility>

#include "tessera/core/printable.hpp"

namespace tessera {
namespace {

std::string one_line(const std::string& problem, const std::string& where, const std::string& fix) {
  std::string line;
  if (!where.empty()) line += where + ": ";
  line += problem;
  if (!fix.empty()) line += "; " + fix;
  return printable(line);
}

}  // namespace

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::bad_data: return "bad_data";
    case ErrorCode::io: return "io";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::backend_unavailable: return "backend_unavailable";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

Error::Error(ErrorCode code, const std::string& problem, std::string where, std::string fix)
    : std::runtime_error(one_line(problem, where, fix)),
      code_(code),
      where_(std::move(where)),
      fix_(std::move(fix)) {}

}  // namespace tessera
