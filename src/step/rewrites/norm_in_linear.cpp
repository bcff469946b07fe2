// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/batch_norm.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"
#include "tessera/ops/linear.hpp"

namespace tessera::step {

// What is normalised then stands for nothing but a step of the gradient.
std::int64_t norm_in_linear(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (const Node& norm : nodes) {
    const auto* op = norm.as<BatchNorm>();
    if (op == nullptr || !op->fits_columns()) continue;
    const auto reader = only_reader(program, norm.out[BatchNorm::y], around);
    if (!reader) continue;
    Node& product = nodes[*reader];
    const auto* linear = product.as<Linear>();
    if (linear == nullptr || product.in[Linear::x] != norm.out[BatchNorm::y]) continue;
    const Shape& x = program.info(norm.in[BatchNorm::x]).shape;
    const Shape& weight = program.info(product.in[Linear::weight]).shape;
    Linear::Form form = linear->form();
    if (form.adds || form.relu || form.is_wide || form.reads_norm ||
        !ops::linear_fuses(around.placement.device(), storage_of(around.placement.precision),
                           x.rows, weight.cols, weight.rows)) {
      continue;
    }
    form.reads_norm = true;
    form.norm_relu = op->finishing().kind.activation == ops::Activation::relu;
    product.op = std::make_shared<Linear>(form);
    product.in[Linear::source] = norm.in[BatchNorm::x];
    product.in[Linear::columns] = norm.out[BatchNorm::columns];
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
