// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/data/dataset.hpp"

#include "io/table_rows.hpp"

namespace tessera::io {

/// True for an empty field and for what programs write where there is no value: NA, NaN, null, None
/// and the like.
bool is_missing(std::string_view field);

/// What a column of a table holds.
struct Column {
  std::int64_t index = 0;
  bool numeric = true;                  ///< all values that are there are real numbers
  bool integral = true;                 ///< and all of them integers
  bool present = false;                 ///< there is a value at all
  std::vector<std::string> categories;  ///< of a column that is not numeric, sorted
};

/// Looks at all values of these columns. One with more than `most_texts` texts is an error that
/// tells to leave it out with `option`.
std::vector<Column> examine(TableRows& rows, const std::vector<std::int64_t>& columns,
                            std::size_t most_texts, const char* option, const Progress& progress);

/// Columns as features: a number as it is, the mean of the column where it is missing; a text as
/// one feature per category, 1 for its own and 0 for the others, all 0 where it is missing.
struct TableFeatures {
  std::shared_ptr<const Matrix<float>> values;
  Names names;
};
TableFeatures read_features(TableRows& rows, const std::vector<Column>& columns,
                            const Progress& progress);

/// A column as classes: integers as they are, texts numbered in their order; -1 where it is
/// missing.
struct TableLabels {
  ClassLabels classes;
  Names names;  ///< empty for integers
};
TableLabels read_labels(TableRows& rows, const Column& column, const Progress& progress);

/// A column that is in memory, one value per vertex.
struct TextColumn {
  std::string name;
  std::vector<std::string> values;
};
/// Adds columns to a data set by the same rules: the one called label, class or y as labels, the
/// others as features. Texts that are no categories, because they are too many or all different,
/// are left out.
void add_columns(std::vector<TextColumn> columns, Dataset& dataset);

/// More texts than this in one column are no categories but names, or prose.
inline constexpr std::size_t max_categories = 256;

/// What columns of labels are called by those who make tables.
bool is_label_word(std::string_view name);

}  // namespace tessera::io
