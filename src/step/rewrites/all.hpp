// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/step/program.hpp"

/// A file for each.
namespace tessera::step {

std::int64_t merge_finishes(Program& program, std::span<const Value> kept);
std::int64_t update_with_aggregate(Program& program, std::span<const Value> kept);
std::int64_t sum_in_aggregate(Program& program, std::span<const Value> kept);
std::int64_t finish_in_aggregate(Program& program, std::span<const Value> kept);
std::int64_t bias_in_linear(Program& program, std::span<const Value> kept);
std::int64_t scale_in_sum(Program& program, std::span<const Value> kept);
std::int64_t sum_in_linear(Program& program, std::span<const Value> kept);
std::int64_t sum_in_linear_gradient(Program& program, std::span<const Value> kept);

/// Whether a node may take in the one reader of a value: nothing else reads it.
bool has_one_reader(const Program& program, Value value, std::span<const Value> kept);

}  // namespace tessera::step
