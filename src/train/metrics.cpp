// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/core/error.hpp"
#include "tessera/links/curves.hpp"

#include "core/names.hpp"

namespace tessera::train {
namespace {

constexpr std::array<Named<Metric>, 12> metric_names = {
    {{Metric::automatic, "auto"},
     {Metric::accuracy, "accuracy"},
     {Metric::micro_f1, "micro_f1"},
     {Metric::macro_f1, "macro_f1"},
     {Metric::weighted_f1, "weighted_f1"},
     {Metric::roc_auc, "roc_auc"},
     {Metric::average_precision, "average_precision"},
     {Metric::recall, "recall"},
     {Metric::ndcg, "ndcg"},
     {Metric::mae, "mae"},
     {Metric::rmse, "rmse"},
     {Metric::r2, "r2"}}};

std::int64_t label_of(std::span<const std::int64_t> labels, std::int64_t row) {
  return labels[static_cast<std::size_t>(row)];
}

bool has_both(const std::vector<bool>& positive) {
  const auto count = std::count(positive.begin(), positive.end(), true);
  return count > 0 && count < std::ssize(positive);
}

[[noreturn]] void one_sided() {
  throw Error(ErrorCode::invalid_argument, "ROC-AUC needs positives and negatives", "metric",
              "use the accuracy, or a split with both");
}

template <class Score>
struct PartedScores {
  PartedScores(std::span<const Score> scores, const std::vector<bool>& positive) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      (positive[i] ? positives : negatives).push_back(scores[i]);
    }
  }

  std::vector<Score> positives, negatives;
};

template <class Score>
double area_under_curve(std::span<const Score> scores, const std::vector<bool>& positive) {
  if (!has_both(positive)) one_sided();
  const PartedScores<Score> parts(scores, positive);
  return links::roc_auc<Score>(parts.positives, parts.negatives);
}

}  // namespace

const char* to_string(Metric metric) noexcept { return name_of(metric_names, metric); }

Metric parse_metric(const std::string& text) { return parse_name(metric_names, "metric", text); }

bool lower_is_better(Metric metric) noexcept {
  return metric == Metric::mae || metric == Metric::rmse;
}

bool is_of_numbers(Metric metric) noexcept {
  return lower_is_better(metric) || metric == Metric::r2;
}

std::int64_t predicted_class(MatrixView<const float> logits, std::int64_t row) {
  std::int64_t best = -1;
  for (std::int64_t k = 0; k < logits.cols; ++k) {
    if (std::isnan(logits(row, k))) return -1;
    if (best < 0 || logits(row, k) > logits(row, best)) best = k;
  }
  return best;
}

double accuracy(MatrixView<const float> logits, std::span<const std::int64_t> labels,
                std::span<const std::int64_t> rows) {
  if (rows.empty()) return 0;
  const auto correct = std::count_if(rows.begin(), rows.end(), [&](std::int64_t row) {
    return predicted_class(logits, row) == label_of(labels, row);
  });
  return static_cast<double>(correct) / static_cast<double>(rows.size());
}

double micro_f1(MatrixView<const float> logits, MatrixView<const float> targets,
                std::span<const std::int64_t> rows) {
  std::int64_t found = 0, wrong = 0;
  for (const std::int64_t row : rows) {
    for (std::int64_t k = 0; k < logits.cols; ++k) {
      const bool said = logits(row, k) > 0;
      const bool is = targets(row, k) > 0;
      found += said && is ? 1 : 0;
      wrong += said != is ? 1 : 0;
    }
  }
  const std::int64_t all = 2 * found + wrong;
  return all == 0 ? 0 : 2 * static_cast<double>(found) / static_cast<double>(all);
}

double roc_auc(std::span<const float> scores, const std::vector<bool>& positive) {
  return area_under_curve(scores, positive);
}

double roc_auc(std::span<const double> scores, const std::vector<bool>& positive) {
  return area_under_curve(scores, positive);
}

double average_precision(std::span<const double> scores, const std::vector<bool>& positive) {
  if (std::count(positive.begin(), positive.end(), true) == 0) {
    throw Error(ErrorCode::invalid_argument, "average precision needs positives", "metric",
                "leave out what nothing is to be found of");
  }
  if (!has_both(positive)) return 1;  // all that is found is right
  const PartedScores<double> parts(scores, positive);
  return links::average_precision<double>(parts.positives, parts.negatives);
}

double roc_auc(MatrixView<const float> logits, std::span<const std::int64_t> labels,
               std::span<const std::int64_t> rows) {
  if (logits.cols != 2) {
    throw Error(ErrorCode::invalid_argument, "ROC-AUC of more than two classes", "metric",
                "use the accuracy");
  }
  std::vector<float> scores;
  std::vector<bool> positive;
  for (const std::int64_t row : rows) {
    scores.push_back(logits(row, 1) - logits(row, 0));
    positive.push_back(label_of(labels, row) == 1);
  }
  return roc_auc(scores, positive);
}

double roc_auc(MatrixView<const float> logits, MatrixView<const float> targets,
               std::span<const std::int64_t> rows) {
  double sum = 0;
  std::int64_t counted = 0;
  for (std::int64_t k = 0; k < logits.cols; ++k) {
    std::vector<float> scores;
    std::vector<bool> positive;
    for (const std::int64_t row : rows) {
      scores.push_back(logits(row, k));
      positive.push_back(targets(row, k) > 0);
    }
    if (!has_both(positive)) continue;
    sum += roc_auc(scores, positive);
    ++counted;
  }
  if (counted == 0) one_sided();
  return sum / static_cast<double>(counted);
}

}  // namespace tessera::train
