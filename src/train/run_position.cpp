// SPDX-License-Identifier: Apache-2.0
#include "train/run_position.hpp"

#include <algorithm>

namespace tessera::train {

bool RunPosition::advance(const EpochRecord& record) {
  ++epoch;
  if (!record.evaluated) return false;
  const Evaluation& evaluation = record.evaluation;
  const bool is_best = best_epoch == 0 || better(evaluation, best, stop_by, metric);
  if (is_best) {
    best_epoch = epoch;
    best = evaluation;
  }
  const double value = evaluation.validation;
  const bool beats =
      !best_metric || (lower_is_better(metric) ? value < *best_metric : value > *best_metric);
  const bool improved = (stop_by != StopBy::loss && beats) ||
                        (stop_by != StopBy::metric && evaluation.validation_loss < lowest_loss);
  const bool kept_up = stop_by == StopBy::either &&
                       (value == best_metric || evaluation.validation_loss == lowest_loss);
  if (improved || kept_up) progress_epoch = epoch;
  if (improved) flat_since = epoch;
  waited = epoch - progress_epoch;
  if (plateau > 0 && epoch - flat_since >= plateau) {
    ++plateaus;
    flat_since = epoch;
  }
  if (beats) best_metric = value;
  lowest_loss = std::min(lowest_loss, evaluation.validation_loss);
  return is_best;
}

RunPosition position_after(const std::vector<EpochRecord>& curve, RunPosition begin) {
  for (const EpochRecord& record : curve) begin.advance(record);
  return begin;
}

}  // namespace tessera::train
