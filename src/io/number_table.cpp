// SPDX-License-Identifier: Apache-2.0
#include "io/number_table.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/table_values.hpp"

namespace tessera::io {
namespace {

/// True for a file without a byte, and for one of a few blank lines.
bool holds_nothing(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return false;
  const std::uintmax_t size = std::filesystem::file_size(path, unknown);
  if (unknown || size == 0) return !unknown;
  constexpr std::uintmax_t few = 8;
  if (size > few) return false;
  const Buffer<std::byte> bytes = InputFile(path).read_all();
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) {
    const char c = static_cast<char>(byte);
    return is_blank(c) || c == '\n';
  });
}

/// Also "2.0" and "2e0" are whole numbers, as far as floats hold them exactly.
std::optional<std::int64_t> parse_integer(std::string_view field) {
  std::int64_t value = 0;
  const char* const end = field.data() + field.size();
  if (scan_integer(field.data(), end, value) == end) return value;
  const auto real = parse_real(field);
  constexpr float largest_exact = 1 << 24;
  if (!real || *real != std::floor(*real) || std::abs(*real) > largest_exact) return {};
  return static_cast<std::int64_t>(*real);
}

}  // namespace

NumberTable::NumberTable(std::string path, const Progress& progress)
    : path_(std::move(path)), progress_(progress) {
  if (!holds_nothing(path_)) table_.emplace(path_, ',', false, HeaderWords(), progress);
}

/// Hands `read` every field with its place among the numbers; it returns what is wrong with one.
template <class Read>
void NumberTable::for_each_field(Read&& read) {
  if (!table_) return;
  const std::int64_t rows = num_rows(), columns = num_columns();
  table_->for_each("reading numbers", progress_, [&](RowCursor& cursor) {
    while (cursor.next() && cursor.row() < rows) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::string_view field = cursor.field(column);
        const char* const problem = read(field, cursor.row() * columns + column);
        if (problem == nullptr) continue;
        throw LineProblem{cursor.at(), fmt::format("'{}' is no {}", field.substr(0, 40), problem)};
      }
    }
  });
}

std::vector<std::int64_t> NumberTable::integers() {
  std::vector<std::int64_t> values(static_cast<std::size_t>(num_rows() * num_columns()));
  for_each_field([&](std::string_view field, std::int64_t place) {
    const auto value = parse_integer(field);
    values[static_cast<std::size_t>(place)] = value.value_or(0);
    return value ? nullptr : "whole number";
  });
  return values;
}

std::shared_ptr<Matrix<float>> NumberTable::reals(MissingNumber missing) {
  auto matrix = std::make_shared<Matrix<float>>(num_rows(), num_columns());
  const bool keeps_missing = missing == MissingNumber::not_a_number;
  for_each_field([&](std::string_view field, std::int64_t place) {
    const bool is_absent = keeps_missing && is_missing(field);
    const auto value =
        is_absent ? std::optional(std::numeric_limits<float>::quiet_NaN()) : parse_real(field);
    matrix->data()[place] = value.value_or(0);
    if (!value) return "number";
    return keeps_missing || std::isfinite(*value) ? nullptr : "finite number";
  });
  return matrix;
}

void NumberTable::reject(std::int64_t row, const std::string& problem, const std::string& fix) {
  table_->for_each("finding a line", progress_, [&](RowCursor& cursor) {
    while (cursor.next()) {
      if (cursor.row() == row) throw LineProblem{cursor.at(), problem, fix};
    }
  });
  throw Error(ErrorCode::io, "has changed while it was read", path_,
              "read it again when no program writes to it");
}

void NumberTable::require_rows(std::int64_t rows, const char* items) const {
  if (num_rows() != rows) {
    damaged(path_, fmt::format("has {} rows for {} {}", num_rows(), rows, items));
  }
}

}  // namespace tessera::io
