// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "tessera/train/class_report.hpp"

namespace tessera::train {

/// Precision, recall and F1 from the counts.
void settle_shares(ClassQuality& quality);

/// Sets what depends on the order of scores, as far as it has a meaning.
void settle_ranking(ClassQuality& quality, std::span<const double> scores,
                    const std::vector<bool>& positive);

/// The mean over classes that items are of or were taken for, or over all.
MeanQuality macro_mean(std::span<const ClassQuality> classes, bool over_all);
MeanQuality weighted_mean(std::span<const ClassQuality> classes);

/// Compares probabilities with how often what they are of was true.
class Calibration {
 public:
  void add(double probability, bool is_true);

  std::array<CalibrationBin, ClassReport::num_bins> bins() const;
  double error() const;

 private:
  struct Sums {
    std::int64_t count = 0;
    double probability = 0;
    std::int64_t is_true = 0;
  };
  std::array<Sums, ClassReport::num_bins> sums_{};
};

}  // namespace tessera::train
