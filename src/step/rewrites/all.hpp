// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tessera/step/rewrites.hpp"

/// What `rewrites()` lists, and what they ask of a program.
namespace tessera::step {

std::int64_t sums_first(Program& program, const Surroundings& around);
std::int64_t merge_finishes(Program& program, const Surroundings& around);
std::int64_t bias_in_norm(Program& program, const Surroundings& around);
std::int64_t finish_in_norm(Program& program, const Surroundings& around);
std::int64_t update_with_aggregate(Program& program, const Surroundings& around);
std::int64_t scale_before_rounding(Program& program, const Surroundings& around);
std::int64_t sum_in_aggregate(Program& program, const Surroundings& around);
std::int64_t finish_in_aggregate(Program& program, const Surroundings& around);
std::int64_t finish_in_sparse_linear(Program& program, const Surroundings& around);
std::int64_t relu_in_linear(Program& program, const Surroundings& around);
std::int64_t bias_in_linear(Program& program, const Surroundings& around);
std::int64_t sum_in_linear(Program& program, const Surroundings& around);
std::int64_t moments_in_linear(Program& program, const Surroundings& around);
std::int64_t norm_in_linear(Program& program, const Surroundings& around);
std::int64_t scale_in_sum(Program& program, const Surroundings& around);
std::int64_t sum_in_linear_gradient(Program& program, const Surroundings& around);
std::int64_t gradient_as_factors(Program& program, const Surroundings& around);
std::int64_t relu_in_linear_gradient(Program& program, const Surroundings& around);
std::int64_t norm_gradient_in_linear(Program& program, const Surroundings& around);
std::int64_t norm_sums_in_linear(Program& program, const Surroundings& around);
std::int64_t bias_gradient_in_loss(Program& program, const Surroundings& around);
std::int64_t small_ops_in_one_launch(Program& program, const Surroundings& around);

/// Whether a node may take in the one reader of a value: nothing else reads it.
bool has_one_reader(const Program& program, Value value, const Surroundings& around);
/// The node that reads such a value, by its number.
std::optional<std::size_t> only_reader(const Program& program, Value value,
                                       const Surroundings& around);
/// Whether something reads a value, or will after the run.
bool is_read(const Program& program, Value value, const Surroundings& around);
/// Whether that is so of a product of `x` and a weight, by the shapes that were noted.
bool holds(bool (*test)(Device, ElementType, std::int64_t rows, std::int64_t in, std::int64_t out),
           const Program& program, const Surroundings& around, Value x, Value weight);
void erase(Program& program, std::size_t node);

}  // namespace tessera::step
