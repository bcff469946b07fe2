// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cuda/rows.hpp"
#include "graph/degrees.hpp"
#include "ops/attention/cuda/rows/schedule.hpp"
#include "ops/workspace.hpp"

namespace tessera::ops {

/// One sweep's rows of the matrix, and how they are shared out.
struct AttentionSide {
  std::shared_ptr<const cuda::DeviceRows> rows;
  AttentionSchedule schedule;

  AttentionSide() = default;
  AttentionSide(std::shared_ptr<const cuda::DeviceRows> matrix, const DegreeStatistics& degrees,
                const LaneShape& shape, const AttentionOptions& options);

  /// What any sweep over it has in common.
  RowsAttentionLaunch launch(const AttentionOptions& options, const AttentionInputs& inputs,
                             const WorkspaceView& workspace) const;
};

}  // namespace tessera::ops
