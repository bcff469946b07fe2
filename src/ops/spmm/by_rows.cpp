// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>

#include "ops/dense/row_ranges.hpp"
#include "ops/plan/check.hpp"
#include "ops/rows/row_schedule.hpp"
#include "ops/rows/scales.hpp"
#include "ops/spmm/finish_rows.hpp"
#include "ops/spmm/rows.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// Work that one task should have at least, in products.
constexpr std::int64_t min_task_work = 1 << 15;

/// Stores one element of y, as T or wide.
template <class T, class S>
void put(const SpmmRows& rows, VertexId row, std::int64_t feature, S value) {
  const std::int64_t at = static_cast<std::int64_t>(row) * rows.y_stride + feature;
  if (rows.y_is_wide) {
    static_cast<S*>(rows.y)[at] = value;
  } else {
    static_cast<T*>(rows.y)[at] = static_cast<T>(value);
  }
}

/// T is how features are stored, S what they are summed in.
template <class T, class S>
void combine_sums(const SpmmRows& rows, const LongRow& long_row, std::int64_t features) {
  const VertexId row = long_row.row;
  const S scale = rows.row_scale == nullptr ? S(1) : static_cast<const S*>(rows.row_scale)[row];
  const S divisor =
      rows.mean ? static_cast<S>(rows.row_offsets[row + 1] - rows.row_offsets[row]) : S(1);
  const double* const slots = rows.slots + long_row.first_slot * rows.slot_stride;
  for (std::int64_t feature = 0; feature < features; ++feature) {
    double sum = 0;
    for (std::int64_t slot = 0; slot < long_row.num_slots; ++slot) {
      sum += slots[slot * rows.slot_stride + feature];
    }
    put<T>(rows, row, feature, static_cast<S>(sum) * scale / divisor);
  }
}

template <class T, class S>
void combine_best(const SpmmRows& rows, const LongRow& long_row, std::int64_t features) {
  const std::int64_t first = long_row.first_slot * rows.slot_stride;
  for (std::int64_t feature = 0; feature < features; ++feature) {
    std::int64_t best = first + feature;
    for (std::int64_t slot = 1; slot < long_row.num_slots; ++slot) {
      const std::int64_t other = first + slot * rows.slot_stride + feature;
      const double challenger = rows.slots[other];
      const double holder = rows.slots[best];
      if (challenger > holder || (challenger != challenger && holder == holder)) best = other;
    }
    // The value came from the storage's sums, so this narrowing loses nothing.
    put<T>(rows, long_row.row, feature, static_cast<S>(rows.slots[best] * rows.sign));
    if (rows.winners != nullptr) {
      rows.winners[long_row.row * rows.winners_stride + feature] = rows.slot_winners[best];
    }
  }
}

template <class T>
class SpmmByRows final : public PreparedSpmm {
  using S = SumOf<T>;

 public:
  SpmmByRows(const SpmmProblem& problem, bool packed)
      : problem_(problem), finisher_(problem, problem.num_targets(), false) {
    take_arrays();
    const std::int64_t features = problem.features;
    tile_width_ = packed ? packed_tile_width(problem) : features / problem.heads;
    tile_width_ = std::clamp<std::int64_t>(tile_width_, 1, std::max<std::int64_t>(1, features));
    schedule_ = make_row_schedule(num_rows_, row_offsets_.data());
    const std::int64_t slot_elements = checked_area(schedule_.num_slots, features);
    slots_ = Buffer<double>(slot_elements);
    if (problem_.finds_best()) slot_winners_ = Buffer<VertexId>(slot_elements);
    if (packed) packed_ = Buffer<T>(checked_area(num_cols_, tile_width_));
    ranges_per_task_ =
        std::max<std::int64_t>(1, min_task_work / (max_edges_per_range * tile_width_));
  }

