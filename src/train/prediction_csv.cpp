// SPDX-License-Identifier: Apache-2.0
#include "train/prediction_csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tessera::train {
namespace {

/// "-1.5", "+7": a number that begins like a formula.
bool is_signed_number(std::string_view text) {
  if (text.size() < 2 || (text[0] != '+' && text[0] != '-')) return false;
  text.remove_prefix(1);
  if (text[0] != '.' && (text[0] < '0' || text[0] > '9')) return false;
  double value = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem != std::errc::invalid_argument && stop == text.data() + text.size();
}

/// Whether a spreadsheet would run the field.
bool is_formula(std::string_view field) {
  constexpr std::string_view begins_formula = "=+-@\t\r\n";
  return !field.empty() && begins_formula.find(field[0]) != std::string_view::npos &&
         !is_signed_number(field);
}

/// A name as a field of CSV. An apostrophe before a formula makes it a text.
void append_field(std::string& text, std::string_view name) {
  const std::string field = (is_formula(name) ? "'" : "") + std::string(name);
  if (!field.empty() && field.find_first_of(",;\"\r\n#%/ \t") == std::string::npos) {
    text += field;
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
