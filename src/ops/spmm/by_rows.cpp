// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/by_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ops/check.hpp"
#include "ops/row_ranges.hpp"
#include "ops/row_schedule.hpp"
#include "ops/scales.hpp"
#include "ops/spmm/combine.hpp"
#include "ops/spmm/finish_rows.hpp"
#include "ops/spmm/rows.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// Below this many products a run takes a few microseconds, less than waking threads.
constexpr std::int64_t min_parallel_work = 1 << 16;

/// Work that one task should have at least, in products.
constexpr std::int64_t min_task_work = 1 << 15;

template <class T>
SpmmRowsFunction of_type(const SpmmRowsFunctions& functions) {
  if constexpr (std::is_same_v<T, double>) return functions.fp64;
  if constexpr (std::is_same_v<T, float>) return functions.fp32;
  if constexpr (std::is_same_v<T, Bfloat16>) return functions.bf16;
}

template <class T>
class SpmmByRows final : public PreparedSpmm {
  using S = SumOf<T>;

 public:
  SpmmByRows(const SpmmProblem& problem, FeatureTiles tiles)
      : problem_(problem), tiles_(tiles), finisher_(problem) {
    take_arrays();
    const std::int64_t features = problem.features;
    if (problem.heads > 1) tiles_ = {features / problem.heads, false};
    tiles_.width = std::clamp<std::int64_t>(tiles_.width, 1, std::max<std::int64_t>(1, features));
    schedule_ = make_row_schedule(num_rows_, row_offsets_.data());
    const std::int64_t slot_elements = checked_area(schedule_.num_slots, features);
    slots_ = Buffer<double>(slot_elements);
    if (is_best()) slot_winners_ = Buffer<VertexId>(slot_elements);
    // Sums are rounded once, when all is done with them.
    if (!problem.is_plain() && bytes_per_element(problem.output()) != static_cast<int>(sizeof(S))) {
      wide_ = Buffer<S>(checked_area(num_rows_, features));
    }
    if (tiles_.packed) packed_ = Buffer<T>(checked_area(num_cols_, tiles_.width));
    ranges_per_task_ =
        std::max<std::int64_t>(1, min_task_work / (max_edges_per_range * tiles_.width));
  }

