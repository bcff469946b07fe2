// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/batch_norm.hpp"
#include "step/ops/finish.hpp"
#include "step/rewrites/join_next.hpp"

namespace tessera::step {

std::int64_t finish_in_norm(Program& program, const Surroundings& around) {
  return join_next<BatchNorm, Finish>(program, around, [](Node& norm, const Node& end) {
    const auto& op = *norm.as<BatchNorm>();
    if (!op.finishing().is_linear() || !end.in[1].absent()) return false;
    norm.op = std::make_shared<BatchNorm>(op.kind(), end.as<Finish>()->finishing());
    return true;
  });
}

}  // namespace tessera::step
