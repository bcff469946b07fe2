// SPDX-License-Identifier: Apache-2.0
#include "io/kind_edges.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/build.hpp"

#include "core/listing.hpp"
#include "io/dataset_arrays.hpp"
#include "io/edge_list_layout.hpp"
#include "io/reading_notes.hpp"
#include "io/table_rows.hpp"

namespace tessera::io {
namespace {

/// The columns of sources and targets.
struct EndColumns {
  std::int64_t source, target;
};

class Reader {
 public:
  Reader(const std::string& path, const EndKind& source, const EndKind& target,
         const ReadOptions& options)
      : options_(options), source_(source), target_(target) {
    open(path, {});
    const TableLayout& table = rows_->layout();
    if (table.columns < 2) {
      throw Error(ErrorCode::bad_data, "has one column where edges have two", path,
                  fmt::format("give a {} and a {} on each line", source.name, target.name));
    }
    // A first line whose ids are both unknown is a header, whatever its words.
    if (!table.has_header() && !is_known(table.sample.front())) open(path, true);
  }

  Graph read(std::vector<std::string>& notes) {
    std::vector<VertexId> sources(static_cast<std::size_t>(rows_->num_rows())), targets(sources);
    rows_->for_each("reading edges", options_.progress, [&](RowCursor& cursor) {
      while (cursor.next()) {
        const auto row = static_cast<std::size_t>(cursor.row());
        sources[row] = vertex_at(cursor, columns_.source, source_);
        targets[row] = vertex_at(cursor, columns_.target, target_);
      }
    });
    const std::size_t dropped = drop_unknown(sources, targets);
    add_notes(dropped, notes);
    BuildOptions build;
    build.duplicates = options_.duplicates;
    return naming_file(rows_->path(), [&] {
      return from_coo(static_cast<VertexId>(target_.ids.size()),
                      static_cast<VertexId>(source_.ids.size()), targets, sources, {}, build);
    });
  }

 private:
  void open(const std::string& path, std::optional<bool> header) {
    HeaderWords words = edge_header_words();
    words.add_given(source_.name);
    words.add_given(target_.name);
    rows_.emplace(path, '\0', header, words, options_.progress);
    const TableLayout& table = rows_->layout();
    const std::int64_t source = table.has_header() ? table.find(source_.name) : -1;
    const std::int64_t target = table.has_header() ? table.find(target_.name) : -1;
    const bool are_called_so = source >= 0 && target >= 0 && source != target;
    const auto [first, second] = end_columns(table);
    columns_ = are_called_so ? EndColumns{source, target} : EndColumns{first, second};
  }

  bool is_known(const std::vector<std::string>& row) const {
    return source_.ids.find(row[static_cast<std::size_t>(columns_.source)]) >= 0 ||
           target_.ids.find(row[static_cast<std::size_t>(columns_.target)]) >= 0;
  }

  VertexId vertex_at(const RowCursor& cursor, std::int64_t column, const EndKind& kind) const {
    const std::string_view id = cursor.field(column);
    const VertexId vertex = kind.ids.find(id);
    if (vertex < 0 && options_.nodes.unknown == UnknownIds::reject) {
      throw LineProblem{
          cursor.at(),
          fmt::format("{} {} is not in {}", kind.name, in_quotes(id), file_name(kind.path)),
          "give it a line there, correct the id, or leave out such edges with --unknown-ids drop"};
    }
    return vertex;
  }

  static std::size_t drop_unknown(std::vector<VertexId>& sources, std::vector<VertexId>& targets) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i] < 0 || targets[i] < 0) continue;
      sources[kept] = sources[i];
      targets[kept++] = targets[i];
    }
    const std::size_t dropped = sources.size() - kept;
    sources.resize(kept);
    targets.resize(kept);
    return dropped;
  }

  void add_notes(std::size_t dropped, std::vector<std::string>& notes) const {
    const TableLayout& table = rows_->layout();
    std::string text =
        fmt::format("{} in {}, {}, from {} to {}", counted(rows_->num_rows(), "edge", "edges"),
                    file_name(rows_->path()), table.form(), table.named(columns_.source),
                    table.named(columns_.target));
    std::vector<std::string> unused;
    for (std::int64_t column = 0; column < table.columns; ++column) {
      if (column == columns_.source || column == columns_.target) continue;
      unused.push_back(table.named(column));
    }
    if (!unused.empty()) text += "; nothing uses " + listed(unused);
    notes.push_back(note_about(about::edge_list, text));
    if (dropped == 0) return;
    notes.push_back(fmt::format("{} of {} dropped, as an end is in no table of vertices",
                                counted(std::int64_t(dropped), "edge", "edges"),
                                file_name(rows_->path())));
  }

  const ReadOptions& options_;
  const EndKind &source_, &target_;
  std::optional<TableRows> rows_;
  EndColumns columns_{0, 1};
};

}  // namespace

Graph read_kind_edges(const std::string& path, const EndKind& source, const EndKind& target,
                      const ReadOptions& options, std::vector<std::string>& notes) {
  return Reader(path, source, target, options).read(notes);
}

}  // namespace tessera::io
