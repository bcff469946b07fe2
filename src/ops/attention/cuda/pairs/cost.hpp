// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/device_traits.hpp"
#include "ops/attention/kernel.hpp"

namespace tessera::ops {

/// Which of `pair_widths` the heads have.
std::optional<std::size_t> pair_width_index(const AttentionOptions& options);
/// Rows that a warp takes at once: two, or four where most have no more than a few edges.
int rows_of_warp(const AttentionProblem& problem);

/// Times of GATv2 by pairs of rows.
double predict_pairs_attention_us(const AttentionProblem& problem, const DeviceTraits& traits);
double predict_pairs_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
