// SPDX-License-Identifier: Apache-2.0
#include "step/ops/batch_norm.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"
#include "tessera/ops/norm_sums.hpp"

namespace tessera::step {
namespace {

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
  const Shape& x = program.info(norm.in[BatchNormGradient::x]).shape;
  const Shape& weight = program.info(product.in[LinearGradient::weight]).shape;
  return !norm.in[BatchNormGradient::left].absent() &&
         ops::linear_finds_norm_sums(around.placement.device(),
                                     storage_of(around.placement.precision), x.rows, weight.cols,
                                     weight.rows);
}

}  // namespace

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
