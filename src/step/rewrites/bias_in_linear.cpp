// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/finish.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {

std::int64_t bias_in_linear(Program& program, std::span<const Value> kept) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 1; i < nodes.size();) {
    Node& product = nodes[i - 1];
    Node& end = nodes[i];
    const auto* linear = product.as<Linear>();
    const auto* finish = end.as<Finish>();
    const bool merges = linear != nullptr && finish != nullptr && linear->is_plain() &&
                        product.in[2].absent() && end.in[0] == product.out[0] &&
                        finish->finishing().is_linear() &&
                        has_one_reader(program, product.out[0], kept);
    if (!merges) {
      ++i;
      continue;
    }
    product.in[2] = end.in[1];
    product.out = end.out;
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
