// SPDX-License-Identifier: Apache-2.0
#include "io/target_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/grouped.hpp"

#include "core/listing.hpp"
#include "io/reading_notes.hpp"

namespace tessera::io {
namespace {

constexpr float missing = std::numeric_limits<float>::quiet_NaN();

/// "'price', numbers to predict; 3 of 100 vertices have none"
std::string note_of(const Targets& targets) {
  const Matrix<float>& matrix = *targets.matrix;
  std::vector<std::string> names, gaps;
  for (std::int64_t j = 0; j < matrix.cols(); ++j) {
    const std::string name = in_quotes(targets.names[j]);
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < matrix.rows(); ++i) count += std::isnan(matrix(i, j)) ? 1 : 0;
    names.push_back(name);
    if (count > 0) gaps.push_back(fmt::format("{} ({})", name, grouped(count)));
  }
  std::string text = listed(names) + ", numbers to predict";
  if (!gaps.empty()) {
    text += fmt::format("; missing of {} vertices: {}", grouped(matrix.rows()), listed(gaps));
  }
  return note_about(about::labels, text);
}

void give(std::shared_ptr<Matrix<float>> matrix, const std::vector<std::string>& names,
          Dataset& dataset) {
  dataset.targets = {std::move(matrix), Names(names)};
  dataset.notes.push_back(note_of(dataset.targets));
}

}  // namespace

void add_targets(TableRows& rows, const std::vector<std::int64_t>& columns,
                 const Progress& progress, Dataset& dataset) {
  std::vector<std::string> names;
  for (const std::int64_t column : columns) names.push_back(rows.name_of(column));
  auto matrix = std::make_shared<Matrix<float>>(rows.num_rows(), std::ssize(columns), missing);
  rows.for_each("reading numbers to predict", progress, [&](RowCursor& cursor) {
    while (cursor.next() && cursor.row() < matrix->rows()) {
      for (std::size_t j = 0; j < columns.size(); ++j) {
        const std::string_view field = cursor.field(columns[j]);
        if (is_missing(field)) continue;
        const float value = parse_value(field).value_or(missing);
        if (!std::isfinite(value)) {
          const std::string comma = fix_of_comma(field);
          throw LineProblem{
              cursor.at(),
              fmt::format("'{}' in column '{}' is no finite number", field.substr(0, 40), names[j]),
              comma.empty() ? "give finite numbers, and nothing or NA where there is "
                              "none; classes are learned with --task node"
                            : comma};
        }
        matrix->row(cursor.row())[j] = value;
      }
    }
  });
  give(std::move(matrix), names, dataset);
}

void give_targets(const TextColumn& column, Dataset& dataset) {
  auto matrix = std::make_shared<Matrix<float>>(std::ssize(column.values), 1);
  std::transform(column.values.begin(), column.values.end(), matrix->data(),
                 [](const std::string& value) { return parse_value(value).value_or(missing); });
  give(std::move(matrix), {column.name}, dataset);
}

}  // namespace tessera::io
