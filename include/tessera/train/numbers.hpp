// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/ops/loss.hpp"
#include "tessera/train/metrics.hpp"

/// Models that predict numbers (`Task::numbers`).
namespace tessera::train {

struct NumberOptions {
  ops::NumberLoss loss = ops::NumberLoss::squared;
  double huber_delta =
      1;  ///< in the units of what is learned: deviations, where it is standardised
  /// Learn each target less the mean of those to train on, divided by their deviation. Losses are
  /// of these; predictions and metrics are in the units of the data either way.
  bool standardise = true;
};

/// What the outputs of a model mean: output k times `deviations[k]`, plus `means[k]`, is target k
/// in the units of the data.
struct NumberOutputs {
  Names names = {};  ///< of the targets; empty: by number
  std::vector<double> means = {}, deviations = {};

  std::int64_t count() const { return std::ssize(means); }
  std::string name(std::int64_t k) const { return target_name(names, count(), k); }
  double value(std::int64_t k, double output) const {
    const auto i = static_cast<std::size_t>(k);
    return means[i] + deviations[i] * output;
  }
  double output(std::int64_t k, double value) const {
    const auto i = static_cast<std::size_t>(k);
    return (value - means[i]) / deviations[i];
  }

  friend bool operator==(const NumberOutputs&, const NumberOutputs&) = default;
};

/// How far predictions are from what the data says, as scikit-learn has it, in double precision.
struct NumberQuality {
  double mae = 0;   ///< the mean of |difference|
  double rmse = 0;  ///< the root of the mean of its square
  /// 1 less the sum of squares divided by that of the differences from their mean. Of targets that
  /// are all equal it is 1 where all are met, else 0.
  double r2 = 0;
  std::int64_t count = 0;  ///< targets that are there
};

/// Of one column over some rows; targets that are missing are left out.
NumberQuality number_quality(MatrixView<const float> predicted, MatrixView<const float> targets,
                             std::span<const std::int64_t> rows, std::int64_t column);

/// The means over the columns that have a target there; `count` is that of all of them.
NumberQuality number_quality(MatrixView<const float> predicted, MatrixView<const float> targets,
                             std::span<const std::int64_t> rows);

/// The one that a metric of numbers names.
double metric_of(Metric metric, const NumberQuality& quality);

/// What a data set says of the targets of a model, by their names, a row for each item; null where
/// it says nothing. Targets without names are taken by their position.
struct TrueNumbers {
  DenseFeatures matrix;
  std::vector<std::string> notes;
};
TrueNumbers true_numbers(const NumberOutputs& outputs, bool graph_task, const Dataset& dataset);

}  // namespace tessera::train
