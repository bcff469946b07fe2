// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "io/text_array.hpp"
#include "train/prediction_files.hpp"

namespace tessera::train {
namespace {

std::string name_of(const Names& names, std::int64_t number) {
  return number >= 0 && number < names.size() ? std::string(names[number]) : fmt::to_string(number);
}

}  // namespace

std::string class_name(const Prediction& prediction, std::int64_t number) {
  return name_of(prediction.class_names, number);
}

std::string item_name(const Prediction& prediction, std::int64_t item) {
  return name_of(prediction.item_names, item);
}

std::vector<std::string> output_names(const Prediction& prediction) {
  std::vector<std::string> names;
  for (const std::int64_t number : prediction.class_values) {
    names.push_back(class_name(prediction, number));
  }
  return names;
}

void append_probability(std::string& text, double probability) {
  fmt::format_to(std::back_inserter(text), "{:.6g}", probability);
}

void add_item_names(const Prediction& prediction, std::vector<io::NamedArray>& arrays) {
  const Names& names = prediction.item_names;
  if (names.empty()) return;
  std::vector<std::string_view> ids;
  for (std::int64_t item = 0; item < names.size(); ++item) ids.push_back(names[item]);
  arrays.push_back(io::text_array("id", ids));
}

io::NamedArray borrowed(std::string name, const Matrix<float>& matrix) {
  return {std::move(name),
          io::stored(std::shared_ptr<const Matrix<float>>(&matrix, [](const auto*) {}))};
}

}  // namespace tessera::train
