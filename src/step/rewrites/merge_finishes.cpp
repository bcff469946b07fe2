// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/finish.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {
namespace {

/// Whether `second` can be done in the pass of `first`: bias, activation and dropout in this order.
bool follows(const Finishing& first, const Finishing& second, bool second_has_bias) {
  if (second_has_bias || first.dropout > 0) return false;
  return first.kind.activation == ops::Activation::none ||
         second.kind.activation == ops::Activation::none;
}

Finishing merged(const Finishing& first, const Finishing& second) {
  Finishing both = second;
  if (second.kind.activation == ops::Activation::none) both.kind = first.kind;
  return both;
}

}  // namespace

std::int64_t merge_finishes(Program& program, std::span<const Value> kept) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 1; i < nodes.size();) {
    Node& first = nodes[i - 1];
    Node& second = nodes[i];
    const auto* before = first.as<Finish>();
    const auto* after = second.as<Finish>();
    const bool merges = before != nullptr && after != nullptr && second.in[0] == first.out[0] &&
                        follows(before->finishing(), after->finishing(), !second.in[1].absent()) &&
                        has_one_reader(program, first.out[0], kept);
    if (!merges) {
      ++i;
      continue;
    }
    first.op = std::make_shared<Finish>(merged(before->finishing(), after->finishing()));
    first.out = second.out;
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
