// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/combine.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {

std::int64_t scale_in_sum(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::size_t operand : {std::size_t{0}, std::size_t{1}}) {
      const auto* sum = nodes[i].as<Combine>();
      if (sum == nullptr) break;
      const Value scaled = nodes[i].in[operand];
      const Node* const producer = program.producer(scaled);
      const auto* scale = producer == nullptr ? nullptr : producer->as<Scale>();
      if (scale == nullptr || !has_one_reader(program, scaled, around)) continue;
      const double alpha = sum->alpha() * (operand == 0 ? scale->alpha() : 1);
      const double beta = sum->beta() * (operand == 1 ? scale->alpha() : 1);
      nodes[i].in[operand] = producer->in[0];
      nodes[i].op = std::make_shared<Combine>(alpha, beta);
      nodes.erase(nodes.begin() + (producer - nodes.data()));
      --i;
      ++fired;
    }
  }
  return fired;
}

}  // namespace tessera::step
