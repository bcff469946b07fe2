// SPDX-License-Identifier: Apache-2.0
#include "train/counted_evaluation.hpp"

namespace tessera::train {
namespace {

double metric_of(const ops::PartCounts& counts, bool multi_label) {
  // F1 = 2 TP / (2 TP + FP + FN) for several labels, the share of right ones for classes.
  const std::int64_t right = multi_label ? 2 * counts.right : counts.right;
  const std::int64_t all = right + counts.wrong;
  return all == 0 ? 0 : static_cast<double>(right) / static_cast<double>(all);
}

}  // namespace

Evaluation evaluation_of(const ops::EvaluationNumbers& numbers, bool multi_label) {
  return {metric_of(numbers.train, multi_label), metric_of(numbers.validation, multi_label),
          metric_of(numbers.test, multi_label), numbers.validation_loss};
}

double roc_auc_of(MatrixView<const float> logits, const Batch& batch,
                  std::span<const std::int64_t> items) {
  return batch.targets != nullptr ? roc_auc(logits, *batch.targets, items)
                                  : roc_auc(logits, batch.labels, items);
}

}  // namespace tessera::train
