// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "step/rewrites/all.hpp"
#include "tessera/detail/ops/call_chain.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {
namespace {

/// Matrices of a shape that was not noted may be small.
bool may_be_chained(const Program& program, const Node& node) {
  return node.op->joins_chain() && std::ranges::all_of(node.in, [&](Value value) {
           if (value.absent()) return true;
           const Shape& shape = program.info(value).shape;
           return shape.rows <= ops::most_chain_rows && shape.cols <= ops::most_chain_columns;
         });
}

}  // namespace

/// Fires for each node that can be in one launch with the one before it.
std::int64_t small_ops_in_one_launch(Program& program, const Surroundings& around) {
  if (around.placement.device().kind == DeviceKind::cpu) return 0;
  std::int64_t fired = 0;
  bool follows = false;
  for (Node& node : program.nodes()) {
    const bool was_chained = std::exchange(node.is_chained, may_be_chained(program, node));
    if (node.is_chained && follows && !was_chained) ++fired;
    follows = node.is_chained;
  }
  return fired;
}

}  // namespace tessera::step
