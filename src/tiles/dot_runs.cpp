// SPDX-License-Identifier: Apache-2.0
#include "tiles/dot_runs.hpp"

#include <limits>

#include <fmt/format.h>

#include "graph/cut.hpp"
#include "tessera/core/error.hpp"

namespace tessera::tiles {

std::vector<DotRun> cut_into_runs(const TiledGraph& tiled, int run_steps) {
  if (tiled.num_steps() > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::unsupported, fmt::format("{} steps of tiles", tiled.num_steps()),
                "tiles", "partition the graph");
  }
  std::vector<DotRun> runs;
  for (std::int64_t window = 0; window < tiled.num_windows(); ++window) {
    const EdgeOffset first = tiled.step_offsets[window];
    const EdgeOffset steps = tiled.step_offsets[window + 1] - first;
    const auto parts = EqualParts::of_at_most(steps, run_steps);
    for (EdgeOffset part = 0; part < parts.count(); ++part) {
      const EdgeOffset begin = parts.begin(part);
      const EdgeOffset end = parts.end(part);
      runs.push_back({static_cast<std::int32_t>(first + begin),
                      static_cast<std::uint32_t>(window << DotRun::step_bits | (end - begin))});
    }
  }
  return runs;
}

std::vector<std::int32_t> share_runs(std::span<const DotRun> runs, int num_blocks) {
  // To begin a run costs about as much as a step.
  const auto cost = [](const DotRun& run) { return std::int64_t{run.num_steps()} + 1; };
  std::int64_t total = 0;
  for (const DotRun& run : runs) total += cost(run);
  std::vector<std::int32_t> offsets;
  offsets.reserve(static_cast<std::size_t>(num_blocks) + 1);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    // A run belongs to the block whose share its middle lies in.
    const std::int64_t middle = 2 * before + cost(runs[i]);
    while (std::ssize(offsets) * 2 * total <= middle * num_blocks) {
      offsets.push_back(static_cast<std::int32_t>(i));
    }
    before += cost(runs[i]);
  }
  offsets.resize(static_cast<std::size_t>(num_blocks) + 1, static_cast<std::int32_t>(runs.size()));
  return offsets;
}

}  // namespace tessera::tiles
