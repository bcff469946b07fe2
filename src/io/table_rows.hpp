// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/table_layout.hpp"
#include "io/text_source.hpp"

namespace tessera::io {

/// Goes through the rows of one chunk of a table.
class RowCursor {
 public:
  RowCursor(const TextChunk& chunk, const TableLayout& layout, std::int64_t first_row);

  /// The next row; false at the end. A row with another number of columns is a LineProblem.
  bool next();
  std::int64_t row() const noexcept { return row_; }
  std::string_view field(std::int64_t column) const {
    return fields_[static_cast<std::size_t>(column)];
  }
  /// A place in the row, for problems.
  const char* at() const noexcept { return begin_; }
  /// The same as bytes from the begin of the text.
  std::int64_t offset() const noexcept { return chunk_offset_ + (begin_ - chunk_begin_); }

 private:
  const TableLayout& layout_;
  std::int64_t chunk_offset_;
  const char* chunk_begin_;
  const char* at_;
  const char* end_;
  const char* begin_ = nullptr;
  std::int64_t row_;
  std::vector<std::string_view> fields_;
  std::vector<std::string> unquoted_;
};

/// A table in a text file, read in passes by all threads. Rows are numbered from 0.
class TableRows {
 public:
  /// Reads the file once, to count the rows.
  TableRows(const std::string& path, char separator, std::optional<bool> header,
            const HeaderWords& words, const Progress& progress);

  const std::string& path() const noexcept { return source_.path(); }
  const TableLayout& layout() const noexcept { return layout_; }
  std::int64_t num_rows() const noexcept { return numbers_->total(); }
  /// Lines below the first row that are remarks.
  std::int64_t num_remarks() const noexcept { return remarks_; }
  /// The name of a column, or its number from 1 where it has none.
  std::string name_of(std::int64_t column) const { return layout_.name_of(column); }
  /// The line, from 1, of this byte of the text. Reads the file up to there.
  std::int64_t line_at(std::int64_t offset) const { return source_.line_at(offset); }

  /// Runs `body` for every chunk of rows, in parallel.
  void for_each(std::string_view stage, const Progress& progress,
                FunctionRef<void(RowCursor& rows)> body);

 private:
  TextSource source_;
  TableLayout layout_;
  std::int64_t begin_ = 0;
  std::optional<EntryNumbers> numbers_;  ///< of the rows
  std::int64_t remarks_ = 0;
};

}  // namespace tessera::io
