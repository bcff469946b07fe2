// SPDX-License-Identifier: Apache-2.0
#include "train/prediction_csv.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace tessera::train {
namespace {

void append_field(std::string& text, std::string_view field) {
  const bool plain =
      !field.empty() && field.find_first_of(",\"\r\n#%/ \t") == std::string_view::npos;
  if (plain) {
    text.append(field);
    return;
  }
  text.push_back('"');
  for (const char c : field) {
    if (c == '"') text.push_back('"');
    text.push_back(c);
  }
  text.push_back('"');
}

/// The name of a number, where there are names.
void append_name(std::string& text, const Names& names, std::int64_t number) {
  if (number >= 0 && number < names.size()) {
    append_field(text, names[number]);
  } else {
    text += std::to_string(number);
  }
}

/// The share of the largest logit in the softmax of its row.
double probability_of_best(const float* logits, std::int64_t classes) {
  const float highest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (std::int64_t k = 0; k < classes; ++k)
    sum += std::exp(static_cast<double>(logits[k]) - highest);
  return 1 / sum;
}

}  // namespace

std::string prediction_csv(const Prediction& prediction) {
  std::string text = "id,label,probability\n";
  for (std::size_t i = 0; i < prediction.classes.size(); ++i) {
    const auto item = static_cast<std::int64_t>(i);
    append_name(text, prediction.item_names, item);
    text.push_back(',');
    append_name(text, prediction.class_names, prediction.classes[i]);
    text += fmt::format(",{:.6g}\n",
                        probability_of_best(prediction.logits.row(item), prediction.logits.cols()));
  }
  return text;
}

}  // namespace tessera::train
