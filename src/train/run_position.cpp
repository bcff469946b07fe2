// SPDX-License-Identifier: Apache-2.0
#include "train/run_position.hpp"

#include <algorithm>

namespace tessera::train {

bool RunPosition::advance(const EpochRecord& record) {
  ++epoch;
  if (!record.evaluated) return false;
  const Evaluation& evaluation = record.evaluation;
  const bool is_best = best_epoch == 0 || better(evaluation, best);
  if (is_best) {
    best_epoch = epoch;
    best = evaluation;
  }
  const bool went_on =
      evaluation.validation >= highest_metric || evaluation.validation_loss <= lowest_loss;
  if (went_on) progress_epoch = epoch;
  waited = epoch - progress_epoch;
  highest_metric = std::max(highest_metric, evaluation.validation);
  lowest_loss = std::min(lowest_loss, evaluation.validation_loss);
  return is_best;
}

RunPosition position_after(const std::vector<EpochRecord>& curve) {
  RunPosition position;
  for (const EpochRecord& record : curve) position.advance(record);
  return position;
}

}  // namespace tessera::train
