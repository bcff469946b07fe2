// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/class_report.hpp"

#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/data/classes.hpp"
#include "tessera/train/metrics.hpp"

#include "train/prediction_files.hpp"
#include "train/quality.hpp"
#include "train/softmax_row.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void reject(const std::string& problem, const char* fix) {
  throw Error(ErrorCode::invalid_argument, problem, "class report", fix);
}

/// An empty report, once the arguments are checked.
ClassReport begun(MatrixView<const float> logits, std::span<const std::int64_t> rows) {
  if (logits.cols == 0) reject("there are no classes", "give logits of at least one column");
  if (rows.empty()) {
    reject("nothing is known of what is right for any item", "give data with labels to compare");
  }
  ClassReport report;
  report.items = std::ssize(rows);
  report.classes.resize(static_cast<std::size_t>(logits.cols));
  return report;
}

ClassQuality& of(ClassReport& report, std::int64_t k) {
  return report.classes[static_cast<std::size_t>(k)];
}

/// What probabilities say, where all of them are numbers.
struct Probabilities {
  Calibration calibration;
  double loss = 0;
  bool are_numbers = true;

  void add(double probability, bool is_true, double loss_of_truth) {
    are_numbers = are_numbers && !std::isnan(probability);
    if (!are_numbers) return;
    calibration.add(probability, is_true);
    loss += loss_of_truth;
  }

  void settle(double answers, ClassReport& report) const {
    if (!are_numbers) return;
    report.calibration = calibration.bins();
    report.calibration_error = calibration.error();
    if (std::isfinite(loss)) report.log_loss = loss / answers;
  }
};

/// Ranks the judged items for each class by `score(i, k)` of the i-th of them.
template <class Score, class Truth>
void rank(ClassReport& report, Score&& score, Truth&& truth) {
  parallel_tasks(std::ssize(report.classes), [&](std::int64_t k) {
    std::vector<double> scores;
    std::vector<bool> positive;
    for (std::int64_t i = 0; i < report.items; ++i) {
      scores.push_back(score(i, k));
      positive.push_back(truth(i, k));
    }
    settle_ranking(of(report, k), scores, positive);
  });
}

void take_means(ClassReport& report) {
  for (ClassQuality& quality : report.classes) settle_shares(quality);
  report.macro = macro_mean(report.classes, report.multi_label);
  report.weighted = weighted_mean(report.classes);
}

/// All answers as if of one label.
MeanQuality micro_mean(const ClassReport& report, std::span<const double> scores,
                       const std::vector<bool>& positive) {
  ClassQuality all;
  for (const ClassQuality& quality : report.classes) {
    all.support += quality.support;
    all.predicted += quality.predicted;
    all.found += quality.found;
  }
  settle_shares(all);
  if (!scores.empty()) settle_ranking(all, scores, positive);
  return macro_mean({&all, 1}, true);
}

}  // namespace

ClassReport class_report(MatrixView<const float> logits, std::span<const std::int64_t> truth,
                         std::span<const std::int64_t> rows) {
  ClassReport report = begun(logits, rows);
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> confusion;
  std::vector<SoftmaxRow> shares;
  Probabilities probabilities;
  std::int64_t right = 0;
  const auto truth_of = [&](std::int64_t row) { return truth[static_cast<std::size_t>(row)]; };
  for (const std::int64_t row : rows) {
    const std::int64_t is = truth_of(row);
    if (is < 0 || is >= logits.cols) {
      reject(fmt::format("row {} is of class {} of {}", row, is, logits.cols),
             "number classes as the columns of the logits");
    }
    const std::int64_t said = predicted_class(logits, row);
    const bool is_right = said == is;
    ++confusion[{is, said}];
    ++of(report, is).support;
    said < 0 ? ++report.undecided : ++of(report, said).predicted;
    of(report, is).found += is_right ? 1 : 0;
    right += is_right ? 1 : 0;
    const SoftmaxRow& share = shares.emplace_back(logits.row(row), logits.cols);
    probabilities.add(share.highest_share(), is_right, share.loss(logits(row, is)));
  }
  for (const auto& [pair, items] : confusion) {
    report.confusion.push_back({pair.first, pair.second, items});
  }
  const auto items = static_cast<double>(report.items);
  report.accuracy = static_cast<double>(right) / items;
  probabilities.settle(items, report);
  if (probabilities.are_numbers) {
    const auto row_of = [&](std::int64_t i) { return rows[static_cast<std::size_t>(i)]; };
    rank(
        report,
        [&](std::int64_t i, std::int64_t k) {
          return shares[static_cast<std::size_t>(i)].share(logits(row_of(i), k));
        },
        [&](std::int64_t i, std::int64_t k) { return truth_of(row_of(i)) == k; });
  }
  take_means(report);
  return report;
}

