// SPDX-License-Identifier: Apache-2.0
#include "step/ops/aggregate.hpp"
#include "step/rewrites/join_sum.hpp"

namespace tessera::step {

std::int64_t sum_in_aggregate(Program& program, const Surroundings& around) {
  return join_sums<Aggregate>(program, around, Aggregate::residual, [](const Node& node) {
    return !node.as<Aggregate>()->finishes() && node.in[Aggregate::residual].absent();
  });
}

}  // namespace tessera::step
