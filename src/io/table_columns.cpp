// SPDX-License-Identifier: Apache-2.0
#include "io/table_columns.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <span>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"
#include "tessera/data/classes.hpp"
#include "tessera/data/feature_columns.hpp"

#include "core/listing.hpp"
#include "io/reading_notes.hpp"
#include "io/target_columns.hpp"

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

/// What the values seen so far say about a column.
struct Findings {
  Column column;
  bool finite = true;       ///< all numbers are
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
    finite = finite && (!value || std::isfinite(*value));
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
    finite = finite && other.finite;
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

Column concluded(Findings&& found) {
  if (!found.column.numeric || found.column.holds_truths()) {
    found.column.categories.assign(found.texts.begin(), found.texts.end());
  }
  return std::move(found.column);
}

Column checked(Findings&& found, const TableRows& rows, std::size_t most_texts,
               const char* option) {
  const std::string& name = found.column.name;
  if (!found.column.numeric && found.only_commas) {
    throw Error(ErrorCode::bad_data, fmt::format("column '{}' holds numbers with commas", name),
                rows.path(), "write 0.5 for 0,5 and 1234 for 1,234");
  }
  if (!found.column.numeric && found.texts.size() > most_texts) {
    throw Error(ErrorCode::bad_data,
                fmt::format("column '{}' holds more than {} different texts", name, most_texts),
                rows.path(), fmt::format("leave it out with {} '{}'", option, name));
  }
  return concluded(std::move(found));
}

Column examined(const TextColumn& text) {
  Findings found;
  for (const std::string& value : text.values) found.see(value, 0, max_categories);
  found.column.name = text.name;
  found.column.numeric = found.column.numeric && found.finite;
  const std::int64_t present = std::ssize(text.values) - found.column.missing;
  const bool all_different = std::ssize(found.texts) == present && present > 2;
  if (all_different || found.texts.size() > max_categories) found.texts.clear();
  return concluded(std::move(found));
}

/// Of a field of a column of integers; below -1 where it is out of range. Also "2.0" and "2e0" are
/// integers, as floats.
std::int64_t class_number(std::string_view field) {
  std::int64_t number = 0;
  const char* const end = field.data() + field.size();
  if (scan_integer(field.data(), end, number) != end) {
    constexpr float largest_exact = 1 << 24;
    const float value = parse_value(field).value_or(-2.0f);
    number = std::abs(value) <= largest_exact ? static_cast<std::int64_t>(value) : -2;
  }
  return number < std::numeric_limits<std::int32_t>::max() ? number : -2;
}

/// Whether classes are numbers, and not the texts of a column.
bool is_numbered(const Column& column) { return column.numeric && !column.holds_truths(); }

/// The class of a field; -1 where it has none.
std::int64_t class_in(const Column& column, std::string_view field) {
  if (is_missing(field)) return -1;
  return is_numbered(column) ? class_number(field) : place_of(column, field);
}

/// Whole numbers of which there are more may be no classes.
constexpr std::int64_t most_numbered_classes = 10;

/// "'churn', 2 classes: 'no' and 'yes'"
std::string label_note(const Column& column, std::span<const std::int64_t> labels) {
  const std::int64_t classes = std::ssize(class_values(labels));
  std::vector<std::string> names;
  for (const std::string& category : column.categories) names.push_back(in_quotes(category));
  const bool may_be_numbers = is_numbered(column) && classes > most_numbered_classes;
  return note_about(
      about::labels,
      fmt::format("{}, {}{}", in_quotes(column.name), counted(classes, "class", "classes"),
                  may_be_numbers  ? ", one for each whole number (--task numbers predicts numbers)"
                  : names.empty() ? std::string()
                                  : ": " + listed(names)));
}

std::string in_small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Classes that may be meant as one.
void note_alike(const Names& classes, std::vector<std::string>& notes) {
  std::map<std::string, std::string> seen;
  for (std::int64_t k = 0; k < classes.size(); ++k) {
    const std::string name(classes[k]);
    const auto [other, is_new] = seen.emplace(in_small_letters(name), name);
    if (is_new) continue;
    notes.push_back(fmt::format("classes {} and {} differ in capital letters alone",
                                in_quotes(other->second), in_quotes(name)));
  }
}

void give_labels(Buffer<std::int64_t> labels, const Column& column, Dataset& dataset) {
  dataset.notes.push_back(label_note(column, labels.span()));
  const std::int64_t without = std::count(labels.begin(), labels.end(), -1);
  if (without > 0) {
    dataset.notes.push_back(note_without_label(without, labels.size(), "vertices"));
  }
  dataset.labels = ClassLabels(std::move(labels));
  dataset.class_names = Names(column.categories);
  note_alike(dataset.class_names, dataset.notes);
}

/// The features that columns become.
struct FeaturePlan {
  std::vector<std::int64_t> firsts;  ///< of each column
  std::vector<std::string> names;
  std::vector<std::int32_t> prefixes;
  std::vector<std::uint8_t> missing;  ///< whether any number is
  bool has_categories = false;