  void run(const SpmmCall& call, Stream, const WorkspaceView&) const override {
    const std::int64_t features = problem_.features;
    if (features == 0) return;
    const Operand reduced = finisher_.begin(call);
    const SpmmRows rows = operands(call, reduced);
    const SpmmRowsFunction function = rows_function();
    const std::int64_t num_tiles = (features + tile_width_ - 1) / tile_width_;
    if (!packed_.empty()) {
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
        if (num_tiles == 1) finish_group(call, reduced, task);
      });
    }
    const bool finished = num_tiles == 1 && packed_.empty();
    combine(call, reduced, rows, finished);
    if (!problem_.is_plain() && !finished) {
      for_row_ranges(num_rows_, features, [&](std::int64_t begin, std::int64_t end) {
        finisher_.finish(call, reduced, begin, end);
      });
    }
  }

  std::int64_t own_bytes() const noexcept override {
    return slots_.size() * static_cast<std::int64_t>(sizeof(double)) +
           slot_winners_.size() * static_cast<std::int64_t>(sizeof(VertexId)) + finisher_.bytes() +
           packed_.size() * static_cast<std::int64_t>(sizeof(T));
  }

 private:
  void take_arrays() {
    const Graph& graph = problem_.graph;
    num_rows_ = problem_.num_targets();
    num_cols_ = problem_.num_sources();
    if (problem_.is_forward()) {
      row_offsets_ = graph.row_offsets();
      col_indices_ = graph.col_indices();
      row_scale_ = scale_as<S>(graph.row_scale());
      col_scale_ = scale_as<S>(graph.col_scale());
    } else {
      row_offsets_ = graph.csc().col_offsets;
      col_indices_ = graph.csc().row_indices;
      positions_ = graph.csc().csr_positions;
      row_scale_ = scale_as<S>(graph.col_scale());
      col_scale_ = problem_.reduction == Reduction::mean ? mean_scale<S>(graph)
                                                         : scale_as<S>(graph.row_scale());
    }
  }

  SpmmRowsFunction rows_function() const {
    const auto& functions = spmm_rows().of<T>();
    if (problem_.edge_features) return functions.edge_features;
    if (problem_.finds_best()) return functions.best;
    return has_winners(problem_.reduction) ? functions.won : functions.sum;
  }

  SpmmRows operands(const SpmmCall& call, const Operand& reduced) const {
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
    rows.mean = problem_.divides();
    rows.sign = problem_.reduction == Reduction::min ? -1 : 1;
    rows.x = call.x.data;
    rows.x_stride = call.x.stride;
    rows.x_is_finite = rows.values != nullptr && is_small_and_finite(call.x.as<T>());
    rows.y = reduced.data;
    rows.y_stride = reduced.stride;
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
    return std::min(tile_width_, problem_.features - tile * tile_width_);
  }

  /// The same operands with the first column of a tile as column 0.
  SpmmRows at_tile(SpmmRows rows, std::int64_t tile) const noexcept {
    const std::int64_t column = tile * tile_width_;
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
    const T* const from = static_cast<const T*>(rows.x) + tile * tile_width_;
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

  std::span<const RowRange> ranges_of(std::int64_t group) const {
    const std::span<const RowRange> from_first =
        std::span(schedule_.ranges).subspan(static_cast<std::size_t>(group * ranges_per_task_));
    return from_first.first(
        std::min(from_first.size(), static_cast<std::size_t>(ranges_per_task_)));
  }

  void run_group(SpmmRowsFunction function, const SpmmRows& rows, std::int64_t group,
                 std::int64_t width) const {
    for (const RowRange& range : ranges_of(group)) function(rows, range, 0, width);
  }

  /// While the rows of a group are in the caches; long rows are put together later.
  void finish_group(const SpmmCall& call, const Operand& reduced, std::int64_t group) const {
    if (problem_.is_plain()) return;
    for (const RowRange& range : ranges_of(group)) {
      if (range.slot < 0) finisher_.finish(call, reduced, range.row_begin, range.row_end);
    }
  }

  template <class Task>
  void for_tasks(std::int64_t count, Task&& task) const {
    const bool few = (col_indices_.size() + num_rows_) * problem_.features < min_parallel_work;
    if (!few) return parallel_tasks(count, task);
    for (std::int64_t i = 0; i < count; ++i) task(i);
  }

  void combine(const SpmmCall& call, const Operand& reduced, const SpmmRows& rows,
               bool finishes) const {
    const auto one_row = [&](std::int64_t i) {
      const LongRow& long_row = schedule_.long_rows[static_cast<std::size_t>(i)];
      if (problem_.finds_best()) {
        combine_best<T, S>(rows, long_row, problem_.features);
      } else {
        combine_sums<T, S>(rows, long_row, problem_.features);
      }
      if (finishes && !problem_.is_plain()) {
        finisher_.finish(call, reduced, long_row.row, std::int64_t{long_row.row} + 1);
      }
    };
    const auto count = static_cast<std::int64_t>(schedule_.long_rows.size());
    parallel_for(count, slots_.size() < min_parallel_work ? count : 1, one_row);
  }

  SpmmProblem problem_;
  std::int64_t tile_width_ = 0;  ///< features computed at a time, for all rows, before the next
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
  mutable Buffer<T> packed_;  ///< the features of a tile side by side; empty: they stay in X
  RowFinisher<T> finisher_;
};

}  // namespace

std::unique_ptr<const PreparedSpmm> prepare_spmm_by_rows(const SpmmProblem& problem, bool packed) {
  return prepare_as<PreparedSpmm, SpmmByRows>(problem.precision, problem, packed);
}

}  // namespace tessera::ops
