// SPDX-License-Identifier: Apache-2.0
#include "step/ops/aggregate.hpp"
#include "step/rewrites/join_sum.hpp"

namespace tessera::step {

std::int64_t sum_in_aggregate(Program& program, std::span<const Value> kept) {
  constexpr std::size_t residual = 2;
  return join_sums<Aggregate>(program, kept, residual, [](const Node& node) {
    return !node.as<Aggregate>()->finishes() && node.in[residual].absent();
  });
}

}  // namespace tessera::step
