// SPDX-License-Identifier: Apache-2.0
#include "step/ops/round.hpp"

#include <fmt/format.h>

#include <memory>

namespace tessera::step {

std::string Round::describe() const { return fmt::format("round to {} bits", rounder_.bits()); }

void Round::run(const Pass& pass) const {
  ops::ConstOperand scale;
  if (rounding_.scaled_by != nullptr) {
    const Tensor* const columns =
        pass.graph(rounding_.graph).col_scale(rounding_.scaled_by, pass.placement());
    if (columns != nullptr) scale = *columns;
  }
  rounder_.round(pass.in(0), rounding_.range, scale, pass.out(0), pass.stream);
}

Value round(Program& program, Value x, Rounder& rounder, const Rounding& rounding) {
  if (!rounder.rounds()) return x;
  Rounding own = rounding;
  own.graph = program.absolute_graph(rounding.graph);
  return program.append(std::make_shared<Round>(rounder, own), {x});
}

}  // namespace tessera::step
