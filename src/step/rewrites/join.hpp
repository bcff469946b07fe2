// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include "step/rewrites/all.hpp"

namespace tessera::step {

/// Makes one node of two: one of type `First`, and one of type `Next` that alone reads what the
/// first one computes, as one of these inputs. `join(first, next, input)` gives the node that does
/// both, which takes the place of the next, or nothing. Returns how often.
template <class First, class Next, class Join>
std::int64_t join_pairs(Program& program, const Surroundings& around,
                        std::initializer_list<std::size_t> inputs, Join&& join) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::size_t input : inputs) {
      if (nodes[i].as<Next>() == nullptr) break;
      const Value between = nodes[i].in[input];
      const Node* const producer = program.producer(between);
      if (producer == nullptr || producer->as<First>() == nullptr || producer->out[0] != between ||
          !has_one_reader(program, between, around)) {
        continue;
      }
      std::optional<Node> joined = join(*producer, std::as_const(nodes[i]), input);
      if (!joined) continue;
      const auto place = static_cast<std::size_t>(producer - nodes.data());
      nodes[i] = *std::move(joined);
      erase(program, place);
      --i;
      ++fired;
    }
  }
  return fired;
}

/// Where the first node takes in the one that reads it: `accept(first, next)` says whether they go
/// together, and changes the first to one that does both.
template <class First, class Next, class Accept>
std::int64_t join_next(Program& program, const Surroundings& around, Accept&& accept) {
  return join_pairs<First, Next>(
      program, around, {0},
      [&](const Node& first, const Node& next, std::size_t) -> std::optional<Node> {
        Node joined = first;
        if (!accept(joined, next)) return {};
        joined.out[0] = next.out[0];
        return joined;
      });
}

}  // namespace tessera::step
