// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/linear.hpp"
#include "step/rewrites/join_sum.hpp"

namespace tessera::step {
namespace {

constexpr std::size_t bias = 2, added = 3;

}  // namespace

// A bias would be added before the matrix: no op has both.
std::int64_t sum_in_linear(Program& program, std::span<const Value> kept) {
  return join_sums<Linear>(program, kept, added, [](Node& node) {
    if (!node.as<Linear>()->is_plain() || !node.in[bias].absent()) return false;
    node.op = std::make_shared<Linear>(true);
    return true;
  });
}

std::int64_t sum_in_linear_gradient(Program& program, std::span<const Value> kept) {
  return join_sums<LinearGradient>(program, kept, added, [](Node& node) {
    if (!node.as<LinearGradient>()->is_plain()) return false;
    node.op = std::make_shared<LinearGradient>(true);
    return true;
  });
}

}  // namespace tessera::step
