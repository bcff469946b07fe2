// SPDX-License-Identifier: Apache-2.0
#include "train/score.hpp"

#include <vector>

#include "tessera/train/numbers.hpp"

#include "train/quality.hpp"

namespace tessera::train {
namespace {

ClassQuality& of(std::vector<ClassQuality>& classes, std::int64_t k) {
  return classes[static_cast<std::size_t>(k)];
}

/// Precision, recall and F1 of each class.
std::vector<ClassQuality> counted_qualities(MatrixView<const float> logits, const Batch& batch,
                                            std::span<const std::int64_t> items) {
  std::vector<ClassQuality> classes(static_cast<std::size_t>(logits.cols));
  const auto count = [&](std::int64_t k, bool said, bool is) {
    ClassQuality& quality = of(classes, k);
    quality.support += is ? 1 : 0;
    quality.predicted += said ? 1 : 0;
    quality.found += said && is ? 1 : 0;
  };
  for (const std::int64_t row : items) {
    if (batch.targets != nullptr) {
      for (std::int64_t k = 0; k < logits.cols; ++k) {
        count(k, logits(row, k) > 0, (*batch.targets)(row, k) > 0);
      }
      continue;
    }
    const std::int64_t said = predicted_class(logits, row);
    const std::int64_t is = batch.labels[static_cast<std::size_t>(row)];
    count(is, said == is, true);
    if (said >= 0 && said != is) count(said, true, false);
  }
  for (ClassQuality& quality : classes) settle_shares(quality);
  return classes;
}

}  // namespace

bool is_counted(Metric metric) { return metric == Metric::accuracy || metric == Metric::micro_f1; }

double score(Metric metric, MatrixView<const float> logits, const Batch& batch,
             std::span<const std::int64_t> items) {
  if (items.empty()) return 0;
  if (batch.numbers != nullptr) {
    return metric_of(metric, number_quality(logits, *batch.numbers, items));
  }
  const bool multi_label = batch.targets != nullptr;
  if (metric == Metric::macro_f1 || metric == Metric::weighted_f1) {
    const auto classes = counted_qualities(logits, batch, items);
    return metric == Metric::macro_f1 ? macro_mean(classes, multi_label).f1
                                      : weighted_mean(classes).f1;
  }
  if (metric == Metric::roc_auc && multi_label) return roc_auc(logits, *batch.targets, items);
  if (metric == Metric::roc_auc && logits.cols == 2) return roc_auc(logits, batch.labels, items);
  const ClassReport report = multi_label ? label_report(logits, *batch.targets, items)
                                         : class_report(logits, batch.labels, items);
  const std::optional<double>& mean =
      metric == Metric::roc_auc ? report.macro.roc_auc : report.macro.average_precision;
  return mean.value_or(0);
}

}  // namespace tessera::train
