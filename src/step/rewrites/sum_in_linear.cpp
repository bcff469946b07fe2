// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/linear.hpp"
#include "step/rewrites/join_sum.hpp"

namespace tessera::step {

// A bias would be added before the matrix: no op has both.
std::int64_t sum_in_linear(Program& program, const Surroundings& around) {
  return join_sums<Linear>(program, around, Linear::added, [](Node& node) {
    if (!node.as<Linear>()->is_plain() || !node.in[Linear::bias].absent()) return false;
    node.op = std::make_shared<Linear>(Linear::Form{.adds = true});
    return true;
  });
}

std::int64_t sum_in_linear_gradient(Program& program, const Surroundings& around) {
  return join_sums<LinearGradient>(program, around, LinearGradient::added, [](Node& node) {
    LinearGradient::Form form = node.as<LinearGradient>()->form();
    if (form.adds || form.reads_norm) return false;
    form.adds = true;
    node.op = std::make_shared<LinearGradient>(form);
    return true;
  });
}

}  // namespace tessera::step
