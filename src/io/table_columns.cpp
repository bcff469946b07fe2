// SPDX-License-Identifier: Apache-2.0
#include "io/table_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/data/feature_columns.hpp"

#include "io/table_notes.hpp"

namespace tessera::io {
namespace {

bool is_whole(float value) { return std::isfinite(value) && value == std::floor(value); }

/// True for "0,5" and "1,234", which are no numbers here.
bool is_number_with_comma(std::string_view field) {
  const std::size_t comma = field.find(',');
  if (comma == std::string_view::npos) return false;
  std::string with_point(field);
  with_point[comma] = '.';
  return parse_any_real(with_point).has_value();
}

/// What a chunk says about a column.
struct Findings {
  Column column;
  bool only_commas = true;  ///< what is no number would be one without its comma
  std::set<std::string, std::less<>> texts;

  void see(std::string_view field, std::int64_t offset, std::size_t max_texts) {
    if (is_missing(field)) {
      ++column.missing;
      return;
    }
    const bool is_truth = parse_truth(field).has_value();
    const auto value = parse_value(field);
    if (value) ++(is_truth ? column.truths : column.numbers);
    column.numeric = column.numeric && value;
    column.integral = column.integral && value && is_whole(*value);
    only_commas = only_commas && (value || is_number_with_comma(field));
    if (!value && column.text_at < 0) {
      column.text_at = offset;
      column.first_text = field;
    }
    // Numbers are texts as well, if there is a text among them; one more than allowed is enough.
    const std::string_view text = category_of(field);
    if (texts.size() <= max_texts && texts.find(text) == texts.end()) texts.emplace(text);
  }
  void join(Findings&& other, std::size_t max_texts) {
    column.numeric = column.numeric && other.column.numeric;
    column.integral = column.integral && other.column.integral;
    column.numbers += other.column.numbers;
    column.truths += other.column.truths;
    column.missing += other.column.missing;
    if (other.column.text_at >= 0 &&
        (column.text_at < 0 || other.column.text_at < column.text_at)) {
      column.text_at = other.column.text_at;
      column.first_text = std::move(other.column.first_text);
    }
    only_commas = only_commas && other.only_commas;
    if (texts.size() <= max_texts) texts.merge(other.texts);
  }
};

std::int64_t place_of(const Column& column, std::string_view field) {
  const std::string_view text = category_of(field);
  const auto found = std::lower_bound(column.categories.begin(), column.categories.end(), text);
  return found != column.categories.end() && *found == text ? found - column.categories.begin()
                                                            : -1;
}

Column checked(Findings&& found, const TableRows& rows, std::int64_t index, std::size_t most_texts,
               const char* option) {
  const std::string name = rows.name_of(index);
  if (!found.column.numeric && found.only_commas) {
    throw Error(ErrorCode::bad_data, fmt::format("column '{}' holds numbers with commas", name),
                rows.path(), "write 0.5 for 0,5 and 1234 for 1,234");
  }
  if (!found.column.numeric && found.texts.size() > most_texts) {
    throw Error(ErrorCode::bad_data,
                fmt::format("column '{}' holds more than {} different texts", name, most_texts),
                rows.path(), fmt::format("leave it out with {} '{}'", option, name));
  }
  found.column.index = index;
  if (!found.column.numeric || found.column.holds_truths()) {
    found.column.categories.assign(found.texts.begin(), found.texts.end());
  }
  return std::move(found.column);
}

/// A number of a column of numbers; not-a-number where it is missing.
float number_in(const RowCursor& cursor, const TableRows& rows, std::int64_t column) {
  const std::string_view field = cursor.field(column);
  if (is_missing(field)) return std::numeric_limits<float>::quiet_NaN();
  const auto value = parse_value(field);
  if (value && std::isfinite(*value)) return *value;
  throw LineProblem{cursor.at(),
                    fmt::format("'{}' in column '{}' is no finite number", field.substr(0, 40),
                                rows.name_of(column)),
                    "give finite numbers, and nothing or NA where there is none"};
}

/// Of a field of a column of integers; below -1 where it is out of range. Also "2.0" and "2e0" are
/// integers, as floats.
std::int64_t class_number(std::string_view field) {
  std::int64_t number = 0;
  const char* const end = field.data() + field.size();
  if (scan_integer(field.data(), end, number) == end) return number;
  constexpr float largest_exact = 1 << 24;
  const float value = parse_value(field).value_or(-2.0f);
  return std::abs(value) <= largest_exact ? static_cast<std::int64_t>(value) : -2;
}

/// The features that columns become.
struct FeaturePlan {
  std::vector<std::int64_t> firsts;  ///< of each column
  std::vector<std::string> names;
  std::vector<std::int32_t> prefixes;
  std::vector<std::uint8_t> missing;  ///< whether any number is
  bool has_categories = false;

  FeaturePlan(const TableRows& rows, const std::vector<Column>& columns) {
    for (const Column& column : columns) {
      firsts.push_back(std::ssize(names));
      const std::string name = rows.name_of(column.index);
      if (column.numeric) {
        add(name, -1, column.missing > 0);
        continue;
      }
      has_categories = true;
      for (const std::string& category : column.categories) {
        add(category_feature(name, category), static_cast<std::int32_t>(name.size()), false);
      }
    }
  }