  explicit FeaturePlan(const std::vector<Column>& columns) {
    for (const Column& column : columns) {
      firsts.push_back(std::ssize(names));
      if (column.numeric) {
        add(column.name, -1, column.missing > 0);
        continue;
      }
      has_categories = true;
      for (const std::string& category : column.categories) {
        add(category_feature(column.name, category), static_cast<std::int32_t>(column.name.size()),
            false);
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

/// Writes what a field says to the features of its column, which are 0 before: not-a-number where a
/// number is missing.
void put(const Column& column, std::string_view field, float* features) {
  if (is_missing(field)) {
    if (column.numeric) *features = std::numeric_limits<float>::quiet_NaN();
  } else if (column.numeric) {
    *features = parse_value(field).value_or(std::numeric_limits<float>::infinity());
  } else if (const std::int64_t category = place_of(column, field); category >= 0) {
    features[category] = 1;
  }
}

/// Gives missing numbers, which are not-a-number, the mean of those that are there: sums go down
/// the columns. Returns the mean of every column that has `missing`.
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

/// The line of the first text of a column; 0: not known.
using LineOfText = FunctionRef<std::int64_t(const Column&)>;

/// "'colour' (2)", "'age' (3, as 'x' on line 4 is no number; 1 missing)"
std::string category_note(const Column& column, LineOfText line_of) {
  std::string text =
      fmt::format("{} ({}", in_quotes(column.name), grouped(std::ssize(column.categories)));
  if (column.numbers > 0) {
    // Finding the number of a line means to read the file.
    const std::int64_t line = column.text_at < 0 ? 0 : line_of(column);
    text += fmt::format(", as {}{} is no number", in_quotes(column.first_text),
                        line > 0 ? fmt::format(" on line {}", line) : std::string());
  }
  if (column.missing > 0) text += fmt::format("; {} missing", grouped(column.missing));
  return text + ")";
}

/// Says which columns became which kind of features, and what was filled in.
void note_features(const std::vector<Column>& columns, const FeaturePlan& plan,
                   const std::vector<float>& means, LineOfText line_of,
                   std::vector<std::string>& notes) {
  std::vector<std::string> numbers, mixed, texts, filled;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (!column.numeric) {
      (column.numbers > 0 ? mixed : texts).push_back(category_note(column, line_of));
      continue;
    }
    const std::string name = in_quotes(column.name);
    numbers.push_back(column.truths > 0 ? name + " (true is 1, false 0)" : name);
    if (column.missing == 0) continue;
    filled.push_back(fmt::format("{} ({} with {})", name, grouped(column.missing),
                                 means[static_cast<std::size_t>(plan.firsts[i])]));
  }
  if (!numbers.empty()) notes.push_back(note_about(about::numbers, listed(numbers)));
  // Those that a mistake may have made come first, as not all may be listed.
  mixed.insert(mixed.end(), texts.begin(), texts.end());
  if (!mixed.empty()) {
    notes.push_back(
        note_about(about::categories, "a feature for each different value of " + listed(mixed)));
  }
  if (!filled.empty()) {
    notes.push_back(note_about(
        about::filled_in, "missing numbers, with the mean of their column: " + listed(filled)));
  }
}

/// Fills in the numbers that are missing, and puts all into the data set.
void give_features(std::shared_ptr<Matrix<float>> matrix, const std::vector<Column>& columns,
                   const FeaturePlan& plan, LineOfText line_of, Dataset& dataset) {
  const std::vector<float> means = fill_with_means(*matrix, plan.missing, dataset.filled_cells);
  note_features(columns, plan, means, line_of, dataset.notes);
  dataset.features = DenseFeatures(std::move(matrix));
  dataset.feature_names = Names(plan.names);
  if (plan.has_categories) dataset.category_prefixes = plan.prefixes;
}

bool is_label_word(const std::string& name) {
  const std::string lower = lower_case(name);
  return std::find(label_words.begin(), label_words.end(), lower) != label_words.end();
}

/// False where the column is not called as labels are, or holds texts that are no classes.
bool take_labels(const TextColumn& text, const Column& column, Dataset& dataset) {
  if (!is_label_word(column.name) || text.values.empty()) return false;
  if (!is_numbered(column) && column.categories.empty()) return false;
  Buffer<std::int64_t> labels(std::ssize(text.values));
  std::transform(text.values.begin(), text.values.end(), labels.begin(),
                 [&](const std::string& value) { return class_in(column, value); });
  const bool are_classes = *std::min_element(labels.begin(), labels.end()) >= -1;
  if (holds_fractions(column)) {
    give_targets(text, dataset);
  } else if (are_classes) {
    give_labels(std::move(labels), column, dataset);
  } else {
    // What is to be found out must not be a feature.
    dataset.notes.push_back("the attribute " + in_quotes(column.name) +
                            " is left out: it is called as labels are, but holds no classes");
  }
  return true;
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
    findings[i].column.index = columns[i];
    findings[i].column.name = rows.name_of(columns[i]);
    result.push_back(checked(std::move(findings[i]), rows, most_texts, option));
  }
  return result;
}

void add_features(TableRows& rows, const std::vector<Column>& columns, const Progress& progress,
                  Dataset& dataset) {
  const FeaturePlan plan(columns);
  auto matrix = std::make_shared<Matrix<float>>(rows.num_rows(), std::ssize(plan.names));
  rows.for_each("reading features", progress, [&](RowCursor& cursor) {
    while (cursor.next() && cursor.row() < matrix->rows()) {
      float* const out = matrix->row(cursor.row());
      std::fill_n(out, matrix->cols(), 0.0f);
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const Column& column = columns[i];
        const std::string_view field = cursor.field(column.index);
        float* const features = out + plan.firsts[i];
        put(column, field, features);
        if (!column.numeric || std::isfinite(*features) || is_missing(field)) continue;
        throw LineProblem{cursor.at(),
                          fmt::format("'{}' in column '{}' is no finite number",
                                      field.substr(0, 40), column.name),
                          "give finite numbers, and nothing or NA where there is none"};
      }
    }
  });
  give_features(
      std::move(matrix), columns, plan,
      [&](const Column& column) { return rows.line_at(column.text_at); }, dataset);
}

bool holds_fractions(const Column& column) { return is_numbered(column) && !column.integral; }

std::string fix_of_comma(std::string_view field) {
  return is_number_with_comma(field) ? "write 0.5 for 0,5 and 1234 for 1,234" : "";
}

void add_labels(TableRows& rows, const Column& column, const Progress& progress, Dataset& dataset) {
  Buffer<std::int64_t> labels(rows.num_rows(), -1);
  rows.for_each("reading labels", progress, [&](RowCursor& cursor) {
    while (cursor.next() && cursor.row() < labels.size()) {
      const std::string_view field = cursor.field(column.index);
      const std::int64_t label = class_in(column, field);
      if (label < -1) {
        throw LineProblem{cursor.at(),
                          fmt::format("label '{}' is no class number", field.substr(0, 40)),
                          "use 0 and up, -1 or nothing for none, or texts"};
      }
      labels[cursor.row()] = label;
    }
  });
  give_labels(std::move(labels), column, dataset);
}

namespace {

/// `labelled`: no column is taken for the labels.
void add_text_columns(const std::vector<TextColumn>& texts, bool labelled, Dataset& dataset) {
  std::vector<Column> columns;
  std::vector<const TextColumn*> taken;
  std::vector<std::string> left_out, leaks;
  const bool may_leak = !labelled;
  for (const TextColumn& text : texts) {
    Column column = examined(text);
    if (!labelled && take_labels(text, column, dataset)) {
      labelled = true;
      continue;
    }
    if (!column.numeric && column.categories.empty()) {
      left_out.push_back(in_quotes(column.name));
      continue;
    }
    if (labelled && may_leak && is_label_word(column.name)) leaks.push_back(in_quotes(column.name));
    columns.push_back(std::move(column));
    taken.push_back(&text);
  }
  if (!left_out.empty()) {
    dataset.notes.push_back("attributes whose texts are no categories are left out: " +
                            listed(left_out));
  }
  if (!leaks.empty()) {
    dataset.notes.push_back("attributes that are called as labels are became features: " +
                            listed(leaks));
  }
  if (columns.empty()) return;
  const FeaturePlan plan(columns);
  const std::size_t rows = taken.front()->values.size();
  auto matrix = std::make_shared<Matrix<float>>(static_cast<std::int64_t>(rows),
                                                std::ssize(plan.names), 0.0f);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (std::size_t row = 0; row < rows; ++row) {
      put(columns[i], taken[i]->values[row],
          matrix->row(static_cast<std::int64_t>(row)) + plan.firsts[i]);
    }
  }
  give_features(
      std::move(matrix), columns, plan, [](const Column&) { return std::int64_t{0}; }, dataset);
}

/// What a table of edges holds, as if they were vertices, becomes features of edges.
EdgeFeatures as_edge_features(Dataset&& table, Dataset& dataset) {
  for (const std::string& note : table.notes) dataset.notes.push_back("of edges, " + note);
  const auto* const matrix = std::get_if<DenseFeatures>(&table.features);
  if (matrix == nullptr) return {};
  return {*matrix, std::move(table.feature_names), std::move(table.category_prefixes)};
}

}  // namespace

void add_columns(const std::vector<TextColumn>& columns, Dataset& dataset) {
  add_text_columns(columns, false, dataset);
}

EdgeFeatures edge_features_of(const std::vector<TextColumn>& columns, Dataset& dataset) {
  Dataset table;
  add_text_columns(columns, true, table);
  return as_edge_features(std::move(table), dataset);
}

EdgeFeatures edge_features_of(TableRows& rows, const std::vector<Column>& columns,
                              const Progress& progress, Dataset& dataset) {
  Dataset table;
  add_features(rows, columns, progress, table);
  return as_edge_features(std::move(table), dataset);
}

}  // namespace tessera::io
