// SPDX-License-Identifier: Apache-2.0
#include "io/table_layout.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/listing.hpp"
#include "io/table_values.hpp"
#include "io/text.hpp"

namespace tessera::io {
namespace {

constexpr std::size_t sample_lines = 64;

/// The characters that part fields, those first that occur in fewer texts by chance.
constexpr char separators[] = {'\t', ',', ';', '|'};

/// How often a line has a character outside of quotes.
std::int64_t count_unquoted(std::string_view line, char wanted) {
  std::int64_t count = 0;
  bool quoted = false;
  for (const char c : line) {
    quoted = quoted != (c == '"');
    count += !quoted && c == wanted ? 1 : 0;
  }
  return count;
}

/// The one that most lines have, if more than half of them do; of equals the one that they have
/// most often, as the other may stand in decimal numbers or in names.
char find_separator(const std::vector<std::string_view>& lines) {
  char best = ' ';
  std::pair<std::int64_t, std::int64_t> most(std::ssize(lines) / 2 + 1, 0);
  for (const char separator : separators) {
    std::pair<std::int64_t, std::int64_t> found(0, 0);  // lines that have it, times
    for (const std::string_view line : lines) {
      const std::int64_t times = count_unquoted(line, separator);
      found.first += times > 0 ? 1 : 0;
      found.second += times;
    }
    if (found > most) {
      best = separator;
      most = found;
    }
  }
  return best;
}

std::vector<std::string_view> first_lines(std::string_view head, std::vector<std::size_t>& begins) {
  std::vector<std::string_view> lines;
  for (std::string_view rest = head; !rest.empty() && lines.size() < sample_lines;) {
    const std::string_view line = take_line(rest);
    const char* const end = line.data() + line.size();
    if (is_remark(skip_blanks(line.data(), end), end)) continue;
    begins.push_back(static_cast<std::size_t>(line.data() - head.data()));
    lines.push_back(line);
  }
  return lines;
}

/// Tables have no control characters but tabs and the ends of lines.
bool is_text(std::string_view line) {
  return std::none_of(line.begin(), line.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < ' ' && (code < '\t' || code > '\r');
  });
}

using Row = std::vector<std::string>;

bool has_any(const Row& row, const std::vector<std::string_view>& words) {
  return std::any_of(row.begin(), row.end(), [&](const std::string& field) {
    return std::find(words.begin(), words.end(), lower_case(field)) != words.end();
  });
}

bool has_any_of_given(const Row& row, const std::vector<std::string>& names) {
  return std::any_of(row.begin(), row.end(), [&](const std::string& field) {
    return std::find(names.begin(), names.end(), field) != names.end();
  });
}

/// Of what says that a value is missing, some would be numbers: NaN.
bool is_number(const std::string& field) { return is_real(field) && !is_missing(field); }

/// True for the numbers by which programs call columns that have no names: 0, 1, 2, …
bool count_columns(const Row& row) {
  std::set<std::string> numbers;
  for (const std::string& field : row) {
    if (is_number(field) && (!is_integer(field) || !numbers.insert(field).second)) return false;
  }
  return true;
}

/// A word above a column that has numbers or truth values, and nothing else.
bool names_a_column_of_values(const std::vector<Row>& rows, std::size_t column) {
  if (is_missing(rows.front()[column]) || parse_truth(rows.front()[column])) return false;
  bool has_values = false;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (column >= rows[i].size()) return false;
    const std::string& field = rows[i][column];
    if (is_missing(field)) continue;
    if (!is_real(field) && !parse_truth(field)) return false;
    has_values = true;
  }
  return has_values;
}

bool looks_like_header(const std::vector<Row>& rows, const HeaderWords& words) {
  const Row& first = rows.front();
  if (has_any_of_given(first, words.given)) return true;
  if (std::any_of(first.begin(), first.end(), is_number)) {
    return has_any(first, words.ids) && count_columns(first);
  }
  if (has_any(first, words.known)) return true;
  const auto is_no_name = [](const std::string& field) {
    return !field.empty() && is_missing(field);
  };
  if (std::any_of(first.begin(), first.end(), is_no_name)) return false;
  for (std::size_t column = 0; column < first.size(); ++column) {
    if (names_a_column_of_values(rows, column)) return true;
  }
  return false;
}

}  // namespace

const char* FieldScanner::fail_after_field(const char* at) {
  throw LineProblem{at, "goes on after a field in quotes", "put a separator after the quotes"};
}

const char* FieldScanner::scan_quoted(const char* at, const char* end, std::string& scratch,
                                      std::string_view& field) const {
  const char* const open = at++;
  scratch.clear();
  for (;;) {
    const char* const begin = at;
    while (at != end && *at != '"' && *at != '\n') ++at;
    if (at == end || *at == '\n') {
      throw LineProblem{open, "a quote is not closed on its line",
                        "keep every row of the table on one line"};
    }
    const std::string_view part(begin, static_cast<std::size_t>(at - begin));
    ++at;
    const bool doubled = at != end && *at == '"';
    if (!doubled && scratch.empty()) {
      field = part;
      return at;
    }
    scratch.append(part);
    if (!doubled) break;
    scratch += '"';
    ++at;
  }
  field = scratch;
  return at;
}

