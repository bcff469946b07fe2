// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "ops/sddmm/kernel.hpp"

/// What the kernels on short and on tall windows have in common.
namespace tessera::ops {

/// Bytes of one head of a row.
inline std::int64_t head_bytes(const SddmmProblem& problem) {
  return problem.features / std::max<std::int64_t>(1, problem.heads) *
         static_cast<std::int64_t>(bytes_per_element(problem.precision));
}

/// Why no kernel on tiles takes a problem; empty where one may.
std::string why_not_on_tiles(const SddmmProblem& problem);

}  // namespace tessera::ops
