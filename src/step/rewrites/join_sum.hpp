// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "step/ops/combine.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {

/// Of sums `a + b`: puts a node that computes one operand, and that alone, in the place of the sum,
/// with the other operand as its input number `added`. `accept` says whether a node of type T takes
/// one, and changes its op to one that adds. Returns how often.
template <class T, class Accept>
std::int64_t join_sums(Program& program, const Surroundings& around, std::size_t added,
                       Accept&& accept) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto* sum = nodes[i].as<Combine>();
    if (sum == nullptr || !sum->is_sum()) continue;
    for (const std::size_t operand : {std::size_t{1}, std::size_t{0}}) {
      const Value value = nodes[i].in[operand];
      const Node* const producer = program.producer(value);
      if (producer == nullptr || producer->as<T>() == nullptr || producer->out[0] != value)
        continue;
      Node joined = *producer;
      if (!has_one_reader(program, value, around) || !accept(joined)) continue;
      const auto place = static_cast<std::ptrdiff_t>(producer - nodes.data());
      joined.in[added] = nodes[i].in[1 - operand];
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
