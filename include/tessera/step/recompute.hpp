// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/step/context.hpp"
#include "tessera/step/execution.hpp"
#include "tessera/step/program.hpp"

namespace tessera::step {

struct Recomputed {
  std::int64_t times = 0;        ///< values that are computed again
  std::int64_t saved_bytes = 0;  ///< of the arena
  std::int64_t moved_bytes = 0;  ///< more than before
};

/// Of a program with gradients, which begin at node `num_forward`: computes values again that the
/// gradients read, where that makes the arena smaller and costs little, instead of keeping them.
/// What nodes read and write grows by a quarter at most. `kept`: values that are read after the
/// run.
Recomputed recompute(Program& program, std::size_t num_forward, const Placement& placement,
                     std::span<const Bound> inputs, const Context& context,
                     std::span<const Value> kept);

}  // namespace tessera::step
