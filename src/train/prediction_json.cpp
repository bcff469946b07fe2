// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tessera/train/metrics.hpp"

#include "io/json_text.hpp"
#include "train/prediction_files.hpp"
#include "train/softmax_row.hpp"
#include "train/write_rows.hpp"

namespace tessera::train {
namespace {

void append_number(std::string& text, double probability) {
  if (std::isnan(probability)) {
    text += "null";
  } else {
    append_probability(text, probability);
  }
}

/// A list of what is appended, in brackets and between commas; nothing appended is no element.
template <class Append>
void append_list(std::string& text, std::int64_t count, Append&& append) {
  text.push_back('[');
  const std::size_t begin = text.size();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t before = text.size();
    append(i);
    if (text.size() > before && before > begin) text.insert(before, ", ");
  }
  text.push_back(']');
}

/// The items of a prediction as objects, a line each.
class Items {
 public:
  Items(const Prediction& prediction, PredictionForm form)
      : p_(prediction),
        outputs_(output_names(prediction)),
        is_full_(form == PredictionForm::full) {}

  std::string head() const {
    std::string text = std::string("{\n\"task\": \"") + (p_.graph_task ? "graph" : "node") +
                       "\",\n\"multi_label\": " + (p_.multi_label ? "true" : "false") +
                       ",\n\"classes\": ";
    append_list(text, std::ssize(outputs_), [&](std::int64_t k) { append_output(text, k); });
    return text + ",\n\"items\": [";
  }

  void append(std::string& text, std::int64_t item) const {
    text += item == 0 ? "\n{\"id\": " : ",\n{\"id\": ";
    if (p_.item_names.empty()) {
      text += std::to_string(item);
    } else {
      io::append_json_text(text, item_name(p_, item));
    }
    p_.multi_label ? append_labels(text, item) : append_class(text, item);
    text.push_back('}');
  }

 private:
  void append_output(std::string& text, std::int64_t k) const {
    io::append_json_text(text, outputs_[static_cast<std::size_t>(k)]);
  }

  void append_part(std::string& text, std::int64_t item) const {
    if (p_.parts.empty()) return;
    const SplitPart part = p_.parts[static_cast<std::size_t>(item)];
    text += ", \"split\": ";
    text += part == SplitPart::none ? "null" : std::string("\"") + to_string(part) + '"';
  }

  void append_class(std::string& text, std::int64_t item) const {
    const auto place = static_cast<std::size_t>(item);
    const float* const logits = p_.logits.row(item);
    const SoftmaxRow row(logits, p_.logits.cols());
    text += ", \"label\": ";
    const bool is_decided = predicted_class(p_.logits, item) >= 0;
    append_class_name(text, is_decided ? std::optional(p_.classes[place]) : std::nullopt);
    text += ", \"probability\": ";
    append_number(text, row.highest_share());
    if (!is_full_) return;
    if (!p_.true_classes.empty()) {
      text += ", \"true_label\": ";
      append_class_name(text, p_.true_classes[place]);
    }
    append_part(text, item);
    text += ", \"probabilities\": ";
    append_list(text, p_.logits.cols(),
                [&](std::int64_t k) { append_number(text, row.share(logits[k])); });
  }

  void append_class_name(std::string& text, const std::optional<std::int64_t>& number) const {
    number ? io::append_json_text(text, class_name(p_, *number)) : void(text += "null");
  }

  void append_labels(std::string& text, std::int64_t item) const {
    append_those_on(text, "labels", p_.logits.row(item));
    if (!is_full_) return;
    if (p_.true_labels != nullptr) append_those_on(text, "true_labels", p_.true_labels->row(item));
    append_part(text, item);
    text += ", \"probabilities\": ";
    append_list(text, p_.logits.cols(),
                [&](std::int64_t k) { append_number(text, sigmoid(p_.logits(item, k))); });
  }

  void append_those_on(std::string& text, const char* key, const float* values) const {
    text += std::string(", \"") + key + "\": ";
    append_list(text, p_.logits.cols(), [&](std::int64_t k) {
      if (values[k] > 0) append_output(text, k);
    });
  }

  const Prediction& p_;
  std::vector<std::string> outputs_;
  bool is_full_;
};

}  // namespace

void write_prediction_json(const Prediction& prediction, PredictionForm form,
                           const std::string& path) {
  const Items items(prediction, form);
  write_rows(
      path, items.head(), prediction.logits.rows(),
      [&](std::string& text, std::int64_t item) { items.append(text, item); }, "\n]\n}\n");
}

}  // namespace tessera::train
