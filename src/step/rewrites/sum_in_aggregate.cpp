// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "step/ops/aggregate.hpp"
#include "step/ops/combine.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {

std::int64_t sum_in_aggregate(Program& program, std::span<const Value> kept) {
  constexpr std::size_t residual = 2;
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto* sum = nodes[i].as<Combine>();
    if (sum == nullptr || !sum->is_sum()) continue;
    for (const std::size_t operand : {std::size_t{0}, std::size_t{1}}) {
      const Value sums = nodes[i].in[operand];
      const Node* const producer = program.producer(sums);
      if (producer == nullptr || producer->out[0] != sums) continue;
      const auto* const op = producer->as<Aggregate>();
      if (op == nullptr || op->finishes() || !producer->in[residual].absent() ||
          !has_one_reader(program, sums, kept)) {
        continue;
      }
      const auto place = static_cast<std::ptrdiff_t>(producer - nodes.data());
      Node joined = *producer;
      joined.in[residual] = nodes[i].in[1 - operand];
      joined.out[0] = nodes[i].out[0];
      nodes[i] = std::move(joined);
      nodes.erase(nodes.begin() + place);
      --i;
      ++fired;
      break;
    }
  }
  return fired;
}

}  // namespace tessera::step
