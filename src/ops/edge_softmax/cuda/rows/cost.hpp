// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/device_traits.hpp"
#include "ops/edge_softmax/kernel.hpp"

namespace tessera::ops {

/// Heads that lanes of a team take side by side: a power of two, at most 32.
std::int64_t padded_heads(const EdgeSoftmaxProblem& problem);

/// A team takes so many edges of one row: no more steps than others hide. Longer rows are cut.
EdgeOffset longest_softmax_row(const EdgeSoftmaxProblem& problem, int team);

/// What teams of `team` lanes per row should take forward.
double predict_softmax_us(const EdgeSoftmaxProblem& problem, int team, const DeviceTraits& traits);

}  // namespace tessera::ops
