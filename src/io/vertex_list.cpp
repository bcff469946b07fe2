// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/vertex_list.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"

#include "core/listing.hpp"
#include "io/edge_list_layout.hpp"
#include "io/name_index.hpp"
#include "io/scan.hpp"
#include "io/table_rows.hpp"

namespace tessera::io {
namespace {

const std::vector<std::string_view> id_words = {"id", "node", "node_id", "vertex", "vertex_id"};

/// Finds the vertices of a data set by what a file calls them.
class VertexFinder {
 public:
  VertexFinder(const Dataset& dataset, const VertexListOptions& options)
      : base_(options.base), count_(dataset.graph.num_rows()), kinds_(options.kinds) {
    const Names& names = dataset.vertex_names;
    if (names.empty()) return;
    index_ = std::make_unique<NameIndex>();
    for (std::int64_t i = 0; i < names.size(); ++i) index_->add(names[i], i);
    index_->number_all();
  }

  /// A vertex of column 0, the sources, or 1, the targets; -1: there is none of this name.
  VertexId find(std::string_view id, std::size_t column) const {
    if (index_ && kinds_.given()) {
      const std::string& kind = column == 0 ? kinds_.source : kinds_.target;
      return index_->find(name_of_kind(kind, name_within(kind, id)));
    }
    if (index_) return index_->find(id);
    std::int64_t number = 0;
    const char* const end = id.data() + id.size();
    if (scan_integer(id.data(), end, number) != end) return -1;
    number -= base_;
    return number >= 0 && number < count_ ? static_cast<VertexId>(number) : -1;
  }

  std::string known() const {
    return index_ ? fmt::format("ids are those of the {} vertices of the data", grouped(count_))
                  : fmt::format("vertices of the data are numbers from {} to {}", base_,
                                base_ + count_ - 1);
  }

 private:
  int base_;
  std::int64_t count_;
  Kinds kinds_;
  std::unique_ptr<NameIndex> index_;  ///< null: vertices go by their numbers
};

/// The vertices in some columns, a list for each.
class VertexColumns {
 public:
  VertexColumns(TableRows& rows, const std::vector<std::int64_t>& columns,
                const VertexFinder& finder)
      : rows_(rows), columns_(columns), finder_(finder) {}

  std::vector<std::vector<VertexId>> read() {
    const auto count = static_cast<std::size_t>(rows_.num_rows());
    std::vector<std::vector<VertexId>> lists(columns_.size(), std::vector<VertexId>(count));
    rows_.for_each("reading ids", {}, [&](RowCursor& cursor) {
      while (cursor.next()) {
        for (std::size_t c = 0; c < columns_.size(); ++c) {
          const VertexId vertex = finder_.find(cursor.field(columns_[c]), c);
          lists[c][static_cast<std::size_t>(cursor.row())] = vertex;
          if (vertex < 0) note_unknown(cursor, columns_[c]);
        }
      }
    });
    if (unknown_ > 0) leave_out_header(lists);
    if (unknown_ > 0) reject();
    return lists;
  }

 private:
  void note_unknown(const RowCursor& cursor, std::int64_t column) {
    const std::scoped_lock lock(mutex_);
    ++unknown_;
    if (first_row_ >= 0 && cursor.row() >= first_row_) return;
    first_row_ = cursor.row();
    first_at_ = cursor.offset();
    first_ = std::string(cursor.field(column));
  }

  /// A first line of which nothing is known, above others that are, is a header.
  void leave_out_header(std::vector<std::vector<VertexId>>& lists) {
    const bool all_unknown =
        std::all_of(lists.begin(), lists.end(), [](const auto& list) { return list.front() < 0; });
    const bool only_there = unknown_ == std::ssize(columns_);
    if (rows_.layout().has_header() || rows_.num_rows() < 2 || !all_unknown || !only_there) return;
    for (std::vector<VertexId>& list : lists) list.erase(list.begin());
    unknown_ = 0;
  }

  [[noreturn]] void reject() const {
    const std::string others =
        unknown_ > 1 ? fmt::format(", the first of {} such ids", grouped(unknown_)) : "";
    throw Error(ErrorCode::bad_data,
                fmt::format("{} is no vertex of the data{}", in_quotes(first_), others),
                fmt::format("{}:{}", rows_.path(), rows_.line_at(first_at_)), finder_.known());
  }

  TableRows& rows_;
  const std::vector<std::int64_t>& columns_;
  const VertexFinder& finder_;
  std::mutex mutex_;
  std::int64_t unknown_ = 0;
  std::int64_t first_row_ = -1, first_at_ = 0;
  std::string first_;
};

bool names_kinds(const TableLayout& table, const Kinds& kinds) {
  return kinds.given() && table.has_header() && table.find(kinds.source) >= 0 &&
         table.find(kinds.target) >= 0;
}

std::pair<std::int64_t, std::int64_t> pair_columns(const TableLayout& table, const Kinds& kinds) {
  if (!names_kinds(table, kinds)) return end_columns(table);
  return {table.find(kinds.source), table.find(kinds.target)};
}

}  // namespace

VertexPairs read_vertex_pairs(const std::string& path, const Dataset& dataset,
                              const VertexListOptions& options) {
  HeaderWords words = edge_header_words();
  words.add_given(options.kinds.source);
  words.add_given(options.kinds.target);
  TableRows rows(path, 0, {}, words, {});
  const auto [source, target] = pair_columns(rows.layout(), options.kinds);
  if (rows.layout().columns < 2) {
    throw Error(ErrorCode::bad_data, "has one column where pairs have two", path,
                "give a source and a target on each line");
  }
  const bool named = names_edges(rows.layout()) || names_kinds(rows.layout(), options.kinds);
  if (rows.layout().columns > 2 && !named) {
    throw Error(
        ErrorCode::bad_data,
        fmt::format("has {} columns, and no header says which are source and target",
                    rows.layout().columns),
        path,
        "give two columns, or call them source and target; quote names that have separators in "
        "them");
  }
  auto lists = VertexColumns(rows, {source, target}, VertexFinder(dataset, options)).read();
  return {std::move(lists[0]), std::move(lists[1])};
}

std::vector<VertexId> read_vertices(const std::string& path, const Dataset& dataset,
                                    const VertexListOptions& options) {
  HeaderWords words(id_words);
  words.ids = id_words;
  words.add_given(options.kinds.source);
  TableRows rows(path, 0, {}, words, {});
  std::int64_t column = -1;
  for (std::int64_t i = 0; i < std::ssize(rows.layout().header); ++i) {
    const std::string name = lower_case(rows.layout().header[static_cast<std::size_t>(i)]);
    const bool is_kind = rows.layout().header[static_cast<std::size_t>(i)] == options.kinds.source;
    if (is_kind || std::find(id_words.begin(), id_words.end(), name) != id_words.end()) column = i;
  }
  if (column < 0 && rows.layout().columns > 1) {
    throw Error(ErrorCode::bad_data,
                fmt::format("has {} columns, and no header says which has the vertices",
                            rows.layout().columns),
                path, "give one column, or call it id; quote names that have separators in them");
  }
  column = std::max<std::int64_t>(column, 0);
  return VertexColumns(rows, {column}, VertexFinder(dataset, options)).read().front();
}

}  // namespace tessera::io
