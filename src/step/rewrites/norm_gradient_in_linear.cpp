// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/batch_norm.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"
#include "tessera/ops/linear.hpp"

namespace tessera::step {
namespace {

/// Whether the gradients of a product come from that of a batch norm in one pass.
bool fits(const Program& program, const Node& product, const Node& norm,
          const Surroundings& around) {
  const LinearGradient::Form& form = product.as<LinearGradient>()->form();
  if (form.adds || form.before_relu || form.is_normed ||
      is_read(program, product.out[LinearGradient::grad_bias], around)) {
    return false;
  }
  const Shape& x = program.info(norm.in[BatchNormGradient::x]).shape;
  const Shape& weight = program.info(product.in[LinearGradient::weight]).shape;
  const Device device = around.placement.device();
  const ElementType type = storage_of(around.placement.precision);
  if (is_read(program, product.out[LinearGradient::grad_x], around)) {
    return ops::linear_gradient_fuses(device, type, x.rows, weight.cols, weight.rows);
  }
  return norm.in[BatchNormGradient::left].absent() && !form.reads_norm &&
         ops::linear_weight_gradient_fuses(device, type, x.rows, weight.cols, weight.rows);
}

}  // namespace

std::int64_t norm_gradient_in_linear(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (Node& norm : nodes) {
    const auto* op = norm.as<BatchNormGradient>();
    if (op == nullptr || !op->forward().fits_columns()) continue;
    const Value gradient = norm.out[BatchNormGradient::grad_x];
    const auto reader = only_reader(program, gradient, around);
    if (!reader) continue;
    Node& product = nodes[*reader];
    if (product.as<LinearGradient>() == nullptr || product.in[LinearGradient::grad_y] != gradient ||
        !fits(program, product, norm, around)) {
      continue;
    }
    LinearGradient::Form form = product.as<LinearGradient>()->form();
    form.is_normed = true;
    form.normed_relu = op->forward().finishing().kind.activation == ops::Activation::relu;
    product.op = std::make_shared<LinearGradient>(form);
    product.in[LinearGradient::normed_y] = norm.in[BatchNormGradient::x];
    product.in[LinearGradient::normed_columns] = norm.out[BatchNormGradient::grad_columns];
    product.in[LinearGradient::normed_grad] = norm.in[BatchNormGradient::gradient];
    product.in[LinearGradient::left] = norm.in[BatchNormGradient::left];
    product.in[LinearGradient::right] = norm.in[BatchNormGradient::right];
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
