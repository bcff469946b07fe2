// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/on_tiles.hpp"

namespace tessera::ops {
namespace {

/// The second dimension of a grid.
constexpr std::int64_t max_heads = 65535;

}  // namespace

std::string why_not_on_tiles(const SddmmProblem& problem) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (problem.function != EdgeFunction::dot) return "dot products only";
  if (problem.factor != EdgeFactor::none) return "no scales on tiles";
  if (problem.features == 0) return "no features";
  if (!problem.aligned) return "rows on 16-byte boundaries only";
  if (head_bytes(problem) % 16 != 0) return "heads do not begin on 16-byte boundaries";
  if (problem.heads > max_heads) return "too many heads";
  return {};
}

}  // namespace tessera::ops
