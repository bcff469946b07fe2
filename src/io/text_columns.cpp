// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "tessera/data/feature_columns.hpp"

#include "core/listing.hpp"
#include "io/table_columns.hpp"
#include "io/table_notes.hpp"

namespace tessera::io {
namespace {

/// The values as numbers, not-a-number where one is missing; nothing where one is no finite number.
std::optional<std::vector<float>> as_numbers(const TextColumn& column) {
  std::vector<float> numbers;
  for (const std::string& text : column.values) {
    const auto number = is_missing(text) ? std::optional(std::nanf("")) : parse_value(text);
    if (!number || std::isinf(*number)) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

std::int64_t num_missing(const TextColumn& column) {
  return std::count_if(column.values.begin(), column.values.end(),
                       [](const std::string& text) { return is_missing(text); });
}

bool holds_truths(const TextColumn& column) {
  const auto is_truth = [](const std::string& text) { return parse_truth(text).has_value(); };
  return std::any_of(column.values.begin(), column.values.end(), is_truth) &&
         std::all_of(column.values.begin(), column.values.end(),
                     [&](const std::string& text) { return is_missing(text) || is_truth(text); });
}

/// Empty where they are too many, or all different.
std::vector<std::string> categories_of(const TextColumn& column) {
  std::vector<std::string> categories;
  for (const std::string& text : column.values) {
    if (!is_missing(text)) categories.emplace_back(category_of(text));
  }
  const std::size_t present = categories.size();
  std::sort(categories.begin(), categories.end());
  categories.erase(std::unique(categories.begin(), categories.end()), categories.end());
  const bool all_different = categories.size() == present && present > 2;
  if (all_different || categories.size() > max_categories) categories.clear();
  return categories;
}

/// Features as they are found, column by column.
class FeatureList {
 public:
  void add_numbers(const TextColumn& column, std::vector<float> numbers) {
    const std::int64_t missing = num_missing(column);
    ColumnReading reading{column.name, true, holds_truths(column), true, 0, missing, 0, {}, 0};
    if (missing > 0) filled_.emplace_back(readings_.size(), values_.size());
    add(column.name, -1, missing > 0, std::move(numbers));
    readings_.push_back(std::move(reading));
  }

  void add_categories(const TextColumn& column, const std::vector<std::string>& categories) {
    for (const std::string& category : categories) {
      std::vector<float> values;
      for (const std::string& text : column.values) {
        values.push_back(!is_missing(text) && category_of(text) == category ? 1.0f : 0.0f);
      }
      add(category_feature(column.name, category), static_cast<std::int32_t>(column.name.size()),
          false, std::move(values));
    }
    has_categories_ = true;
    const auto is_text = [](const std::string& text) {
      return !is_missing(text) && !parse_value(text);
    };
    const bool has_numbers =
        std::any_of(column.values.begin(), column.values.end(),
                    [](const std::string& text) { return !is_missing(text) && parse_value(text); });
    const auto text = std::find_if(column.values.begin(), column.values.end(), is_text);
    readings_.push_back({column.name, false, false, has_numbers, std::ssize(categories),
                         num_missing(column), 0,
                         text == column.values.end() ? std::string() : *text, 0});
  }

  void give(Dataset& dataset) {
    if (values_.empty()) return;
    auto matrix = std::make_shared<Matrix<float>>(std::ssize(values_.front()), std::ssize(values_));
    for (std::int64_t row = 0; row < matrix->rows(); ++row) {
      for (std::int64_t col = 0; col < matrix->cols(); ++col) {
        matrix->row(row)[col] =
            values_[static_cast<std::size_t>(col)][static_cast<std::size_t>(row)];
      }
    }
    const std::vector<float> means = fill_with_means(*matrix, missing_, dataset.filled_cells);
    for (const auto& [reading, feature] : filled_) readings_[reading].mean = means[feature];
    for (std::string& note : notes_on_columns(readings_)) dataset.notes.push_back(std::move(note));
    dataset.features = DenseFeatures(std::move(matrix));
    dataset.feature_names = Names(names_);
    if (has_categories_) dataset.category_prefixes = prefixes_;
  }

 private:
  void add(std::string name, std::int32_t prefix, bool is_missing, std::vector<float> values) {
    names_.push_back(std::move(name));
    prefixes_.push_back(prefix);
    missing_.push_back(is_missing ? 1 : 0);
    values_.push_back(std::move(values));
  }

  std::vector<std::string> names_;
  std::vector<std::int32_t> prefixes_;
  std::vector<std::uint8_t> missing_;
  std::vector<std::vector<float>> values_;
  std::vector<ColumnReading> readings_;
  std::vector<std::pair<std::size_t, std::size_t>> filled_;  ///< reading and feature
  bool has_categories_ = false;
};

void note_unlabelled(const std::vector<std::int64_t>& classes, Dataset& dataset) {
  const std::string note =
      note_on_unlabelled(std::count(classes.begin(), classes.end(), -1), std::ssize(classes));
  if (!note.empty()) dataset.notes.push_back(note);
}

bool is_label_word(const std::string& name) {
  const std::string lower = lower_case(name);
  return std::find(label_words.begin(), label_words.end(), lower) != label_words.end();
}

bool take_labels(const TextColumn& column, Dataset& dataset) {
  if (!is_label_word(column.name) || column.values.empty()) return false;
  const auto numbers = holds_truths(column) ? std::nullopt : as_numbers(column);
  std::vector<std::int64_t> classes;
  if (numbers && std::all_of(numbers->begin(), numbers->end(), [](float number) {
        return std::isnan(number) ||
               (number == std::floor(number) && number >= -1 && number < 0x7fffff00);
      })) {
    for (const float number : *numbers) {
      classes.push_back(std::isnan(number) ? -1 : static_cast<std::int64_t>(number));
    }
    note_unlabelled(classes, dataset);
    dataset.labels = ClassLabels(std::move(classes));
    return true;
  }
  // Fractions are no classes, and what is to be found out must not be a feature.
  if (numbers) {
    dataset.notes.push_back("the attribute " + quoted(column.name) +
                            " is left out: it is called as labels are, but holds no classes");
    return true;
  }
  const std::vector<std::string> categories = categories_of(column);
  if (categories.empty()) return false;
  for (const std::string& text : column.values) {
    const std::string_view name = category_of(text);
    const auto found = std::lower_bound(categories.begin(), categories.end(), name);
    const bool known = !is_missing(text) && found != categories.end() && *found == name;
    classes.push_back(known ? found - categories.begin() : -1);
  }
  note_unlabelled(classes, dataset);
  dataset.labels = ClassLabels(std::move(classes));
  dataset.class_names = Names(categories);
  return true;
}

}  // namespace

void add_columns(std::vector<TextColumn> columns, Dataset& dataset) {
  FeatureList features;
  std::vector<std::string> left_out, leaks;
  bool labelled = false;
  for (TextColumn& column : columns) {
    if (!labelled && take_labels(column, dataset)) {
      labelled = true;
      continue;
    }
    if (auto numbers = as_numbers(column)) {
      features.add_numbers(column, std::move(*numbers));
    } else if (const auto categories = categories_of(column); !categories.empty()) {
      features.add_categories(column, categories);
    } else {
      left_out.push_back(quoted(column.name));
      continue;
    }
    if (labelled && is_label_word(column.name)) leaks.push_back(quoted(column.name));
  }
  if (!left_out.empty()) {
    dataset.notes.push_back("attributes whose texts are no categories are left out: " +
                            listed(left_out));
  }
  if (!leaks.empty()) {
    dataset.notes.push_back("attributes that are called as labels are became features: " +
                            listed(leaks));
  }
  features.give(dataset);
}

}  // namespace tessera::io
