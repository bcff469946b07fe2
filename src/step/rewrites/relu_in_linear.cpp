// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/finish.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/join_next.hpp"
#include "tessera/ops/linear.hpp"

namespace tessera::step {

std::int64_t relu_in_linear(Program& program, const Surroundings& around) {
  return join_next<Linear, Finish>(program, around, [&](Node& product, const Node& end) {
    const Finishing& finishing = end.as<Finish>()->finishing();
    const Shape& x = program.info(product.in[Linear::x]).shape;
    const Shape& weight = program.info(product.in[Linear::weight]).shape;
    const bool is_relu =
        finishing.kind.activation == ops::Activation::relu && finishing.dropout == 0;
    if (!is_relu || !product.as<Linear>()->is_plain() || !product.in[Linear::bias].absent() ||
        !ops::linear_activates(around.placement.device(), storage_of(around.placement.precision),
                               x.rows, weight.cols, weight.rows)) {
      return false;
    }
    product.op = std::make_shared<Linear>(Linear::Form{.relu = true});
    product.in[Linear::bias] = end.in[1];
    return true;
  });
}

}  // namespace tessera::step
