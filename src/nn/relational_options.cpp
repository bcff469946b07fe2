// SPDX-License-Identifier: Apache-2.0
#include "nn/relational_options.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::nn {

std::int64_t checked_numbers(std::int64_t in, std::int64_t out, std::int64_t relations,
                             const char* layer) {
  if (in < 1 || out < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} x {} features", in, out), layer,
                "give at least one of each");
  }
  if (relations < 0) {
    throw Error(ErrorCode::invalid_argument, "a negative number of relations", layer,
                "count them from 0");
  }
  return in * out;
}

}  // namespace tessera::nn
