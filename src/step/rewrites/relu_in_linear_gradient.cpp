// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/finish.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {

std::int64_t relu_in_linear_gradient(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto* op = nodes[i].as<LinearGradient>();
    if (op == nullptr || op->form().adds || op->form().reads_norm || op->form().is_normed) continue;
    const auto reader = only_reader(program, nodes[i].out[LinearGradient::grad_x], around);
    if (!reader) continue;
    const Node& end = nodes[*reader];
    const auto* finish = end.as<FinishGradient>();
    // The product reads what ReLU put out, so it sees where that was 0.
    if (finish == nullptr || finish->finishing().kind.activation != ops::Activation::relu ||
        finish->finishing().dropout > 0 ||
        end.in[FinishGradient::from] != nodes[i].in[LinearGradient::x]) {
      continue;
    }
    LinearGradient::Form form = op->form();
    form.before_relu = true;
    nodes[i].op = std::make_shared<LinearGradient>(form);
    nodes[i].out[LinearGradient::grad_x] = end.out[FinishGradient::before];
    nodes[i].out[LinearGradient::x_sums] = end.out[FinishGradient::grad_bias];
    erase(program, *reader);
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
