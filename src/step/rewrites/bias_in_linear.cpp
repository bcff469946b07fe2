// SPDX-License-Identifier: Apache-2.0
#include "step/ops/finish.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/join_next.hpp"

namespace tessera::step {

std::int64_t bias_in_linear(Program& program, const Surroundings& around) {
  return join_next<Linear, Finish>(program, around, [](Node& product, const Node& end) {
    if (!product.as<Linear>()->is_plain() || !product.in[Linear::bias].absent() ||
        !end.as<Finish>()->finishing().is_linear()) {
      return false;
    }
    product.in[Linear::bias] = end.in[1];
    return true;
  });
}

}  // namespace tessera::step
