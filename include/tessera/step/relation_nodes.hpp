// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/step/program.hpp"

/// Nodes for graphs with several relations (graph/relational.hpp).
namespace tessera::step {

/// Which weight each row is multiplied with; see ops/grouped_linear.hpp.
struct Groups {
  int graph = 0;  ///< that says the group of each row, among those that the step is given
  std::int64_t blocks = 1;
};
/// y[i] = x[i] W_g, where row i belongs to group g.
Value grouped_linear(Program& program, Value x, Value weights, const Groups& groups);

/// y = x, with a gradient that also has that of `factor` times the mean of the squares of x. The
/// loss that a step says is without it.
Value penalised(Program& program, Value x, double factor);

}  // namespace tessera::step