ClassReport label_report(MatrixView<const float> logits, MatrixView<const float> truth,
                         std::span<const std::int64_t> rows) {
  ClassReport report = begun(logits, rows);
  report.multi_label = true;
  Probabilities probabilities;
  std::vector<double> scores;
  std::vector<bool> positive;
  std::int64_t wrong = 0, all_right = 0;
  for (const std::int64_t row : rows) {
    const std::int64_t wrong_before = wrong;
    bool is_decided = true;
    for (std::int64_t k = 0; k < logits.cols; ++k) {
      const float logit = logits(row, k);
      const bool said = logit > 0, is = truth(row, k) > 0;
      is_decided = is_decided && !std::isnan(logit);
      wrong += said == is && !std::isnan(logit) ? 0 : 1;
      ClassQuality& quality = of(report, k);
      quality.support += is ? 1 : 0;
      quality.predicted += said ? 1 : 0;
      quality.found += said && is ? 1 : 0;
      probabilities.add(sigmoid(logit), is, sigmoid_loss(logit, is));
      scores.push_back(sigmoid(logit));
      positive.push_back(is);
    }
    report.undecided += is_decided ? 0 : 1;
    all_right += wrong == wrong_before ? 1 : 0;
  }
  const auto items = static_cast<double>(report.items);
  const double answers = items * static_cast<double>(logits.cols);
  report.accuracy = static_cast<double>(all_right) / items;
  report.hamming_loss = static_cast<double>(wrong) / answers;
  probabilities.settle(answers, report);
  if (probabilities.are_numbers) {
    const auto place = [&](std::int64_t i, std::int64_t k) {
      return static_cast<std::size_t>(i * logits.cols + k);
    };
    rank(
        report, [&](std::int64_t i, std::int64_t k) { return scores[place(i, k)]; },
        [&](std::int64_t i, std::int64_t k) { return bool{positive[place(i, k)]}; });
  } else {
    scores.clear();
  }
  take_means(report);
  report.micro = micro_mean(report, scores, positive);
  return report;
}

std::vector<std::int64_t> judged_items(const Prediction& prediction,
                                       std::span<const std::int64_t> items) {
  std::vector<std::int64_t> judged;
  if (prediction.multi_label) {
    if (prediction.true_labels != nullptr) judged.assign(items.begin(), items.end());
    return judged;
  }
  if (prediction.true_classes.empty()) return judged;
  for (const std::int64_t item : items) {
    const auto& truth = prediction.true_classes[static_cast<std::size_t>(item)];
    if (truth && class_of(*truth, prediction.class_values) >= 0) judged.push_back(item);
  }
  return judged;
}

ClassReport report_on(const Prediction& prediction, std::span<const std::int64_t> items) {
  const std::vector<std::int64_t> rows = judged_items(prediction, items);
  ClassReport report;
  if (prediction.multi_label && !rows.empty()) {
    report = label_report(prediction.logits, *prediction.true_labels, rows);
  } else {
    std::vector<std::int64_t> truth(prediction.classes.size(), -1);
    for (const std::int64_t row : rows) {
      const auto place = static_cast<std::size_t>(row);
      truth[place] = class_of(*prediction.true_classes[place], prediction.class_values);
    }
    report = class_report(prediction.logits, truth, rows);
  }
  const std::vector<std::string> names = output_names(prediction);
  for (std::size_t k = 0; k < names.size(); ++k) report.classes[k].name = names[k];
  return report;
}

}  // namespace tessera::train
