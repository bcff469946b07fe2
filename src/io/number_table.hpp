// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/core/matrix.hpp"

#include "io/table_rows.hpp"

namespace tessera::io {

/// What a number that is missing becomes.
enum class MissingNumber { rejected, not_a_number };

/// A text of numbers with commas between them, as many on every line, without a header. An
/// empty file has no rows and no columns.
class NumberTable {
 public:
  NumberTable(std::string path, const Progress& progress);

  const std::string& path() const noexcept { return path_; }
  std::int64_t num_rows() const noexcept { return table_ ? table_->num_rows() : 0; }
  std::int64_t num_columns() const noexcept { return table_ ? table_->layout().columns : 0; }

  /// Row by row. What is no whole number is an error that names the line.
  std::vector<std::int64_t> integers();
  std::shared_ptr<Matrix<float>> reals(MissingNumber missing = MissingNumber::rejected);

  /// Throws `bad_data` for the line of this row.
  [[noreturn]] void reject(std::int64_t row, const std::string& problem, const std::string& fix);
  /// Throws unless there are so many rows, one for each of `items`.
  void require_rows(std::int64_t rows, const char* items) const;

 private:
  template <class Read>
  void for_each_field(Read&& read);

  std::string path_;
  const Progress& progress_;
  std::optional<TableRows> table_;
};

}  // namespace tessera::io
