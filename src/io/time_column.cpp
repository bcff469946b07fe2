// SPDX-License-Identifier: Apache-2.0
#include "io/time_column.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"

#include "core/listing.hpp"
#include "io/reading_notes.hpp"
#include "io/table_values.hpp"

namespace tessera::io {
namespace {

constexpr double minute = 60, hour = 60 * minute, day = 24 * hour;

/// Takes parts of a time off the front of a text.
class TimeScanner {
 public:
  explicit TimeScanner(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool skip(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool next_is(char c) const { return !rest_.empty() && rest_.front() == c; }
  /// A number of so many digits, up to `highest`; -1 where there is none.
  int number(std::size_t digits, int highest) {
    int value = 0;
    if (rest_.size() < digits) return -1;
    for (const char c : rest_.substr(0, digits)) {
      if (c < '0' || c > '9') return -1;
      value = 10 * value + (c - '0');
    }
    rest_.remove_prefix(digits);
    return value <= highest ? value : -1;
  }
  /// The digits after a point, as a part of 1.
  double fraction() {
    double value = 0, unit = 1;
    for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; rest_.remove_prefix(1)) {
      value += (unit /= 10) * (rest_.front() - '0');
    }
    return value;
  }

 private:
  std::string_view rest_;
};

/// "12:30", "12:30:05", "12:30:05.25" in seconds.
std::optional<double> time_of_day(TimeScanner& text) {
  const int hours = text.number(2, 23);
  const int minutes = hours >= 0 && text.skip(":") ? text.number(2, 59) : -1;
  if (minutes < 0) return {};
  double seconds = 0;
  if (text.skip(":")) {
    const int whole = text.number(2, 60);
    if (whole < 0) return {};
    seconds = whole + (text.skip(".,") ? text.fraction() : 0);
  }
  return hours * hour + minutes * minute + seconds;
}

/// How far a clock is ahead of UTC: "Z", "+02:00", "-0530" or nothing.
std::optional<double> zone(TimeScanner& text) {
  if (text.at_end() || text.skip("Zz")) return 0;
  const double sign = text.next_is('-') ? -1 : 1;
  if (!text.skip("+-")) return {};
  const int hours = text.number(2, 14);
  text.skip(":");
  const int minutes = text.at_end() ? 0 : text.number(2, 59);
  if (hours < 0 || minutes < 0) return {};
  return sign * (hours * hour + minutes * minute);
}

std::optional<double> parse_date(std::string_view field) {
  TimeScanner text(field);
  const int year = text.number(4, 9999);
  const int month = year >= 0 && text.skip("-") ? text.number(2, 12) : -1;
  const int of_month = month >= 0 && text.skip("-") ? text.number(2, 31) : -1;
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(of_month)));
  if (of_month < 0 || !date.ok()) return {};
  double seconds =
      day * static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  if (text.at_end()) return seconds;
  if (!text.skip("T ")) return {};
  const auto in_day = time_of_day(text);
  const auto ahead = in_day ? zone(text) : std::nullopt;
  if (!ahead || !text.at_end()) return {};
  return seconds + *in_day - *ahead;
}

std::optional<double> parse_number(std::string_view field) {
  if (!field.empty() && field.front() == '+') field.remove_prefix(1);
  double value = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, problem] = std::from_chars(field.data(), end, value);
  if (problem != std::errc() || stop != end || !std::isfinite(value)) return {};
  return value;
}

struct TimesOfRows {
  std::vector<double> values;
  std::vector<std::uint8_t> are_dates;
};

