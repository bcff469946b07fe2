// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/finish.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/join_next.hpp"

namespace tessera::step {

std::int64_t finish_in_sparse_linear(Program& program, const Surroundings& around) {
  return join_next<SparseLinear, Finish>(program, around, [](Node& product, const Node& end) {
    const Finishing& finishing = end.as<Finish>()->finishing();
    if (product.as<SparseLinear>()->finishes() || !finishing.shows_derivative()) return false;
    product.op = std::make_shared<SparseLinear>(finishing);
    product.in[SparseLinear::bias] = end.in[1];
    return true;
  });
}

}  // namespace tessera::step
