// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/window_cores.hpp"

#include <algorithm>
#include <utility>

#include "core/device_traits.hpp"
#include "ops/spmm/cuda/hybrid/cost.hpp"
#include "tessera/core/parallel.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::ops {
namespace {

/// The steps of 16 columns that windows of a graph have, as offsets.
std::vector<EdgeOffset> step_offsets(const Graph& graph, int height) {
  const tiles::SideRows rows = tiles::rows_of(graph, tiles::Side::forward);
  const std::int64_t windows = rows.num_windows(height);
  std::vector<EdgeOffset> offsets(static_cast<std::size_t>(windows) + 1, 0);
  constexpr std::int64_t together = 64;
  parallel_for((windows + together - 1) / together, 1, [&](std::int64_t part) {
    tiles::WindowColumns columns;
    for (std::int64_t window = part * together; window < std::min(windows, (part + 1) * together);
         ++window) {
      const std::int64_t first = window * height;
      const std::int64_t last = std::min<std::int64_t>(first + height, rows.num_rows);
      columns.count(rows, static_cast<VertexId>(first), static_cast<VertexId>(last));
      const std::int64_t distinct = std::ssize(columns.use_counts());
      offsets[static_cast<std::size_t>(window) + 1] =
          (distinct + tiles::step_columns - 1) / tiles::step_columns;
    }
  });
  for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
  return offsets;
}

}  // namespace

WindowCoreReport window_cores(const Graph& graph, std::int64_t features, Precision precision,
                              Device device) {
  const HybridPolicy& policy = hybrid_policies.front();
  const DeviceTraits& traits =
      device.kind == DeviceKind::cuda ? device_traits(device) : h200_traits();
  SpmmProblem problem;
  problem.graph = graph;
  problem.features = features;
  problem.precision = precision;
  const int height = policy.tall.height;
  WindowCores cores = choose_cores(graph.row_offsets().span(), step_offsets(graph, height), height,
                                   window_costs(problem, policy, traits));
  return {height, traits.name, cores.tensor, cores.cuda, std::move(cores.on_tensor_cores)};
}

}  // namespace tessera::ops
