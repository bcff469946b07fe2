// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/device_traits.hpp"
#include "ops/attention/kernel.hpp"

/// What the CUDA kernels of attention should take. Costs need no CUDA.
namespace tessera::ops {

// By rows.

double predict_rows_attention_us(const AttentionProblem& problem, const DeviceTraits& traits);
double predict_rows_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);

// GATv2 by pairs of rows.

double predict_pairs_attention_us(const AttentionProblem& problem, const DeviceTraits& traits);
double predict_pairs_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);

// On windows.

/// Of 16 rows: the forward pass, and both sweeps back.
double predict_short_attention_us(const AttentionProblem& problem, const DeviceTraits& traits);
double predict_short_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);

/// The kinds of kernels over windows of 64 rows (tall/launch.hpp). Each form, precision and width
/// of heads has one.
enum class TallKind { dots, scaled_gat, packed_gat, factored_gat };
TallKind tall_kind(const AttentionOptions& options);

double predict_tall_attention_us(const AttentionProblem& problem, const DeviceTraits& traits);
double predict_tall_backward_us(const AttentionProblem& problem, const DeviceTraits& traits);

// In stages.

/// Why dot products cannot, or should not, be computed in stages.
std::string why_not_staged(const AttentionProblem& problem);

/// What dot products in stages should take, each by the kernel that is fastest for it.
double predict_staged_us(const AttentionProblem& problem);

/// What copies of 16-bit operands in fp32, and back, should take.
double predict_widening_us(const AttentionProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