 private:
  void add(std::string name, std::int32_t prefix, bool is_missing) {
    names.push_back(std::move(name));
    prefixes.push_back(prefix);
    missing.push_back(is_missing ? 1 : 0);
  }
};

std::vector<ColumnReading> readings(const TableRows& rows, const std::vector<Column>& columns,
                                    const FeaturePlan& plan, const std::vector<float>& means) {
  std::vector<ColumnReading> all;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    ColumnReading reading{rows.name_of(column.index),
                          column.numeric,
                          column.truths > 0,
                          column.numbers > 0,
                          std::ssize(column.categories),
                          column.missing,
                          0,
                          column.first_text,
                          0};
    if (column.numeric) reading.mean = means[static_cast<std::size_t>(plan.firsts[i])];
    // Where the line would be said: finding its number means to read the file.
    if (column.text_at >= 0 && column.numbers > 0) reading.text_line = rows.line_at(column.text_at);
    all.push_back(std::move(reading));
  }
  return all;
}

}  // namespace

std::vector<Column> examine(TableRows& rows, const std::vector<std::int64_t>& columns,
                            std::size_t most_texts, const char* option, const Progress& progress) {
  std::vector<Findings> findings(columns.size());
  std::mutex mutex;
  rows.for_each("examining columns", progress, [&](RowCursor& cursor) {
    std::vector<Findings> local(columns.size());
    while (cursor.next()) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        local[i].see(cursor.field(columns[i]), cursor.offset(), most_texts);
      }
    }
    const std::scoped_lock lock(mutex);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      findings[i].join(std::move(local[i]), most_texts);
    }
  });
  std::vector<Column> result;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    result.push_back(checked(std::move(findings[i]), rows, columns[i], most_texts, option));
  }
  return result;
}

std::vector<float> fill_with_means(Matrix<float>& matrix, const std::vector<std::uint8_t>& missing,
                                   SharedArray<std::int64_t>& filled_cells) {
  std::vector<float> means(missing.size(), 0.0f);
  for (std::int64_t j = 0; j < matrix.cols(); ++j) {
    if (missing[static_cast<std::size_t>(j)] == 0) continue;
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t row = 0; row < matrix.rows(); ++row) {
      const float value = matrix.row(row)[j];
      if (std::isnan(value)) continue;
      sum += value;
      ++count;
    }
    if (count > 0) {
      means[static_cast<std::size_t>(j)] = static_cast<float>(sum / static_cast<double>(count));
    }
  }
  std::vector<std::int64_t> cells;
  for (std::int64_t cell = 0; cell < matrix.size(); ++cell) {
    if (!std::isnan(matrix.data()[cell])) continue;
    matrix.data()[cell] = means[static_cast<std::size_t>(cell % matrix.cols())];
    cells.push_back(cell);
  }
  filled_cells = std::move(cells);
  return means;
}

void add_features(TableRows& rows, const std::vector<Column>& columns, const Progress& progress,
                  Dataset& dataset) {
  const FeaturePlan plan(rows, columns);
  auto matrix = std::make_shared<Matrix<float>>(rows.num_rows(), std::ssize(plan.names));
  rows.for_each("reading features", progress, [&](RowCursor& cursor) {
    while (cursor.next() && cursor.row() < matrix->rows()) {
      float* const out = matrix->row(cursor.row());
      std::fill_n(out, matrix->cols(), 0.0f);
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const Column& column = columns[i];
        if (column.numeric) {
          out[plan.firsts[i]] = number_in(cursor, rows, column.index);
        } else if (!is_missing(cursor.field(column.index))) {
          const std::int64_t category = place_of(column, cursor.field(column.index));
          if (category >= 0) out[plan.firsts[i] + category] = 1;
        }
      }
    }
  });
  const std::vector<float> means = fill_with_means(*matrix, plan.missing, dataset.filled_cells);
  for (std::string& note : notes_on_columns(readings(rows, columns, plan, means))) {
    dataset.notes.push_back(std::move(note));
  }
  dataset.features = DenseFeatures(std::move(matrix));
  dataset.feature_names = Names(plan.names);
  if (plan.has_categories) dataset.category_prefixes = plan.prefixes;
}

void add_labels(TableRows& rows, const Column& column, const Progress& progress, Dataset& dataset) {
  const bool integers = column.numeric && !column.holds_truths();
  if (integers && !column.integral) {
    throw Error(ErrorCode::unsupported,
                fmt::format("column '{}' holds fractions, which are no classes",
                            rows.name_of(column.index)),
                rows.path(), "name a column of classes with --label, or give --label none");
  }
  Buffer<std::int64_t> labels(rows.num_rows(), -1);
  rows.for_each("reading labels", progress, [&](RowCursor& cursor) {
    while (cursor.next() && cursor.row() < labels.size()) {
      const std::string_view field = cursor.field(column.index);
      if (is_missing(field)) continue;
      if (!integers) {
        labels[cursor.row()] = place_of(column, field);
        continue;
      }
      const std::int64_t value = class_number(field);
      if (value < -1 || value >= std::numeric_limits<std::int32_t>::max()) {
        throw LineProblem{cursor.at(),
                          fmt::format("label '{}' is no class number", field.substr(0, 40)),
                          "use 0 and up, -1 or nothing for none, or texts"};
      }
      labels[cursor.row()] = value;
    }
  });
  const std::int64_t unlabelled = std::count(labels.begin(), labels.end(), -1);
  const std::string note = note_on_unlabelled(unlabelled, labels.size());
  if (!note.empty()) dataset.notes.push_back(note);
  dataset.labels = ClassLabels(std::move(labels));
  dataset.class_names = Names(column.categories);
}

}  // namespace tessera::io
