// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/train/predict.hpp"

/// How good predictions are, class by class, as scikit-learn defines it (docs/predicting.md). A
/// number that has no meaning is absent: the recall of a class that no item has, the precision of
/// one that was never predicted. Where a logit of a judged item is not a number, so is what depends
/// on probabilities: AUROC, average precision, log loss and calibration.
namespace tessera::train {

/// Of one class against all others, or of one label of several.
struct ClassQuality {
  std::string name;
  std::int64_t support = 0;    ///< items that are of it
  std::int64_t predicted = 0;  ///< items that were taken for it
  std::int64_t found = 0;      ///< items that were both
  std::optional<double> precision;
  std::optional<double> recall;
  std::optional<double> f1;
  std::optional<double> roc_auc;            ///< ties count half
  std::optional<double> average_precision;  ///< as `train::average_precision`
};

/// Means over classes. In those of precision, recall and F1 an absent number counts as 0; in the
/// other two it is left out.
struct MeanQuality {
  double precision = 0;
  double recall = 0;
  double f1 = 0;
  std::optional<double> roc_auc;
  std::optional<double> average_precision;
};

/// How often predicted classes (of several labels: any label) of a certain probability were true.
struct CalibrationBin {
  std::int64_t count = 0;
  double probability = 0;  ///< mean of the bin; 0 where it is empty
  double share_true = 0;
};

/// So many items of one class that were taken for another, or rightly for the same.
struct ConfusedItems {
  std::int64_t truth = 0;      ///< a place in `ClassReport::classes`
  std::int64_t predicted = 0;  ///< the same; -1: a logit was not a number
  std::int64_t items = 0;

  friend bool operator==(const ConfusedItems&, const ConfusedItems&) = default;
};

struct ClassReport {
  static constexpr std::size_t num_bins = 10;

  bool multi_label = false;
  std::int64_t items = 0;      ///< that were judged
  std::int64_t undecided = 0;  ///< of these, with a logit that is not a number
  /// The share of items whose class was met; of several labels, of those whose labels all were.
  double accuracy = 0;
  std::optional<double> hamming_loss;  ///< of several labels: the share of wrong answers
  /// The mean of -log(p) of what is true, over items, or items and labels. Not clipped.
  std::optional<double> log_loss;
  /// Bin b has probabilities above b / 10 up to (b + 1) / 10, the first also 0: of the class that
  /// was predicted, or of every label. The error is the mean distance of probability and share,
  /// weighted by count (ECE).
  std::array<CalibrationBin, num_bins> calibration{};
  std::optional<double> calibration_error;
  std::vector<ClassQuality> classes;  ///< in the order of the logits' columns
  /// The mean over the classes that items are of or were taken for; of several labels over all.
  MeanQuality macro;
  MeanQuality weighted;              ///< by support
  std::optional<MeanQuality> micro;  ///< of several labels: all answers as if of one label
  /// What is not 0 of the confusion matrix, row by row; none of several labels.
  std::vector<ConfusedItems> confusion;
};

/// Judges these rows of `logits`, whose classes are `truth[row]`, a column each. No rows, and a
/// class that is no column, are `invalid_argument` errors. Classes have no names.
ClassReport class_report(MatrixView<const float> logits, std::span<const std::int64_t> truth,
                         std::span<const std::int64_t> rows);

/// The same of several labels, 0 or 1 each, where a logit above 0 says yes.
ClassReport label_report(MatrixView<const float> logits, MatrixView<const float> truth,
                         std::span<const std::int64_t> rows);

/// Judges these items of a prediction, with the names of their classes. Items that the data says
/// nothing of, and those of classes that the model does not know, are left out; where none is left,
/// it is an `invalid_argument` error.
ClassReport report_on(const Prediction& prediction, std::span<const std::int64_t> items);

/// Those that `report_on` judges.
std::vector<std::int64_t> judged_items(const Prediction& prediction,
                                       std::span<const std::int64_t> items);

}  // namespace tessera::train
