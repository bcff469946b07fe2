// SPDX-License-Identifier: Apache-2.0
#include "step/ops/batch_norm.hpp"
#include "step/ops/finish.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"
#include "tessera/ops/gradient_factors.hpp"

namespace tessera::step {
namespace {

/// Where a node that reads a gradient takes factors in its place.
struct Places {
  std::size_t gradient, left, right;
};

std::optional<Places> places_of(const Node& reader) {
  if (reader.as<BatchNormGradient>() != nullptr) {
    using Gradient = BatchNormGradient;
    return Places{Gradient::gradient, Gradient::left, Gradient::right};
  }
  if (const auto* finish = reader.as<FinishGradient>();
      finish != nullptr && !finish->finishing().is_linear()) {
    return Places{FinishGradient::gradient, FinishGradient::left, FinishGradient::right};
  }
  return {};
}

}  // namespace

std::int64_t gradient_as_factors(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (const Node& product : nodes) {
    const auto* op = product.as<LinearGradient>();
    if (op == nullptr || op->form().adds) continue;
    const Value gradient = product.out[LinearGradient::grad_x];
    const auto index = only_reader(program, gradient, around);
    if (!index) continue;
    Node& reader = nodes[*index];
    const auto places = places_of(reader);
    // Rows are those of x, and there are as many factors as the product has columns.
    const Value x = product.in[op->form().reads_norm ? LinearGradient::source : LinearGradient::x];
    const Value weight = product.in[LinearGradient::weight];
    if (!places || reader.in[places->gradient] != gradient ||
        !ops::pays_as_factors(program.info(x).shape.rows, program.info(weight).shape.rows)) {
      continue;
    }
    reader.in[places->gradient] = {};
    reader.in[places->left] = product.in[LinearGradient::grad_y];
    reader.in[places->right] = weight;
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
