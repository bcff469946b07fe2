// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "tessera/train/options.hpp"

namespace tessera::train {

/// How a run has done so far, told one epoch after the other.
struct RunPosition {
  explicit RunPosition(StopBy by = StopBy::either, std::int64_t epochs_of_plateau = 0,
                       Metric of = Metric::accuracy)
      : metric(of), stop_by(by), plateau(epochs_of_plateau) {}

  Metric metric;
  StopBy stop_by;
  std::int64_t plateau;  ///< so many epochs without progress are one; 0: none ever is
  std::int64_t epoch = 0;
  std::int64_t best_epoch = 0;
  Evaluation best;
  /// For early stopping: the best seen so far, each by itself, when one of them last came, and the
  /// epochs from then to the last one that was evaluated.
  std::optional<double> best_metric;
  double lowest_loss = std::numeric_limits<double>::infinity();
  std::int64_t progress_epoch = 0;
  std::int64_t waited = 0;
  std::int64_t plateaus = 0;  ///< left behind
  std::int64_t flat_since = 0;

  /// True if this epoch is the best of the run.
  bool advance(const EpochRecord& record);
};

RunPosition position_after(const std::vector<EpochRecord>& curve, RunPosition begin);

}  // namespace tessera::train