const char* FieldScanner::scan(const char* at, const char* end, std::string& scratch,
                               std::string_view& field) const {
  at = skip_padding(at, end);
  if (at != end && *at == '"') return scan_quoted(at, end, scratch, field);
  const char* const begin = at;
  if (by_blanks()) {
    while (at != end && *at != '\n' && !is_blank(*at)) ++at;
    field = {begin, static_cast<std::size_t>(at - begin)};
    return at;
  }
  while (at != end && *at != '\n' && *at != separator_) ++at;
  const char* last = at;
  while (last != begin && pads(last[-1])) --last;
  field = {begin, static_cast<std::size_t>(last - begin)};
  return at;
}

void FieldScanner::split(std::string_view line, std::vector<std::string>& fields) const {
  fields.clear();
  const char* at = line.data();
  const char* const end = at + line.size();
  std::string scratch;
  std::string_view field;
  while (at != nullptr) {
    at = scan(at, end, scratch, field);
    fields.emplace_back(field);
    at = next_field(at, end);
  }
}

bool is_integer(std::string_view text) {
  std::int64_t value = 0;
  return scan_integer(text.data(), text.data() + text.size(), value) == text.data() + text.size();
}

bool is_real(std::string_view text) { return !text.empty() && parse_any_real(text).has_value(); }

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::int64_t TableLayout::find(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found != header.end()) return found - header.begin();
  std::int64_t number = 0;
  const char* const end = name.data() + name.size();
  if (scan_integer(name.data(), end, number) != end || number < 1 || number > columns) return -1;
  return number - 1;
}

bool TableLayout::has_name(std::int64_t column) const noexcept {
  return has_header() && !header[static_cast<std::size_t>(column)].empty();
}

std::string TableLayout::name_of(std::int64_t column) const {
  return has_name(column) ? header[static_cast<std::size_t>(column)]
                          : fmt::format("{}", column + 1);
}

std::string TableLayout::named(std::int64_t column) const {
  return has_name(column) ? in_quotes(name_of(column)) : "column " + name_of(column);
}

std::string TableLayout::form() const {
  const auto mark = [](char separator) -> std::string {
    switch (separator) {
      case '\t': return "tabs";
      case ',': return "commas";
      case ';': return "semicolons";
      case '|': return "bars";
      case ' ': return "blanks";
      default: return fmt::format("'{}'", separator);
    }
  };
  return fmt::format("parted by {}, {}", mark(fields.separator()),
                     has_header() ? "below a header" : "without a header");
}

std::int64_t TableLayout::require(std::string_view name, const char* option,
                                  const std::string& path, const char* alternative) const {
  const std::int64_t column = find(name);
  if (column >= 0) {
    const auto again =
        std::find(header.begin() + std::min(column + 1, std::ssize(header)), header.end(), name);
    if (again == header.end()) return column;
    throw Error(ErrorCode::bad_data,
                fmt::format("columns {} and {} are both called '{}'", column + 1,
                            again - header.begin() + 1, name),
                path, fmt::format("give {} the number of one of them", option));
  }
  const std::string there = has_header() ? fmt::format("there are {}", fmt::join(header, ", "))
                                         : fmt::format("there are {} without a header", columns);
  throw Error(
      ErrorCode::bad_data, fmt::format("has no column '{}': {}", name, there), path,
      fmt::format("give {} the name of a column, or its number from 1{}", option, alternative));
}

void HeaderWords::add_given(const std::string& option) {
  if (!option.empty() && option != "none" && !is_integer(option)) given.push_back(option);
}

TableLayout find_layout(std::string_view head, char separator, std::optional<bool> header,
                        const HeaderWords& words, const std::string& path) {
  std::vector<std::size_t> begins;
  const std::vector<std::string_view> lines = first_lines(head, begins);
  if (lines.empty()) {
    throw Error(ErrorCode::bad_data, "holds no rows, only remarks and blank lines", path,
                "give a table with one row per line");
  }
  if (!std::all_of(lines.begin(), lines.end(), is_text)) {
    throw Error(ErrorCode::bad_data, "is no text", path, "give a text with one row per line");
  }
  TableLayout layout{
      FieldScanner(separator != 0 ? separator : find_separator(lines)), {}, 0, 0, {}};
  for (const std::string_view line : lines) {
    layout.sample.emplace_back();
    try {
      layout.fields.split(line, layout.sample.back());
    } catch (const LineProblem& problem) {
      const auto number = std::count(head.data(), problem.at, '\n') + 1;
      throw Error(ErrorCode::bad_data, problem.problem, fmt::format("{}: line {}", path, number),
                  problem.fix);
    }
  }
  // A separator at the end of every line makes no column.
  while (std::all_of(layout.sample.begin(), layout.sample.end(), [&](const auto& row) {
    return row.size() > 1 && row.size() == layout.sample.front().size() && row.back().empty();
  })) {
    for (auto& row : layout.sample) row.pop_back();
  }
  if (header.value_or(looks_like_header(layout.sample, words))) {
    layout.header = layout.sample.front();
    layout.sample.erase(layout.sample.begin());
  }
  const std::size_t rows_before = layout.has_header() ? 1 : 0;
  layout.begin =
      static_cast<std::int64_t>(rows_before < begins.size() ? begins[rows_before] : head.size());
  layout.columns = std::ssize(layout.sample.empty() ? layout.header : layout.sample.front());
  if (layout.has_header() && std::ssize(layout.header) != layout.columns) {
    throw Error(ErrorCode::bad_data,
                fmt::format("the header has {} columns, but the first row has {}",
                            layout.header.size(), layout.columns),
                path, "give the header and all rows the same columns");
  }
  return layout;
}

}  // namespace tessera::io
