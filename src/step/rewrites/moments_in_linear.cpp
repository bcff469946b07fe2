// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/batch_norm.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"
#include "tessera/ops/linear.hpp"

namespace tessera::step {

std::int64_t moments_in_linear(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (Node& norm : nodes) {
    const auto* op = norm.as<BatchNorm>();
    if (op == nullptr || !op->kind().training || !norm.in[BatchNorm::moments].absent()) continue;
    for (Node& product : nodes) {
      const auto* linear = product.as<Linear>();
      if (linear == nullptr || product.out[Linear::y] != norm.in[BatchNorm::x]) continue;
      const Shape& x = program.info(product.in[Linear::x]).shape;
      const Shape& weight = program.info(product.in[Linear::weight]).shape;
      if (!linear->is_plain() ||
          !ops::linear_fuses(around.placement.device(), storage_of(around.placement.precision),
                             x.rows, weight.cols, weight.rows)) {
        continue;
      }
      product.op = std::make_shared<Linear>(Linear::Form{.finds_moments = true});
      norm.in[BatchNorm::moments] = product.out[Linear::moments];
      ++fired;
    }
  }
  return fired;
}

}  // namespace tessera::step
