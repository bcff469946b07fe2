// SPDX-License-Identifier: Apache-2.0
#include "io/table_rows.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::io {
namespace {

std::int64_t count_rows(std::string_view text) {
  std::int64_t rows = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    const char* const stop = line_end(at, end);
    rows += is_remark(skip_blanks(at, stop), stop) ? 0 : 1;
    at = stop == end ? end : stop + 1;
  }
  return rows;
}

}  // namespace

RowCursor::RowCursor(const TextChunk& chunk, const TableLayout& layout, std::int64_t first_row)
    : layout_(layout),
      at_(chunk.text.data()),
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
                     const std::vector<std::string_view>& known_words, const Progress& progress)
    : source_(path) {
  const auto block = source_.next();
  layout_ =
      find_layout(block ? block->text : std::string_view(), separator, header, known_words, path);
  begin_ = (block ? block->offset : 0) + layout_.begin;
  std::vector<std::pair<std::int64_t, std::int64_t>> counts;
  for_each_chunk(
      source_, begin_, "reading the table", progress,
      [&](std::int64_t chunks) { counts.assign(static_cast<std::size_t>(chunks), {}); },
      [&](std::int64_t task, const TextChunk& chunk) {
        counts[static_cast<std::size_t>(task)] = {chunk.offset, count_rows(chunk.text)};
      },
      [&](std::int64_t) {
        for (const auto& [offset, count] : counts) {
          first_rows_.emplace_back(offset, rows_);
          rows_ += count;
        }
      });
}

std::string TableRows::name_of(std::int64_t column) const {
  return layout_.has_header() ? layout_.header[static_cast<std::size_t>(column)]
                              : fmt::format("{}", column + 1);
}

void TableRows::for_each(std::string_view stage, const Progress& progress,
                         FunctionRef<void(RowCursor&)> body) {
  for_each_chunk(
      source_, begin_, stage, progress, [](std::int64_t) {},
      [&](std::int64_t, const TextChunk& chunk) {
        const auto found = std::lower_bound(first_rows_.begin(), first_rows_.end(),
                                            std::pair(chunk.offset, std::int64_t{0}));
        const bool known = found != first_rows_.end() && found->first == chunk.offset;
        const std::int64_t first_row = known ? found->second : rows_;
        RowCursor rows(chunk, layout_, first_row);
        body(rows);
      },
      [](std::int64_t) {});
  source_.require_unchanged();
}

}  // namespace tessera::io
