// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/io/tables.hpp"

#include "io/table_rows.hpp"

namespace tessera::io {

/// A number, or seconds since 1970 of a date as ISO 8601 writes it: 2024-05-31, also with the time
/// of day (2024-05-31T12:30:05.5, with a blank for the T) and what it is ahead of UTC (Z, +02:00).
struct Time {
  double value = 0;
  bool is_date = false;
};
std::optional<Time> parse_time(std::string_view field);

/// Splits the labelled vertices of a table, or all where none has a label, by the time in this
/// column. Says in a note where the parts end.
void split_by_time_column(TableRows& rows, std::int64_t column, const TimeShares& shares,
                          const Progress& progress, Dataset& dataset);

}  // namespace tessera::io
