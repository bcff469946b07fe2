// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tessera/train/report.hpp"

namespace tessera::train {

/// How a run has done so far, told one epoch after the other.
struct RunPosition {
  std::int64_t epoch = 0;
  std::int64_t best_epoch = 0;
  Evaluation best;
  /// For early stopping: the best seen so far, each by itself, when one of them last came, and the
  /// epochs from then to the last one that was evaluated.
  double highest_metric = -1;
  double lowest_loss = std::numeric_limits<double>::infinity();
  std::int64_t progress_epoch = 0;
  std::int64_t waited = 0;

  /// True if this epoch is the best of the run.
  bool advance(const EpochRecord& record);
};

RunPosition position_after(const std::vector<EpochRecord>& curve);

}  // namespace tessera::train
