// SPDX-License-Identifier: Apache-2.0
#include "io/table_rows.hpp"

#include <atomic>

#include <fmt/format.h>

#include "io/text.hpp"

namespace tessera::io {
namespace {

/// Adds the remarks to `remarks`; blank lines are none.
std::int64_t count_rows(std::string_view text, std::atomic<std::int64_t>& remarks) {
  std::int64_t rows = 0;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const char* const end = line.data() + line.size();
    const char* const begin = skip_blanks(line.data(), end);
    if (!is_remark(begin, end)) {
      ++rows;
    } else if (begin != end) {
      ++remarks;
    }
  }
  return rows;
}

}  // namespace

RowCursor::RowCursor(const TextChunk& chunk, const TableLayout& layout, std::int64_t first_row)
    : layout_(layout),
      chunk_offset_(chunk.offset),
      chunk_begin_(chunk.text.data()),
      at_(chunk_begin_),
      end_(at_ + chunk.text.size()),
      row_(first_row - 1),
      fields_(static_cast<std::size_t>(layout.columns)),
      unquoted_(static_cast<std::size_t>(layout.columns)) {}

bool RowCursor::next() {
  const char* stop = at_;
  for (;; at_ = stop + 1) {
    if (at_ == end_) return false;
    stop = line_end(at_, end_);
    if (!is_remark(skip_blanks(at_, stop), stop)) break;
    if (stop == end_) return false;
  }
  begin_ = at_;
  const FieldScanner& scanner = layout_.fields;
  std::size_t column = 0;
  for (const char* at = at_; at != nullptr; ++column) {
    if (column == fields_.size()) {
      // A separator at the end of the line is no column.
      if (scanner.skip_padding(at, stop) == stop) break;
      throw LineProblem{begin_, fmt::format("has more than {} columns", fields_.size()),
                        "give all rows the same columns, and quote fields that hold separators"};
    }
    at = scanner.next_field(scanner.scan(at, stop, unquoted_[column], fields_[column]), stop);
  }
  if (column < fields_.size()) {
    throw LineProblem{begin_, fmt::format("has {} columns instead of {}", column, fields_.size()),
                      "give all rows the same columns"};
  }
  ++row_;
  at_ = stop == end_ ? end_ : stop + 1;
  return true;
}

TableRows::TableRows(const std::string& path, char separator, std::optional<bool> header,
                     const HeaderWords& words, const Progress& progress)
    : source_(path) {
  const auto block = source_.next();
  layout_ = find_layout(block ? block->text : std::string_view(), separator, header, words, path);
  begin_ = (block ? block->offset : 0) + layout_.begin;
  std::atomic<std::int64_t> remarks = 0;
  numbers_.emplace(source_, begin_, "reading the table", progress,
                   [&](std::string_view text) { return count_rows(text, remarks); });
  remarks_ = remarks;
}

void TableRows::for_each(std::string_view stage, const Progress& progress,
                         FunctionRef<void(RowCursor&)> body) {
  for_each_chunk(source_, begin_, stage, progress, [&](std::int64_t, const TextChunk& chunk) {
    RowCursor rows(chunk, layout_, numbers_->first_of(chunk));
    body(rows);
  });
  source_.require_unchanged();
}

}  // namespace tessera::io
