// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/matrix.hpp"

/// How good predictions are, as shares from 0 to 1. Each looks at chosen rows of `logits` only.
/// Those of numbers are in train/numbers.hpp.
namespace tessera::train {

/// Means over classes where these are several (train/class_report.hpp).
enum class Metric {
  automatic,
  accuracy,
  micro_f1,  ///< several labels each
  macro_f1,
  weighted_f1,
  roc_auc,
  average_precision,
  recall,  ///< of links: of lists, as `links::list_quality`
  ndcg,
  mae,   ///< of numbers: the mean absolute error
  rmse,  ///< of numbers: the root of the mean squared error
  r2,    ///< of numbers: the coefficient of determination
};

/// Whether a metric of links judges lists of vertices, and not scores of pairs.
constexpr bool is_of_lists(Metric metric) noexcept {
  return metric == Metric::recall || metric == Metric::ndcg;
}

const char* to_string(Metric metric) noexcept;
/// An unknown name is an `invalid_argument` error that lists those there are.
Metric parse_metric(const std::string& text);

bool is_of_numbers(Metric metric) noexcept;
/// Of errors less is better, of everything else more.
bool lower_is_better(Metric metric) noexcept;

/// The class of the highest logit of a row, the lowest class among ties; -1 where a logit is not a
/// number.
std::int64_t predicted_class(MatrixView<const float> logits, std::int64_t row);

/// The share of rows whose predicted class is their label. No rows give 0.
double accuracy(MatrixView<const float> logits, std::span<const std::int64_t> labels,
                std::span<const std::int64_t> rows);

/// F1 = 2 TP / (2 TP + FP + FN) over all rows and columns together, where a logit above 0 says yes.
/// Nothing to find and nothing found gives 0.
double micro_f1(MatrixView<const float> logits, MatrixView<const float> targets,
                std::span<const std::int64_t> rows);

/// The chance that a positive has a higher score than a negative; ties count half. Without a
/// positive or without a negative it means nothing: an `invalid_argument` error.
double roc_auc(std::span<const float> scores, const std::vector<bool>& positive);
double roc_auc(std::span<const double> scores, const std::vector<bool>& positive);

/// The mean precision at the positives, best score first: the sum of (R_n - R_{n-1}) P_n over the
/// thresholds, tied scores at once, as scikit-learn has it. Without a positive it means nothing: an
/// `invalid_argument` error.
double average_precision(std::span<const double> scores, const std::vector<bool>& positive);

/// Two classes: the score is the second logit less the first.
double roc_auc(MatrixView<const float> logits, std::span<const std::int64_t> labels,
               std::span<const std::int64_t> rows);

/// Several labels: the mean over the columns that have both positives and negatives.
double roc_auc(MatrixView<const float> logits, MatrixView<const float> targets,
               std::span<const std::int64_t> rows);

}  // namespace tessera::train
