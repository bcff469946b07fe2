// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "characters.hpp"
#include "class_report.hpp"
#include "numbers.hpp"
#include "picture/class_report_picture.hpp"
#include "picture/panel.hpp"
#include "table.hpp"

namespace tessera::app {
namespace {

using train::ClassQuality;
using train::ClassReport;

constexpr std::size_t page_width = 80;
constexpr std::size_t name_width = 20;
constexpr std::size_t most_classes = 40;
constexpr std::size_t most_confusions = 20;

std::string short_name(const std::string& name) { return picture::shortened(name, name_width); }

std::string digits(const std::optional<double>& number) {
  return number ? fmt::format("{:.4f}", *number) : "-";
}

/// The classes that most items are of, in their own order.
std::vector<std::size_t> classes_to_show(const ClassReport& report) {
  std::vector<std::size_t> order(report.classes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() <= most_classes) return order;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return report.classes[a].support > report.classes[b].support;
  });
  order.resize(most_classes);
  std::sort(order.begin(), order.end());
  return order;
}

std::string summary(const TitledReport& titled) {
  const ClassReport& report = titled.report;
  constexpr std::size_t value_width = 58;
  Table table("ll");
  table.add({"model", picture::shortened(titled.model, value_width)});
  table.add({"judged on", picture::shortened(titled.judged_on, value_width)});
  table.add({"items", grouped(report.items)});
  if (report.undecided > 0) {
    table.add({"undecided", grouped(report.undecided) + ": a logit is not a number"});
  }
  table.add({report.multi_label ? "all labels right" : "accuracy", digits(report.accuracy)});
  if (report.hamming_loss) table.add({"wrong answers", digits(report.hamming_loss)});
  table.add({"log loss", digits(report.log_loss)});
  table.add({"calibration error", digits(report.calibration_error)});
  return picture::shortened(titled.data, page_width) + '\n' + table.text();
}

std::vector<std::string> mean_row(const char* name, const train::MeanQuality& mean) {
  return {name,
          digits(mean.precision),
          digits(mean.recall),
          digits(mean.f1),
          digits(mean.roc_auc),
          digits(mean.average_precision)};
}

std::string class_table(const ClassReport& report) {
  Table table("lrrrrrr");
  table.add({report.multi_label ? "label" : "class", "precision", "recall", "F1", "AUROC", "AP",
             "support"});
  const std::vector<std::size_t> shown = classes_to_show(report);
  for (const std::size_t k : shown) {
    const ClassQuality& quality = report.classes[k];
    table.add({short_name(quality.name), digits(quality.precision), digits(quality.recall),
               digits(quality.f1), digits(quality.roc_auc), digits(quality.average_precision),
               grouped(quality.support)});
  }
  const std::size_t hidden = report.classes.size() - shown.size();
  if (hidden > 0) table.add({fmt::format("... {} smaller", hidden)});
  table.add({});
  if (report.micro) table.add(mean_row("micro mean", *report.micro));
  table.add(mean_row("macro mean", report.macro));
  table.add(mean_row("weighted mean", report.weighted));
  return '\n' + table.text();
}

/// A column for each predicted class, with the letter of its row; empty where it does not fit.
std::string confusion_matrix(const ClassReport& report) {
  const std::size_t classes = report.classes.size();
  const std::size_t columns = classes + (report.undecided > 0 ? 1 : 0);
  if (classes > picture::most_letters) return {};
  std::vector<std::vector<std::int64_t>> cells(classes, std::vector<std::int64_t>(columns, 0));
  for (const train::ConfusedItems& cell : report.confusion) {
    const std::size_t column =
        cell.predicted < 0 ? classes : static_cast<std::size_t>(cell.predicted);
    cells[static_cast<std::size_t>(cell.truth)][column] = cell.items;
  }
  Table table("rl" + std::string(columns, 'r'));
  std::vector<std::string> head{"", ""};
  for (std::size_t k = 0; k < classes; ++k) head.push_back(picture::letter_of(k));
  if (columns > classes) head.emplace_back("none");
  table.add(head);
  for (std::size_t k = 0; k < classes; ++k) {
    std::vector<std::string> row{picture::letter_of(k), short_name(report.classes[k].name)};
    for (const std::int64_t items : cells[k]) row.push_back(std::to_string(items));
    table.add(row);
  }
  const std::string text = table.text();
  std::size_t widest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    widest = std::max(widest, num_characters(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (widest > page_width) return {};
  return "\nconfusion matrix: a row for each true class, a column for each predicted one\n" + text;
}

std::string frequent_confusions(const ClassReport& report) {
  std::vector<train::ConfusedItems> wrong;
  for (const train::ConfusedItems& cell : report.confusion) {
    if (cell.truth != cell.predicted) wrong.push_back(cell);
  }
  std::stable_sort(wrong.begin(), wrong.end(),
                   [](const auto& a, const auto& b) { return a.items > b.items; });
  const std::size_t all = wrong.size();
  wrong.resize(std::min(all, most_confusions));
  Table table("llr");
  table.add({"true class", "predicted", "items"});
  for (const train::ConfusedItems& cell : wrong) {
    const auto name = [&](std::int64_t k) {
      return k < 0 ? "none" : short_name(report.classes[static_cast<std::size_t>(k)].name);
    };
    table.add({name(cell.truth), name(cell.predicted), grouped(cell.items)});
  }
  return fmt::format("\nthe most frequent confusions, {} of {}\n", wrong.size(), all) +
         table.text();
}

std::string calibration_table(const ClassReport& report) {
  if (!report.calibration_error) return {};
  Table table("lrrr");
  table.add({"probability", "count", "mean", "true"});
  for (std::size_t b = 0; b < report.calibration.size(); ++b) {
    const train::CalibrationBin& bin = report.calibration[b];
    if (bin.count == 0) continue;
    const double low = static_cast<double>(b) / ClassReport::num_bins;
    table.add({fmt::format("{:.1f} to {:.1f}", low, low + 1.0 / ClassReport::num_bins),
               grouped(bin.count), digits(bin.probability), digits(bin.share_true)});
  }
  const char* const what = report.multi_label ? "any label" : "the predicted class";
  return fmt::format("\ncalibration: the probability of {}, and how often it was true\n", what) +
         table.text();
}

}  // namespace

std::string class_report_text(const TitledReport& titled) {
  const ClassReport& report = titled.report;
  std::string text = summary(titled) + class_table(report);
  if (!report.multi_label) {
    const std::string matrix = confusion_matrix(report);
    text += matrix.empty() ? frequent_confusions(report) : matrix;
  }
  return text + calibration_table(report);
}

}  // namespace tessera::app
