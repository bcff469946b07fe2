// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/aggregate.hpp"
#include "step/ops/finish.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {

std::int64_t finish_in_aggregate(Program& program, std::span<const Value> kept) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 1; i < nodes.size();) {
    Node& sums = nodes[i - 1];
    Node& end = nodes[i];
    const auto* aggregate = sums.as<Aggregate>();
    const auto* finish = end.as<Finish>();
    const bool merges = aggregate != nullptr && finish != nullptr && !aggregate->finishes() &&
                        end.in[0] == sums.out[0] && finish->finishing().shows_derivative() &&
                        has_one_reader(program, sums.out[0], kept);
    if (!merges) {
      ++i;
      continue;
    }
    sums.op = std::make_shared<Aggregate>(*aggregate, finish->finishing());
    sums.in[1] = end.in[1];
    sums.out[0] = end.out[0];
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
