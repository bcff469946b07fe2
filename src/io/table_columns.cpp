// SPDX-License-Identifier: Apache-2.0
#include "io/table_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::io {
namespace {

constexpr std::string_view missing_words[] = {"",     "NA",   "N/A",  "NaN",  "nan", "NAN",
                                              "null", "NULL", "Null", "None", "?",   "-"};

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
  bool numeric = true;
  bool integral = true;
  bool present = false;
  bool only_commas = true;  ///< what is no number would be one without its comma
  std::set<std::string, std::less<>> texts;

  void see(std::string_view field, std::size_t max_texts) {
    if (is_missing(field)) return;
    present = true;
    const auto value = parse_any_real(field);
    numeric = numeric && value.has_value();
    integral = integral && value && is_whole(*value);
    only_commas = only_commas && (value || is_number_with_comma(field));
    // Numbers are texts as well, if there is a text among them; one more than allowed is enough.
    if (texts.size() <= max_texts && texts.find(field) == texts.end()) texts.emplace(field);
  }
  void join(Findings&& other, std::size_t max_texts) {
    numeric = numeric && other.numeric;
    integral = integral && other.integral;
    present = present || other.present;
    only_commas = only_commas && other.only_commas;
    if (texts.size() <= max_texts) texts.merge(other.texts);
  }
};

std::int64_t category_of(const Column& column, std::string_view field) {
  const auto found = std::lower_bound(column.categories.begin(), column.categories.end(), field);
  return found != column.categories.end() && *found == field ? found - column.categories.begin()
                                                             : -1;
}

void fill_missing_with_mean(Matrix<float>& matrix, std::int64_t column) {
  double sum = 0;
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    const float value = matrix.row(row)[column];
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  const auto mean = static_cast<float>(count == 0 ? 0.0 : sum / static_cast<double>(count));
  if (count == matrix.rows()) return;
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    float& value = matrix.row(row)[column];
    if (std::isnan(value)) value = mean;
  }
}

}  // namespace

bool is_missing(std::string_view field) {
  return std::find(std::begin(missing_words), std::end(missing_words), field) !=
         std::end(missing_words);
}

std::vector<Column> examine(TableRows& rows, const std::vector<std::int64_t>& columns,
                            std::size_t most_texts, const char* option, const Progress& progress) {
  std::vector<Findings> findings(columns.size());
  std::mutex mutex;
  rows.for_each("examining columns", progress, [&](RowCursor& cursor) {
    std::vector<Findings> local(columns.size());
    while (cursor.next()) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        local[i].see(cursor.field(columns[i]), most_texts);
      }
    }
    const std::scoped_lock lock(mutex);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      findings[i].join(std::move(local[i]), most_texts);
    }
  });
  std::vector<Column> result;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Findings& found = findings[i];
    if (!found.numeric && found.only_commas) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("column '{}' holds numbers with commas", rows.name_of(columns[i])),
                  rows.path(), "write 0.5 for 0,5 and 1234 for 1,234");
    }
    if (!found.numeric && found.texts.size() > most_texts) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("column '{}' holds more than {} different texts",
                              rows.name_of(columns[i]), most_texts),
                  rows.path(),
                  fmt::format("leave it out with {} '{}'", option, rows.name_of(columns[i])));
    }
    result.push_back({columns[i], found.numeric, found.integral, found.present, {}});
    if (!found.numeric) result.back().categories.assign(found.texts.begin(), found.texts.end());
  }
  return result;
}

TableFeatures read_features(TableRows& rows, const std::vector<Column>& columns,
                            const Progress& progress) {
  std::vector<std::int64_t> firsts;
  std::vector<std::string> names;
  for (const Column& column : columns) {
    firsts.push_back(std::ssize(names));
    const std::string name = rows.name_of(column.index);
    if (column.numeric) names.push_back(name);
    for (const std::string& category : column.categories) names.push_back(name + "=" + category);
  }
  auto matrix = std::make_shared<Matrix<float>>(rows.num_rows(), std::ssize(names));
  rows.for_each("reading features", progress, [&](RowCursor& cursor) {
    while (cursor.next() && cursor.row() < matrix->rows()) {
      float* const out = matrix->row(cursor.row());
      std::fill_n(out, matrix->cols(), 0.0f);
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const Column& column = columns[i];
        const std::string_view field = cursor.field(column.index);
        const bool missing = is_missing(field);
        if (column.numeric) {
          const auto value =
              missing ? std::optional(std::numeric_limits<float>::quiet_NaN()) : parse_real(field);
          out[firsts[i]] = value.value_or(std::numeric_limits<float>::infinity());
          if (!missing && !std::isfinite(out[firsts[i]])) {
            throw LineProblem{cursor.at(),
                              fmt::format("'{}' in column '{}' is no finite number",
                                          field.substr(0, 40), rows.name_of(column.index)),
                              "give finite numbers, and nothing or NA where there is none"};
          }
        } else if (!missing) {
          const std::int64_t category = category_of(column, field);
          if (category >= 0) out[firsts[i] + category] = 1;
        }
      }
    }
  });
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].numeric) fill_missing_with_mean(*matrix, firsts[i]);
  }
  return {matrix, Names(names)};
}

TableLabels read_labels(TableRows& rows, const Column& column, const Progress& progress) {
  const bool integers = column.numeric && column.integral;
  if (column.numeric && !integers) {
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
        labels[cursor.row()] = category_of(column, field);
        continue;
      }
      const double value = parse_real(field).value_or(-2);
      if (value < -1 || value >= std::numeric_limits<std::int32_t>::max()) {
        throw LineProblem{cursor.at(),
                          fmt::format("label '{}' is no class number", field.substr(0, 40)),
                          "use 0 and up, -1 or nothing for none, or texts"};
      }
      labels[cursor.row()] = static_cast<std::int64_t>(value);
    }
  });
  return {std::move(labels), Names(column.categories)};
}

}  // namespace tessera::io
