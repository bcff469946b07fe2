// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tessera/train/metrics.hpp"

#include "io/csv_field.hpp"
#include "train/prediction_files.hpp"
#include "train/softmax_row.hpp"
#include "train/write_rows.hpp"

namespace tessera::train {
namespace {

void append_field(std::string& text, const std::string& name) {
  text.push_back(',');
  io::append_csv_field(text, name);
}

/// Empty where it is not a number.
void append_number(std::string& text, double probability) {
  text.push_back(',');
  if (!std::isnan(probability)) append_probability(text, probability);
}

void append_part(std::string& text, const Prediction& prediction, std::int64_t item) {
  text.push_back(',');
  text += to_string(prediction.parts[static_cast<std::size_t>(item)]);
}

/// The columns that are there beside those of every table: what nothing is known of has none.
struct Columns {
  Columns(const Prediction& prediction, PredictionForm form)
      : shares(form == PredictionForm::full),
        truth(shares && (!prediction.true_classes.empty() || prediction.true_labels != nullptr)),
        parts(shares && !prediction.parts.empty()) {}

  bool shares;
  bool truth;
  bool parts;
};

std::string class_head(const Prediction& prediction, const Columns& columns) {
  std::string text = "id,label,probability";
  if (columns.truth) text += ",true_label";
  if (columns.parts) text += ",split";
  if (columns.shares) {
    for (const std::string& name : output_names(prediction)) append_field(text, "p(" + name + ")");
  }
  return text;
}

void append_class(std::string& text, const Prediction& prediction, const Columns& columns,
                  std::int64_t item) {
  const auto place = static_cast<std::size_t>(item);
  const float* const logits = prediction.logits.row(item);
  const SoftmaxRow row(logits, prediction.logits.cols());
  const bool is_decided = predicted_class(prediction.logits, item) >= 0;
  text.push_back(',');
  if (is_decided) io::append_csv_field(text, class_name(prediction, prediction.classes[place]));
  append_number(text, row.highest_share());
  if (columns.truth) {
    text.push_back(',');
    const auto& truth = prediction.true_classes[place];
    if (truth) io::append_csv_field(text, class_name(prediction, *truth));
  }
  if (columns.parts) append_part(text, prediction, item);
  for (std::int64_t k = 0; columns.shares && k < prediction.logits.cols(); ++k) {
    append_number(text, row.share(logits[k]));
  }
}

std::string labels_head(const Prediction& prediction, const Columns& columns) {
  std::string text = "id";
  if (columns.parts) text += ",split";
  for (const std::string& name : output_names(prediction)) {
    append_field(text, "label(" + name + ")");
    if (columns.shares) append_field(text, "p(" + name + ")");
    if (columns.truth) append_field(text, "true_label(" + name + ")");
  }
  return text;
}

void append_labels(std::string& text, const Prediction& prediction, const Columns& columns,
                   std::int64_t item) {
  if (columns.parts) append_part(text, prediction, item);
  for (std::int64_t k = 0; k < prediction.logits.cols(); ++k) {
    const float logit = prediction.logits(item, k);
    text.push_back(',');
    if (!std::isnan(logit)) text.push_back(logit > 0 ? '1' : '0');
    if (columns.shares) append_number(text, sigmoid(logit));
    if (columns.truth) text += (*prediction.true_labels)(item, k) > 0 ? ",1" : ",0";
  }
}

}  // namespace

void write_prediction_csv(const Prediction& prediction, PredictionForm form,
                          const std::string& path) {
  const Columns columns(prediction, form);
  const bool several = prediction.multi_label;
  const std::string head =
      several ? labels_head(prediction, columns) : class_head(prediction, columns);
  write_rows(path, head + '\n', prediction.logits.rows(),
             [&](std::string& text, std::int64_t item) {
               io::append_csv_field(text, item_name(prediction, item));
               several ? append_labels(text, prediction, columns, item)
                       : append_class(text, prediction, columns, item);
               text.push_back('\n');
             });
}

std::int64_t num_formula_names(const Prediction& prediction) {
  std::int64_t count = 0;
  for (std::int64_t item = 0; item < prediction.logits.rows(); ++item) {
    count += io::is_formula(item_name(prediction, item)) ? 1 : 0;
  }
  return count;
}

}  // namespace tessera::train
