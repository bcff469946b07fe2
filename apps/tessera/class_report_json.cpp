// SPDX-License-Identifier: Apache-2.0
#include "class_report.hpp"

namespace tessera::app {
namespace {

Json known(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

Json mean_json(const train::MeanQuality& mean) {
  return {{"precision", mean.precision},
          {"recall", mean.recall},
          {"f1", mean.f1},
          {"roc_auc", known(mean.roc_auc)},
          {"average_precision", known(mean.average_precision)}};
}

Json classes_json(const train::ClassReport& report) {
  Json classes = Json::array();
  for (const train::ClassQuality& quality : report.classes) {
    classes.push_back({{"name", quality.name},
                       {"support", quality.support},
                       {"predicted", quality.predicted},
                       {"found", quality.found},
                       {"precision", known(quality.precision)},
                       {"recall", known(quality.recall)},
                       {"f1", known(quality.f1)},
                       {"roc_auc", known(quality.roc_auc)},
                       {"average_precision", known(quality.average_precision)}});
  }
  return classes;
}

/// Nothing where probabilities are not known.
Json calibration_json(const train::ClassReport& report) {
  Json bins = Json::array();
  const auto width = 1.0 / static_cast<double>(report.calibration.size());
  for (std::size_t b = 0; report.calibration_error && b < report.calibration.size(); ++b) {
    const train::CalibrationBin& bin = report.calibration[b];
    const bool is_empty = bin.count == 0;
    bins.push_back({{"above", static_cast<double>(b) * width},
                    {"count", bin.count},
                    {"probability", is_empty ? Json() : Json(bin.probability)},
                    {"share_true", is_empty ? Json() : Json(bin.share_true)}});
  }
  return bins;
}

Json confusion_json(const train::ClassReport& report) {
  const auto name = [&](std::int64_t k) {
    return k < 0 ? Json() : Json(report.classes[static_cast<std::size_t>(k)].name);
  };
  Json cells = Json::array();
  for (const train::ConfusedItems& cell : report.confusion) {
    Json entry = Json::object();
    entry["true"] = name(cell.truth);
    entry["predicted"] = name(cell.predicted);
    entry["items"] = cell.items;
    cells.push_back(std::move(entry));
  }
  return cells;
}

}  // namespace

Json class_report_json(const TitledReport& titled) {
  const train::ClassReport& report = titled.report;
  Json json{{"report", "classes"},           {"schema", 1},
            {"name", titled.data},           {"model", titled.model},
            {"judged_on", titled.judged_on}, {"multi_label", report.multi_label},
            {"items", report.items},         {"undecided", report.undecided},
            {"accuracy", report.accuracy}};
  if (report.hamming_loss) json["hamming_loss"] = *report.hamming_loss;
  json["log_loss"] = known(report.log_loss);
  json["calibration_error"] = known(report.calibration_error);
  json["macro"] = mean_json(report.macro);
  json["weighted"] = mean_json(report.weighted);
  if (report.micro) json["micro"] = mean_json(*report.micro);
  json["classes"] = classes_json(report);
  if (!report.multi_label) json["confusion"] = confusion_json(report);
  json["calibration"] = calibration_json(report);
  return json;
}

}  // namespace tessera::app
