// SPDX-License-Identifier: Apache-2.0
#include "train/quality.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/train/metrics.hpp"

namespace tessera::train {
namespace {

std::optional<double> share(double part, std::int64_t all) {
  if (all == 0) return {};
  return part / static_cast<double>(all);
}

/// Adds up numbers that may be absent.
struct WeightedSum {
  double sum = 0;
  double weights = 0;

  void add(double value, double weight) {
    sum += value * weight;
    weights += weight;
  }
  std::optional<double> mean() const {
    if (weights == 0) return {};
    return sum / weights;
  }
};

/// The mean with a weight for each class; one of weight 0 plays no part.
template <class Weight>
MeanQuality mean(std::span<const ClassQuality> classes, Weight&& weight_of) {
  WeightedSum precision, recall, f1, roc_auc, average_precision;
  for (const ClassQuality& quality : classes) {
    const double weight = weight_of(quality);
    precision.add(quality.precision.value_or(0), weight);
    recall.add(quality.recall.value_or(0), weight);
    f1.add(quality.f1.value_or(0), weight);
    if (quality.roc_auc) roc_auc.add(*quality.roc_auc, weight);
    if (quality.average_precision) average_precision.add(*quality.average_precision, weight);
  }
  return {precision.mean().value_or(0), recall.mean().value_or(0), f1.mean().value_or(0),
          roc_auc.mean(), average_precision.mean()};
}

}  // namespace

void settle_shares(ClassQuality& quality) {
  const auto found = static_cast<double>(quality.found);
  quality.precision = share(found, quality.predicted);
  quality.recall = share(found, quality.support);
  quality.f1 = share(2 * found, quality.predicted + quality.support);
}

void settle_ranking(ClassQuality& quality, std::span<const double> scores,
                    const std::vector<bool>& positive) {
  if (quality.support == 0) return;
  quality.average_precision = average_precision(scores, positive);
  if (quality.support < std::ssize(scores)) quality.roc_auc = roc_auc(scores, positive);
}

MeanQuality macro_mean(std::span<const ClassQuality> classes, bool over_all) {
  return mean(classes, [&](const ClassQuality& quality) {
    return over_all || quality.support + quality.predicted > 0 ? 1.0 : 0.0;
  });
}

MeanQuality weighted_mean(std::span<const ClassQuality> classes) {
  return mean(classes,
              [](const ClassQuality& quality) { return static_cast<double>(quality.support); });
}

void Calibration::add(double probability, bool is_true) {
  const double bins = static_cast<double>(sums_.size());
  const double bin = std::clamp(std::ceil(probability * bins) - 1, 0.0, bins - 1);
  Sums& sums = sums_[static_cast<std::size_t>(bin)];
  ++sums.count;
  sums.probability += probability;
  sums.is_true += is_true ? 1 : 0;
}

std::array<CalibrationBin, ClassReport::num_bins> Calibration::bins() const {
  std::array<CalibrationBin, ClassReport::num_bins> bins{};
  for (std::size_t b = 0; b < bins.size(); ++b) {
    const Sums& sums = sums_[b];
    bins[b].count = sums.count;
    bins[b].probability = share(sums.probability, sums.count).value_or(0);
    bins[b].share_true = share(static_cast<double>(sums.is_true), sums.count).value_or(0);
  }
  return bins;
}

double Calibration::error() const {
  WeightedSum distance;
  for (const CalibrationBin& bin : bins()) {
    distance.add(std::abs(bin.probability - bin.share_true), static_cast<double>(bin.count));
  }
  return distance.mean().value_or(0);
}

}  // namespace tessera::train