TimesOfRows read_times(TableRows& rows, std::int64_t column, const Progress& progress) {
  const auto count = static_cast<std::size_t>(rows.num_rows());
  TimesOfRows times{std::vector<double>(count), std::vector<std::uint8_t>(count)};
  const std::string name = in_quotes(rows.name_of(column));
  rows.for_each("reading times", progress, [&](RowCursor& cursor) {
    while (cursor.next() && cursor.row() < rows.num_rows()) {
      const std::string_view field = cursor.field(column);
      const auto time = parse_time(field);
      if (!time && is_missing(field)) {
        throw LineProblem{cursor.at(), fmt::format("has no time in column {}", name),
                          "give every vertex a time, or take those without one out of the table"};
      }
      if (!time) {
        throw LineProblem{cursor.at(),
                          fmt::format("{} in column {} is no time", in_quotes(field), name),
                          "give numbers, or dates such as 2024-05-31 or 2024-05-31T12:30:00"};
      }
      const auto row = static_cast<std::size_t>(cursor.row());
      times.values[row] = time->value;
      times.are_dates[row] = time->is_date ? 1 : 0;
    }
  });
  const auto other =
      std::adjacent_find(times.are_dates.begin(), times.are_dates.end(), std::not_equal_to<>());
  if (other != times.are_dates.end()) {
    throw Error(
        ErrorCode::bad_data,
        fmt::format("column {} holds numbers and dates: rows {} and {} differ", name,
                    other - times.are_dates.begin() + 1, other - times.are_dates.begin() + 2),
        rows.path(), "write all times in one way");
  }
  return times;
}

std::vector<std::int64_t> vertices_to_split(const Dataset& dataset, std::int64_t vertices) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(vertices));
  std::iota(all.begin(), all.end(), 0);
  const auto* const labels = std::get_if<ClassLabels>(&dataset.labels);
  if (labels == nullptr && dataset.targets.empty()) return all;
  std::erase_if(all, [&](std::int64_t vertex) {
    return labels != nullptr ? (*labels)[vertex] < 0 : !dataset.targets.has_any(vertex);
  });
  return all.empty() ? vertices_to_split({}, vertices) : all;
}

/// How the table writes the times of these rows.
std::map<std::int64_t, std::string> texts_of(TableRows& rows, std::int64_t column,
                                             std::map<std::int64_t, std::string> texts) {
  rows.for_each("reading times", {}, [&](RowCursor& cursor) {
    while (cursor.next()) {
      const auto found = texts.find(cursor.row());
      if (found != texts.end()) found->second = cursor.field(column);
    }
  });
  return texts;
}

std::string note_of(TableRows& rows, std::int64_t column, const VertexSplit& split,
                    const std::vector<double>& times) {
  const auto last_of = [&](const SharedArray<std::int64_t>& part) {
    return *std::max_element(part.begin(), part.end(), [&](std::int64_t a, std::int64_t b) {
      return times[static_cast<std::size_t>(a)] < times[static_cast<std::size_t>(b)];
    });
  };
  const std::array<std::int64_t, 3> last = {last_of(split.train), last_of(split.validation),
                                            last_of(split.test)};
  const auto texts = texts_of(rows, column, {{last[0], ""}, {last[1], ""}, {last[2], ""}});
  return note_about(
      about::split,
      fmt::format("by the times in {}, {} vertices up to {} to train, {} up to {} to validate, {} "
                  "up to {} to test",
                  in_quotes(rows.name_of(column)), grouped(split.train.size()), texts.at(last[0]),
                  grouped(split.validation.size()), texts.at(last[1]), grouped(split.test.size()),
                  texts.at(last[2])));
}

}  // namespace

std::optional<Time> parse_time(std::string_view field) {
  if (const auto number = parse_number(field)) return Time{*number, false};
  if (const auto date = parse_date(field)) return Time{*date, true};
  return {};
}

void split_by_time_column(TableRows& rows, std::int64_t column, const TimeShares& shares,
                          const Progress& progress, Dataset& dataset) {
  const TimesOfRows times = read_times(rows, column, progress);
  const VertexSplit split =
      split_by_time(vertices_to_split(dataset, rows.num_rows()), times.values, shares);
  dataset.notes.push_back(note_of(rows, column, split, times.values));
  dataset.train = split.train;
  dataset.validation = split.validation;
  dataset.test = split.test;
}

}  // namespace tessera::io
