// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/finish.hpp"
#include "step/rewrites/join_next.hpp"

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

std::int64_t merge_finishes(Program& program, const Surroundings& around) {
  return join_next<Finish, Finish>(program, around, [](Node& first, const Node& second) {
    const Finishing& before = first.as<Finish>()->finishing();
    const Finishing& after = second.as<Finish>()->finishing();
    if (!follows(before, after, !second.in[1].absent())) return false;
    first.op = std::make_shared<Finish>(merged(before, after));
    return true;
  });
}

}  // namespace tessera::step