  void run(const SpmmCall& call, Stream, const WorkspaceView&) const override {
    const std::int64_t features = problem_.features;
    if (features == 0) return;
    const SpmmRows rows = operands(call);
    finisher_.take_bias(call);
    const SpmmRowsFunction function = of_type<T>(functions());
    const std::int64_t num_tiles = (features + tiles_.width - 1) / tiles_.width;
    if (tiles_.packed) {
      for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
        SpmmRows packed = at_tile(rows, tile);
        pack(rows, tile);
        packed.x = packed_.data();
        packed.x_stride = width_of(tile);
        for_tasks(num_groups(),
                  [&](std::int64_t group) { run_group(function, packed, group, width_of(tile)); });
      }
    } else {
      for_tasks(num_tiles * num_groups(), [&](std::int64_t task) {
        const std::int64_t tile = task / num_groups();
        run_group(function, at_tile(rows, tile), task % num_groups(), width_of(tile));
        if (num_tiles == 1) finish_group(call, rows, task);
      });
    }
    const bool finished = num_tiles == 1 && !tiles_.packed;
    combine(call, rows, finished);
    if (!problem_.is_plain() && !finished) {
      for_row_ranges(num_rows_, features, [&](std::int64_t begin, std::int64_t end) {
        finish_rows(call, rows, begin, end);
      });
    }
  }

  std::int64_t own_bytes() const noexcept override {
    return slots_.size() * static_cast<std::int64_t>(sizeof(double)) +
           slot_winners_.size() * static_cast<std::int64_t>(sizeof(VertexId)) + finisher_.bytes() +
           wide_.size() * static_cast<std::int64_t>(sizeof(S)) +
           packed_.size() * static_cast<std::int64_t>(sizeof(T));
  }

 private:
  void take_arrays() {
    const Graph& graph = problem_.graph;
    if (problem_.pass == SpmmPass::forward) {
      num_rows_ = graph.num_rows();
      num_cols_ = graph.num_cols();
      row_offsets_ = graph.row_offsets();
      col_indices_ = graph.col_indices();
      row_scale_ = scale_as<S>(graph.row_scale());
      col_scale_ = scale_as<S>(graph.col_scale());
    } else {
      num_rows_ = graph.num_cols();
      num_cols_ = graph.num_rows();
      row_offsets_ = graph.csc().col_offsets;
      col_indices_ = graph.csc().row_indices;
      positions_ = graph.csc().csr_positions;
      row_scale_ = scale_as<S>(graph.col_scale());
      col_scale_ = problem_.reduction == Reduction::mean ? mean_scale<S>(graph)
                                                         : scale_as<S>(graph.row_scale());
    }
  }

  bool of_winners() const noexcept {
    return problem_.reduction == Reduction::max || problem_.reduction == Reduction::min;
  }
  bool is_best() const noexcept { return of_winners() && problem_.pass == SpmmPass::forward; }

  const SpmmRowsFunctions& functions() const {
    const SpmmRowsTable& table = spmm_rows();
    if (problem_.edge_features) return table.edge_features;
    if (is_best()) return table.best;
    return of_winners() ? table.won : table.sum;
  }

  SpmmRows operands(const SpmmCall& call) const {
    SpmmRows rows;
    rows.row_offsets = row_offsets_.data();
    rows.col_indices = col_indices_.data();
    rows.num_edges = col_indices_.size();
    if (!call.edge_values.absent()) {
      rows.values = call.edge_values.data;
      rows.value_stride = call.edge_values.stride;
      rows.values_are_stored = true;
    } else if (problem_.graph.has_values()) {
      rows.values = problem_.graph.values().data();
    }
    rows.positions = positions_.data();
    rows.row_scale = row_scale_.data();
    rows.col_scale = col_scale_.data();
    rows.mean = problem_.reduction == Reduction::mean && problem_.pass == SpmmPass::forward;
    rows.sign = problem_.reduction == Reduction::min ? -1 : 1;
    rows.x = call.x.data;
    rows.x_stride = call.x.stride;
    rows.x_is_finite = rows.values != nullptr && is_small_and_finite(call.x.as<T>());
    rows.y = wide_.empty() ? call.y.data : wide_.data();
    rows.y_stride = wide_.empty() ? call.y.stride : problem_.features;
    rows.y_is_wide = !problem_.is_plain();
    rows.winners = call.winners.data;
    rows.winners_stride = call.winners.stride;
    rows.won_by = call.won_by.data;
    rows.won_by_stride = call.won_by.stride;
    rows.slots = slots_.data();
    rows.slot_winners = slot_winners_.data();
    rows.slot_stride = problem_.features;
    return rows;
  }

  /// Looks at x where it has fewer elements than there are edges: sparse features times a weight
  /// matrix, of which dropout makes many zeros.
  bool is_small_and_finite(MatrixView<const T> x) const {
    if (x.rows * x.cols >= col_indices_.size()) return false;
    bool finite = true;
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const T* const row = x.row(i);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        const auto value = static_cast<double>(static_cast<S>(row[j]));
        finite &= std::isfinite(value);
      }
    }
    return finite;
  }

  std::int64_t width_of(std::int64_t tile) const noexcept {
    return std::min(tiles_.width, problem_.features - tile * tiles_.width);
  }

  /// The same operands with the first column of a tile as column 0.
  SpmmRows at_tile(SpmmRows rows, std::int64_t tile) const noexcept {
    const std::int64_t column = tile * tiles_.width;
    rows.x = static_cast<const T*>(rows.x) + column;
    if (rows.y_is_wide) {
      rows.y = static_cast<S*>(rows.y) + column;
    } else {
      rows.y = static_cast<T*>(rows.y) + column;
    }
    if (rows.winners != nullptr) rows.winners += column;
    if (rows.won_by != nullptr) rows.won_by += column;
    if (rows.slots != nullptr) rows.slots += column;
    if (rows.slot_winners != nullptr) rows.slot_winners += column;
    if (problem_.heads > 1) rows.values = static_cast<const T*>(rows.values) + tile;
    return rows;
  }

  void pack(const SpmmRows& rows, std::int64_t tile) const {
    const std::int64_t width = width_of(tile);
    const T* const from = static_cast<const T*>(rows.x) + tile * tiles_.width;
    const std::int64_t grain = std::max<std::int64_t>(1, min_task_work / width);
    parallel_for(num_cols_, grain, [&](std::int64_t row) {
      std::memcpy(packed_.data() + row * width, from + row * rows.x_stride,
                  static_cast<std::size_t>(width) * sizeof(T));
    });
  }

  std::int64_t num_groups() const noexcept {
    const auto ranges = static_cast<std::int64_t>(schedule_.ranges.size());
    return (ranges + ranges_per_task_ - 1) / ranges_per_task_;
  }

  void run_group(SpmmRowsFunction function, const SpmmRows& rows, std::int64_t group,
                 std::int64_t width) const {
    const auto first = static_cast<std::size_t>(group * ranges_per_task_);
    const auto last =
        std::min(first + static_cast<std::size_t>(ranges_per_task_), schedule_.ranges.size());
    for (std::size_t i = first; i < last; ++i) function(rows, schedule_.ranges[i], 0, width);
  }

  /// The epilogue of rows whose reduction stands in `rows.y`.
  void finish_rows(const SpmmCall& call, const SpmmRows& rows, std::int64_t begin,
                   std::int64_t end) const {
    finisher_.finish(call, static_cast<S*>(rows.y), rows.y_stride, begin, end);
    if (!wide_.empty()) finisher_.store_bf16(call, wide_.data(), rows.y_stride, begin, end);
  }

  /// While the rows of a group are in the caches; long rows are put together later.
  void finish_group(const SpmmCall& call, const SpmmRows& rows, std::int64_t group) const {
    if (problem_.is_plain()) return;
    const auto first = static_cast<std::size_t>(group * ranges_per_task_);
    const auto last =
        std::min(first + static_cast<std::size_t>(ranges_per_task_), schedule_.ranges.size());
    for (std::size_t i = first; i < last; ++i) {
      const RowRange& range = schedule_.ranges[i];
      if (range.slot < 0) finish_rows(call, rows, range.row_begin, range.row_end);
    }
  }

  template <class Task>
  void for_tasks(std::int64_t count, Task&& task) const {
    if ((col_indices_.size() + num_rows_) * problem_.features >= min_parallel_work) {
      parallel_tasks(count, task);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) task(i);
  }

  void combine(const SpmmCall& call, const SpmmRows& rows, bool finishes) const {
    const auto one_row = [&](std::int64_t i) {
      const LongRow& long_row = schedule_.long_rows[static_cast<std::size_t>(i)];
      if (is_best()) {
        combine_best<T, S>(rows, long_row, problem_.features);
      } else {
        combine_sums<T, S>(rows, long_row, problem_.features);
      }
      if (finishes && !problem_.is_plain()) {
        finish_rows(call, rows, long_row.row, std::int64_t{long_row.row} + 1);
      }
    };
    const auto count = static_cast<std::int64_t>(schedule_.long_rows.size());
    if (slots_.size() >= min_parallel_work) {
      parallel_for(count, 1, one_row);
    } else {
      for (std::int64_t i = 0; i < count; ++i) one_row(i);
    }
  }

  SpmmProblem problem_;
  FeatureTiles tiles_;
  VertexId num_rows_ = 0;
  VertexId num_cols_ = 0;
  SharedArray<EdgeOffset> row_offsets_;
  SharedArray<VertexId> col_indices_;
  SharedArray<EdgeOffset> positions_;
  SharedArray<S> row_scale_;
  SharedArray<S> col_scale_;
  RowSchedule schedule_;
  std::int64_t ranges_per_task_ = 1;
  mutable Buffer<double> slots_;
  mutable Buffer<VertexId> slot_winners_;
  mutable Buffer<T> packed_;
  RowFinisher<T> finisher_;
  mutable Buffer<S> wide_;  ///< reduced rows, where Y cannot hold them
};

}  // namespace

std::unique_ptr<const PreparedSpmm> prepare_spmm_by_rows(const SpmmProblem& problem,
                                                         FeatureTiles tiles) {
  return visit_precision(problem.precision, [&]<class T>() -> std::unique_ptr<const PreparedSpmm> {
    return std::make_unique<SpmmByRows<T>>(problem, tiles);
  });
}

}  // namespace tessera::ops
