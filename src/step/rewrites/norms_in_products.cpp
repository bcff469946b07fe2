// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/batch_norm.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"
#include "tessera/ops/linear.hpp"
#include "tessera/ops/norm_sums.hpp"

/// Products do parts of the batch norms before and behind them.
namespace tessera::step {
namespace {

/// Whether the gradients of a product come from that of a batch norm in one pass.
bool takes_gradient(const Program& program, const Node& product, const Node& norm,
                    const Surroundings& around) {
  const LinearGradient::Form& form = product.as<LinearGradient>()->form();
  if (form.adds || form.before_relu || form.is_normed ||
      is_read(program, product.out[LinearGradient::grad_bias], around)) {
    return false;
  }
  const Value x = norm.in[BatchNormGradient::x], weight = product.in[LinearGradient::weight];
  if (is_read(program, product.out[LinearGradient::grad_x], around)) {
    return holds(ops::linear_gradient_fuses, program, around, x, weight);
  }
  return norm.in[BatchNormGradient::left].absent() && !form.reads_norm &&
         holds(ops::linear_weight_gradient_fuses, program, around, x, weight);
}

/// Whether a product's gradient is what a batch norm's gradient begins with, as a matrix or as
/// factors that the product does not write.
bool leads_to(const Node& product, const Node& norm) {
  if (norm.in[BatchNormGradient::left].absent()) {
    return norm.in[BatchNormGradient::gradient] == product.out[LinearGradient::grad_x];
  }
  return norm.in[BatchNormGradient::left] == product.in[LinearGradient::grad_y] &&
         norm.in[BatchNormGradient::right] == product.in[LinearGradient::weight];
}

bool finds_sums(const Program& program, const Node& product, const Node& norm,
                const Surroundings& around) {
  const LinearGradient::Form& form = product.as<LinearGradient>()->form();
  if (form.is_normed) return norm.in[BatchNormGradient::left].absent();
  return !norm.in[BatchNormGradient::left].absent() &&
         holds(ops::linear_finds_norm_sums, program, around, norm.in[BatchNormGradient::x],
               product.in[LinearGradient::weight]);
}

}  // namespace

std::int64_t moments_in_linear(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (Node& norm : nodes) {
    const auto* op = norm.as<BatchNorm>();
    if (op == nullptr || !op->kind().training || !norm.in[BatchNorm::moments].absent()) continue;
    for (Node& product : nodes) {
      const auto* linear = product.as<Linear>();
      if (linear == nullptr || product.out[Linear::y] != norm.in[BatchNorm::x]) continue;
      if (!linear->is_plain() || !holds(ops::linear_fuses, program, around, product.in[Linear::x],
                                        product.in[Linear::weight])) {
        continue;
      }
      product.op = std::make_shared<Linear>(Linear::Form{.finds_moments = true});
      norm.in[BatchNorm::moments] = product.out[Linear::moments];
      ++fired;
    }
  }
  return fired;
}

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
    Linear::Form form = linear->form();
    if (form.adds || form.relu || form.is_wide || form.reads_norm ||
        !holds(ops::linear_fuses, program, around, norm.in[BatchNorm::x],
               product.in[Linear::weight])) {
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
        !takes_gradient(program, product, norm, around)) {
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

std::int64_t norm_sums_in_linear(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (const Node& product : nodes) {
    const auto* op = product.as<LinearGradient>();
    if (op == nullptr || !op->form().reads_norm) continue;
    for (Node& norm : nodes) {
      const auto* gradient = norm.as<BatchNormGradient>();
      if (gradient == nullptr || !norm.in[BatchNormGradient::sums].absent() ||
          norm.in[BatchNormGradient::x] != product.in[LinearGradient::source] ||
          !gradient->forward().fits_columns() || !leads_to(product, norm) ||
          !finds_sums(program, product, norm, around)) {
        continue;
      }
      norm.in[BatchNormGradient::sums] = product.out[LinearGradient::norm_sums];
      ++fired;
    }
  }
  return fired;
}

}  // namespace tessera::step
