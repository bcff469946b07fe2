// SPDX-License-Identifier: Apache-2.0
#include "train/score.hpp"

#include "tessera/train/class_report.hpp"

namespace tessera::train {

bool is_counted(Metric metric) { return metric == Metric::accuracy || metric == Metric::micro_f1; }

double score(Metric metric, MatrixView<const float> logits, const Batch& batch,
             std::span<const std::int64_t> items) {
  if (items.empty()) return 0;
  const bool multi_label = batch.targets != nullptr;
  if (metric == Metric::roc_auc && multi_label) return roc_auc(logits, *batch.targets, items);
  if (metric == Metric::roc_auc && logits.cols == 2) return roc_auc(logits, batch.labels, items);
  const ClassReport report = multi_label ? label_report(logits, *batch.targets, items)
                                         : class_report(logits, batch.labels, items);
  switch (metric) {
    case Metric::macro_f1: return report.macro.f1;
    case Metric::weighted_f1: return report.weighted.f1;
    case Metric::roc_auc: return report.macro.roc_auc.value_or(0);
    case Metric::average_precision: return report.macro.average_precision.value_or(0);
    default: return report.accuracy;
  }
}

}  // namespace tessera::train
