// SPDX-License-Identifier: Apache-2.0
#include "io/text_edges.hpp"

#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "graph/device_build.hpp"
#include "graph/requirements.hpp"
#include "io/dataset_arrays.hpp"

namespace tessera::io {
namespace {

/// Lists that threads borrow and give back, so that each keeps its memory.
class Lists {
 public:
  std::vector<Entry> take() {
    const std::scoped_lock lock(mutex_);
    if (lists_.empty()) return {};
    std::vector<Entry> list = std::move(lists_.back());
    lists_.pop_back();
    list.clear();
    return list;
  }
  void give_back(std::vector<Entry> list) {
    const std::scoped_lock lock(mutex_);
    lists_.push_back(std::move(list));
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<Entry>> lists_;
};

using Piece = detail::RowFiller::Piece;

/// One pass over the text: `use` is handed the edges of a block, in pieces.
template <class Use>
void for_each_block(TextSource& source, const TextEdges& edges, const detail::RowFiller& filler,
                    bool with_values, std::string_view stage, const Progress& progress, Use&& use) {
  Lists lists;
  std::vector<Piece> pieces;
  for_each_chunk(
      source, edges.begin, stage, progress,
      [&](std::int64_t task, const TextChunk& chunk) {
        std::vector<Entry> list = lists.take();
        edges.parse(chunk, with_values, list);
        filler.sort_into(list, pieces[static_cast<std::size_t>(task)]);
        lists.give_back(std::move(list));
      },
      [&](std::int64_t chunks) {
        if (std::ssize(pieces) < chunks) pieces.resize(static_cast<std::size_t>(chunks));
      },
      [&](std::int64_t chunks) {
        use(std::span<const Piece>(pieces).first(static_cast<std::size_t>(chunks)));
      });
}

}  // namespace

Graph build_from_text(TextSource& source, const TextEdges& edges, const ReadOptions& options) {
  detail::RowFiller filler(edges.weighted, edges.mirror);
  for_each_block(source, edges, filler, false, "reading edges", options.progress,
                 [&](std::span<const Piece> pieces) { filler.count(pieces); });
  edges.counted(filler.num_entries());
  const auto rows =
      static_cast<VertexId>(edges.num_rows >= 0 ? edges.num_rows : filler.highest_index() + 1);
  const auto cols = static_cast<VertexId>(edges.num_cols >= 0 ? edges.num_cols : rows);
  filler.begin_placing(rows);
  for_each_block(source, edges, filler, edges.weighted, "placing edges", options.progress,
                 [&](std::span<const Piece> pieces) { filler.place(pieces); });
  source.require_unchanged();
  if (!filler.all_placed()) {
    throw Error(ErrorCode::io, "has changed while it was read", source.path(),
                "read it again when nobody writes to it");
  }
  report(options.progress, "sorting rows");
  return naming_file(source.path(), [&] {
    Graph graph =
        std::move(filler).finish(cols, options.duplicates, [&](VertexId row, VertexId col) {
          throw Error(ErrorCode::bad_data,
                      fmt::format("the edge with {} {} and {} {} occurs more than once",
                                  edges.row_word, edges.name(row), edges.col_word, edges.name(col)),
                      "", "merge duplicates with 'sum' or 'first' (--duplicates)");
        });
    // Sums of finite values may be too large.
    if (options.nonfinite == Nonfinite::reject && options.duplicates == Duplicates::sum) {
      detail::require_finite(graph.values().span(), "values", "building a graph",
                             detail::smaller_fix);
    }
    return graph;
  });
}

}  // namespace tessera::io
