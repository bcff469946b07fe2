// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/data/dataset.hpp"

#include "io/table_rows.hpp"
#include "io/table_values.hpp"

namespace tessera::io {

/// What a column of a table holds.
struct Column {
  std::string name;
  std::int64_t index = 0;     ///< in its table
  bool numeric = true;        ///< all values that are there are real numbers, or true or false
  bool integral = true;       ///< and all of them integers
  std::int64_t numbers = 0;   ///< values that are real numbers
  std::int64_t truths = 0;    ///< values that are true or false
  std::int64_t missing = 0;   ///< rows without a value
  std::string first_text;     ///< the first value that is neither
  std::int64_t text_at = -1;  ///< where in the file that is; -1: there is none
  std::vector<std::string> categories;  ///< of a column that is not numeric, or of truths; sorted

  bool holds_truths() const noexcept { return truths > 0 && numbers == 0 && numeric; }
};

/// Looks at all values of these columns. One with more than `most_texts` texts is an error that
/// tells to leave it out with `option`.
std::vector<Column> examine(TableRows& rows, const std::vector<std::int64_t>& columns,
                            std::size_t most_texts, const char* option, const Progress& progress);

/// Puts columns into a data set as features: a number as it is, the mean of the column where it is
/// missing; a text as one feature per category, 1 for its own and 0 for the others, all 0 where it
/// is missing. Notes say what was decided.
void add_features(TableRows& rows, const std::vector<Column>& columns, const Progress& progress,
                  Dataset& dataset);

/// Numbers that are no classes.
bool holds_fractions(const Column& column);

/// What a number with a comma is to be written as; empty for what is none.
std::string fix_of_comma(std::string_view field);

/// Puts a column into a data set as classes: integers as they are, texts numbered in their order;
/// -1 where it is missing.
void add_labels(TableRows& rows, const Column& column, const Progress& progress, Dataset& dataset);

/// A column that is in memory, one value per vertex.
struct TextColumn {
  std::string name;
  std::vector<std::string> values;
};
/// Adds columns to a data set by the same rules: the first that is called as labels are as labels,
/// the others as features. Texts that are no categories, because they are too many or all
/// different, are left out. Notes say what was decided.
void add_columns(const std::vector<TextColumn>& columns, Dataset& dataset);

/// Columns as features of edges, by the same rules but for labels: a row for each value. The notes
/// go to the data set, and say that they are about edges.
EdgeFeatures edge_features_of(const std::vector<TextColumn>& columns, Dataset& dataset);
EdgeFeatures edge_features_of(TableRows& rows, const std::vector<Column>& columns,
                              const Progress& progress, Dataset& dataset);

/// More texts than this in one column are no categories but names, or prose.
inline constexpr std::size_t max_categories = 256;

/// What columns of labels are called by those who make tables, in lower case.
inline const std::vector<std::string_view> label_words = {"label", "class", "target", "y"};

}  // namespace tessera::io
