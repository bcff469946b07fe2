// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "step/ops/loss.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {
namespace {

/// The bias that is added to every row of a value at last, if nothing else reads it: its gradient
/// is the sum of the rows of the value's own.
const Parameter* last_bias(const Program& program, Value value) {
  const Node* const producer = program.producer(value);
  const int input = producer == nullptr ? -1 : producer->op->adds_last();
  if (input < 0) return nullptr;
  const Value bias = producer->in[static_cast<std::size_t>(input)];
  return bias.absent() || program.num_readers(bias) != 1 ? nullptr : program.info(bias).parameter;
}

}  // namespace

std::int64_t bias_gradient_in_loss(Program& program, const Surroundings&) {
  auto& nodes = program.nodes();
  for (Node& loss : nodes) {
    if (loss.as<LossGradient>() == nullptr) continue;
    const Parameter* const bias = last_bias(program, loss.in[0]);
    if (bias == nullptr) return 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      auto& out = nodes[i].out;
      const auto gradient = std::ranges::find_if(
          out, [&](Value value) { return program.info(value).gradient_of == bias; });
      if (gradient == out.end()) continue;
      std::swap(*gradient, loss.out[LossGradient::sums]);
      if (std::ranges::none_of(out, [&](Value value) {
            return program.info(value).gradient_of != nullptr || program.num_readers(value) > 0;
          })) {
        erase(program, i);
      }
      return 1;
    }
  }
  return 0;
}

}  // namespace tessera::step
