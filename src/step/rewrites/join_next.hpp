// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "step/rewrites/all.hpp"

namespace tessera::step {

/// Joins nodes of type `Next` to the one that computes their first input, of type `First`, where
/// nothing else reads that. `accept(first, next)` says whether they go together, and changes the
/// first node to one that does both; it takes the place of the next. Returns how often.
template <class First, class Next, class Accept>
std::int64_t join_next(Program& program, const Surroundings& around, Accept&& accept) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].as<Next>() == nullptr) continue;
    const Value between = nodes[i].in[0];
    const Node* const producer = program.producer(between);
    if (producer == nullptr || producer->as<First>() == nullptr || producer->out[0] != between ||
        !has_one_reader(program, between, around)) {
      continue;
    }
    Node joined = *producer;
    if (!accept(joined, std::as_const(nodes[i]))) continue;
    joined.out[0] = nodes[i].out[0];
    const auto place = static_cast<std::size_t>(producer - nodes.data());
    nodes[i] = std::move(joined);
    erase(program, place);
    --i;
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
