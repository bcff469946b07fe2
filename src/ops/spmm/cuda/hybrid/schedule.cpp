// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/hybrid/schedule.hpp"

#include <algorithm>
#include <utility>

namespace tessera::ops {
namespace {

constexpr EdgeOffset step_columns = 16;

/// The last step of a window is half full in the mean.
EdgeOffset columns_of(EdgeOffset steps) {
  return steps == 0 ? 0 : steps * step_columns - step_columns / 2;
}

void add(WindowShare& share, EdgeOffset edges, EdgeOffset columns, double us) {
  ++share.windows;
  share.edges += edges;
  share.columns += columns;
  share.predicted_us += us;
}

}  // namespace

WindowCores choose_cores(std::span<const EdgeOffset> offsets,
                         std::span<const EdgeOffset> step_offsets, int height,
                         const WindowCosts& costs) {
  const auto num_rows = static_cast<std::int64_t>(offsets.size()) - 1;
  WindowCores cores;
  cores.on_tensor_cores.resize(step_offsets.size() - 1);
  for (std::size_t window = 0; window < cores.on_tensor_cores.size(); ++window) {
    const std::int64_t first = static_cast<std::int64_t>(window) * height;
    const std::int64_t end = std::min(num_rows, first + height);
    const EdgeOffset edges =
        offsets[static_cast<std::size_t>(end)] - offsets[static_cast<std::size_t>(first)];
    // A window has no more columns than edges, and steps only say how many there may be.
    const EdgeOffset columns =
        std::min(edges, columns_of(step_offsets[window + 1] - step_offsets[window]));
    const double tensor_us = costs.on_tensor_cores(static_cast<double>(columns));
    const double cuda_us =
        costs.on_cuda_cores(static_cast<double>(end - first), static_cast<double>(edges));
    const bool on_tensor_cores = tensor_us < cuda_us;
    cores.on_tensor_cores[window] = on_tensor_cores ? 1 : 0;
    add(on_tensor_cores ? cores.tensor : cores.cuda, edges, columns,
        on_tensor_cores ? tensor_us : cuda_us);
    if (on_tensor_cores) continue;
    for (std::int64_t row = first; row < end; ++row) {
      cores.cuda_rows.push_back(static_cast<VertexId>(row));
    }
  }
  return cores;
}

SomeRows::SomeRows(std::span<const EdgeOffset> matrix_offsets, std::vector<VertexId> ids)
    : matrix_offsets_(matrix_offsets), ids_(std::move(ids)) {
  offsets_.reserve(ids_.size() + 1);
  offsets_.push_back(0);
  for (const VertexId id : ids_) {
    const auto row = static_cast<std::size_t>(id);
    offsets_.push_back(offsets_.back() + matrix_offsets[row + 1] - matrix_offsets[row]);
  }
  degrees_ = degree_statistics(offsets_);
}

}  // namespace tessera::ops
