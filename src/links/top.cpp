// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/top.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/top_rows.hpp"

#include "graph/requirements.hpp"

namespace tessera::links {
namespace {

constexpr const char* where = "top lists";

[[noreturn]] void refuse(std::string problem, std::string fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

void check(MatrixView<const float> queries, MatrixView<const float> candidates,
           const TopOptions& options) {
  if (queries.cols != candidates.cols) {
    refuse(fmt::format("queries of {} numbers, candidates of {}", queries.cols, candidates.cols),
           "give both the same width");
  }
  if (options.count < 1 || options.block_bytes < 0) {
    refuse(fmt::format("{} candidates by blocks of {} bytes", options.count, options.block_bytes),
           "give positive numbers");
  }
  if (queries.device != options.place.device || candidates.device != options.place.device) {
    refuse(fmt::format("queries on {}, candidates on {}", to_string(queries.device),
                       to_string(candidates.device)),
           "give them, and say by place where they lie");
  }
  if (candidates.rows > std::numeric_limits<VertexId>::max()) {
    refuse(fmt::format("{} candidates", candidates.rows), "ids have 32 bits: give fewer");
  }
  if (options.leave_out == nullptr) return;
  detail::require_whole(*options.leave_out);
  if (options.leave_out->num_rows() != queries.rows) {
    refuse(fmt::format("{} rows to leave out for {} queries", options.leave_out->num_rows(),
                       queries.rows),
           "give a graph with a row for each query");
  }
}

MatrixView<const float> rows_of(MatrixView<const float> matrix, std::int64_t begin,
                                std::int64_t count) {
  return {matrix.row(begin), count, matrix.cols, matrix.stride, matrix.device};
}

/// What is left out, where the embeddings lie.
struct PlacedLists {
  PlacedLists(const Graph* graph, const Place& place) {
    if (graph == nullptr) return;
    offsets = Buffer<EdgeOffset>(graph->num_rows() + 1, place);
    cols = Buffer<VertexId>(graph->num_edges(), place);
    copy_bytes(offsets.data(), graph->row_offsets().data(),
               graph->row_offsets().span().size_bytes(), place.device, place.stream);
    copy_bytes(cols.data(), graph->col_indices().data(), graph->col_indices().span().size_bytes(),
               place.device, place.stream);
  }
  ops::LeftOut of_rows_from(std::int64_t first) const {
    return {offsets.empty() ? nullptr : offsets.data() + first, cols.data()};
  }

  Buffer<EdgeOffset> offsets;
  Buffer<VertexId> cols;
};

}  // namespace

TopLists top_candidates(MatrixView<const float> queries, MatrixView<const float> candidates,
                        const TopOptions& options) {
  check(queries, candidates, options);
  const Place& place = options.place;
  const auto [rows, cols, stride] =
      ops::top_block(queries.rows, candidates.rows, options.block_bytes, place.device);
  const PlacedLists left_out(options.leave_out, place);
  const ops::DenseWorkspace workspace(place);
  Buffer<float> block(checked_area(rows, stride), place);
  Buffer<ops::TopKey> keys(checked_area(queries.rows, options.count), place);
  Buffer<std::int32_t> problem(1, place);
  fill_zero(keys.data(), static_cast<std::size_t>(keys.size()) * sizeof(ops::TopKey), place.device,
            place.stream);
  fill_zero(problem.data(), sizeof(std::int32_t), place.device, place.stream);
  for (std::int64_t first = 0; first < queries.rows; first += rows) {
    const std::int64_t count = std::min(rows, queries.rows - first);
    const MatrixView<ops::TopKey> lists{keys.data() + first * options.count, count, options.count,
                                        place.device};
    for (std::int64_t begin = 0; begin < candidates.rows; begin += cols) {
      const MatrixView<float> scores{block.data(), count, std::min(cols, candidates.rows - begin),
                                     stride, place.device};
      ops::gemm(ops::Transpose::no, ops::Transpose::yes, 1, rows_of(queries, first, count),
                rows_of(candidates, begin, scores.cols), 0, scores, place.device, place.stream,
                &workspace);
      ops::offer_to_top(MatrixView<const float>(scores), begin, left_out.of_rows_from(first), lists,
                        problem.data(), place.device, place.stream);
    }
  }
  Buffer<VertexId> ids(keys.size(), place);
  Buffer<float> scores(keys.size(), place);
  ops::list_top(keys.data(), keys.size(), ids.data(), scores.data(), place.device, place.stream);
  TopLists result{Matrix<VertexId>(queries.rows, options.count),
                  Matrix<float>(queries.rows, options.count)};
  std::int32_t is_odd = 0;
  const auto fetch = [&]<class T>(T* to, const T* from, std::int64_t size) {
    copy_bytes(to, from, static_cast<std::size_t>(size) * sizeof(T), place.device, place.stream);
  };
  fetch(result.candidates.data(), ids.data(), ids.size());
  fetch(result.scores.data(), scores.data(), scores.size());
  fetch(&is_odd, problem.data(), 1);
  synchronise(place.device, place.stream);
  if (is_odd != 0) {
    throw Error(ErrorCode::bad_data, "a score is not a number", where,
                "check the embeddings: one of them is not finite");
  }
  return result;
}

}  // namespace tessera::links
