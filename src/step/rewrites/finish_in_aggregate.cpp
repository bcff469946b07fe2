// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/aggregate.hpp"
#include "step/ops/finish.hpp"
#include "step/rewrites/join_next.hpp"

namespace tessera::step {

std::int64_t finish_in_aggregate(Program& program, const Surroundings& around) {
  return join_next<Aggregate, Finish>(program, around, [](Node& sums, const Node& end) {
    const auto& aggregate = *sums.as<Aggregate>();
    const Finishing& finishing = end.as<Finish>()->finishing();
    if (aggregate.finishes() || !sums.in[Aggregate::scale].absent() ||
        !finishing.shows_derivative()) {
      return false;
    }
    sums.op = std::make_shared<Aggregate>(aggregate, finishing);
    sums.in[Aggregate::bias] = end.in[1];
    return true;
  });
}

}  // namespace tessera::step
