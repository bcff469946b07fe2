// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/offsets.cuh"
#include "ops/aggregate_update/cuda/fused/layout.cuh"
#include "ops/dense/cuda/epilogue.cuh"
#include "ops/rows/work.cuh"

/// Rows of X gathered and added up where the matrix units take them from: four lanes have a row,
/// each of them 16 bytes of every 64, and a lane has two rows, eight apart.
namespace tessera::ops {

/// A row that four lanes sum.
struct UpdateRow {
  VertexId row = -1;  ///< none
  std::int32_t count = 0;
  /// Of its edges; below 0 for a long row, whose sums stand in slots and whose count is 0.
  EdgeOffset begin = 0;

  __device__ bool is_long() const { return begin < 0; }
  __device__ cuda::CutRow slots(const UpdateLaunch& launch) const {
    return launch.work.long_rows[-1 - begin];
  }
};

/// A row's edges. One too long for the type stays one of the long ones.
__device__ inline RowSlice slice_of(const cuda::Offsets& offsets, std::int64_t row) {
  constexpr EdgeOffset most = 0x7FFFFFFF;
  RowSlice slice;
  slice.row = static_cast<VertexId>(row);
  slice.begin = cuda::fixed_offset_at(offsets, row);
  slice.count =
      static_cast<std::int32_t>(min(cuda::fixed_offset_at(offsets, row + 1) - slice.begin, most));
  return slice;
}

/// Number `place` of the list, or of all rows where there is none.
__device__ inline UpdateRow update_row(const UpdateLaunch& launch, std::int64_t place) {
  UpdateRow found;
  if (place >= launch.matrix.num_rows) return found;
  RowSlice slice;
  if (launch.work.rows != nullptr) {
    slice = slice_at(launch.work.rows, place);
  } else {
    slice = slice_of(launch.matrix.offsets, place);
  }
  found.row = slice.row;
  found.begin = slice.begin;
  if (slice.count <= launch.work.longest_row) {
    found.count = slice.count;
    return found;
  }
  std::int32_t low = 0;
  std::int32_t high = launch.work.num_long - 1;
  while (low < high) {
    const std::int32_t middle = (low + high) / 2;
    if (launch.work.long_rows[middle].row < found.row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  found.begin = -1 - low;
  return found;
}

/// The weight of an edge but for its row's scale.
__device__ inline float update_weight(const RowsLaunch::Matrix& matrix, EdgeOffset edge,
                                      VertexId column) {
  float weight = 1;
  if (matrix.graph_values != nullptr) {
    const EdgeOffset at = matrix.positions != nullptr ? __ldg(matrix.positions + edge) : edge;
    weight = __ldg(matrix.graph_values + at);
  }
  if (matrix.col_scale != nullptr) weight *= __ldg(matrix.col_scale + column);
  return weight;
}

/// What a row's sum is multiplied by, and then divided by.
struct RowScale {
  float factor = 1;
  float divisor = 1;

  __device__ RowScale(const UpdateLaunch& launch, VertexId row) {
    if (launch.epilogue.row_scale != nullptr) factor = __ldg(launch.epilogue.row_scale + row);
    if (!launch.epilogue.mean) return;
    const EdgeOffset degree = cuda::fixed_offset_at(launch.matrix.offsets, std::int64_t{row} + 1) -
                              cuda::fixed_offset_at(launch.matrix.offsets, row);
    if (degree > 0) divisor = static_cast<float>(degree);
  }
  __device__ float operator()(float sum) const { return sum * factor / divisor; }
};

template <class T>
__device__ float self_factor(const UpdateLaunch& launch) {
  if (launch.features.self_scale == nullptr) return 1;
  return 1 + cuda::widen(*static_cast<const T*>(launch.features.self_scale));
}

/// What a lane has of a chunk of columns: 16 bytes of each of its units of 64.
template <class T, bool aligned>
class UpdateChunk {
  using Layout = UpdateLayout<T>;
  using Vector = cuda::Vector<T, 16>;

 public:
  static constexpr int units = Layout::chunk_units;
  static constexpr int chunk_cols = units * Layout::unit_cols;
  using Values = float[2][units][Layout::lane_cols];

  __device__ UpdateChunk(const UpdateLaunch& launch, int first_col)
      : launch_(launch),
        first_col_(first_col + static_cast<int>(threadIdx.x) % 4 * Layout::lane_cols),
        x_(static_cast<const T*>(launch.features.x) + first_col_),
        row_bytes_(static_cast<std::uint32_t>(launch.features.x_stride * sizeof(T))) {}

  /// Z of both rows.
  __device__ void sum(const UpdateRow (&rows)[2], float own_factor, Values& sums) const {
    const bool scaled = launch_.epilogue.row_scale != nullptr || launch_.epilogue.mean;
    Columns ids;
    load_columns(rows, 0, ids);
    Vector own[2][units];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      load(launch_.features.self && !scaled && rows[r].row >= 0, rows[r].row, own[r]);
    }
    // The first edges are on their way together with the row itself.
    Edges edges;
    load_edges(rows, 0, ids, edges);
#pragma unroll
    for (int r = 0; r < 2; ++r) put(own[r], own_factor, sums[r]);
    add_edges(rows, 0, ids, edges, sums);
    const int most = max(rows[0].count, rows[1].count);
#pragma unroll 1
    for (int done = at_once; done < most; done += at_once) {
      load_columns(rows, done, ids);
      load_edges(rows, done, ids, edges);
      add_edges(rows, done, ids, edges, sums);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (rows[r].is_long()) add_slots(rows[r].slots(launch_), sums[r]);
    }
    if (scaled) finish(rows, own_factor, sums);
  }

  /// The rows themselves.
  __device__ void take_own(const UpdateRow (&rows)[2], Values& values) const {
    Vector own[2][units];
#pragma unroll
    for (int r = 0; r < 2; ++r) load(rows[r].row >= 0, rows[r].row, own[r]);
#pragma unroll
    for (int r = 0; r < 2; ++r) put(own[r], 1, values[r]);
  }

  __device__ void store(const UpdateRow (&rows)[2], const Values& sums) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (rows[r].row < 0) continue;
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        const EpiloguePlace place = {rows[r].row, first_col_ + unit * Layout::unit_cols,
                                     launch_.features.inner};
        if (place.feature >= place.features) continue;
        put_features<T>(launch_.features.aggregated, launch_.features.aggregated_stride, place,
                        sums[r][unit]);
      }
    }
  }

 private:
  static constexpr int at_once = Layout::edges_at_once;
  struct Columns {
    VertexId of[2][at_once];
  };
  struct Edges {
    Vector of[2][at_once][units];
  };

  __device__ void load_columns(const UpdateRow (&rows)[2], int first, Columns& ids) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int e = 0; e < at_once; ++e) {
        const bool live = first + e < rows[r].count;
        ids.of[r][e] = live ? __ldg(launch_.matrix.indices + rows[r].begin + first + e) : 0;
      }
    }
  }

  __device__ void load_edges(const UpdateRow (&rows)[2], int first, const Columns& ids,
                             Edges& edges) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int e = 0; e < at_once; ++e) {
        load(first + e < rows[r].count, ids.of[r][e], edges.of[r][e]);
      }
    }
  }

  __device__ void add_edges(const UpdateRow (&rows)[2], int first, const Columns& ids,
                            const Edges& edges, Values& sums) const {
    float weights[2][at_once];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int e = 0; e < at_once; ++e) weights[r][e] = 1;
    }
    if (launch_.work.weighted) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int e = 0; e < at_once; ++e) {
          if (first + e >= rows[r].count) continue;
          weights[r][e] = update_weight(launch_.matrix, rows[r].begin + first + e, ids.of[r][e]);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int e = 0; e < at_once; ++e) add(edges.of[r][e], weights[r][e], sums[r]);
    }
  }

  /// Zeros where it is not wanted, and beyond the last column.
  __device__ void load(bool wanted, VertexId row, Vector (&vectors)[units]) const {
    const auto offset = std::uint64_t{static_cast<std::uint32_t>(row)} * row_bytes_;
    const auto* const from = reinterpret_cast<const T*>(reinterpret_cast<const char*>(x_) + offset);
#pragma unroll
    for (int unit = 0; unit < units; ++unit) {
      const int left =
          static_cast<int>(launch_.features.inner) - first_col_ - unit * Layout::unit_cols;
      if constexpr (aligned) {
        vectors[unit] = Vector::load_if(wanted && left > 0, from + unit * Layout::unit_cols);
      } else {
        T elements[Layout::lane_cols];
#pragma unroll
        for (int i = 0; i < Layout::lane_cols; ++i) {
          elements[i] = wanted && i < left ? from[unit * Layout::unit_cols + i] : T(0.0f);
        }
        memcpy(&vectors[unit].raw, elements, sizeof elements);
      }
    }
  }

  __device__ static void put(const Vector (&vectors)[units], float factor,
                             float (&values)[units][Layout::lane_cols]) {
#pragma unroll
    for (int unit = 0; unit < units; ++unit) {
      vectors[unit].widen_to(values[unit]);
#pragma unroll
      for (float& value : values[unit]) value *= factor;
    }
  }

  __device__ static void add(const Vector (&vectors)[units], float weight,
                             float (&sums)[units][Layout::lane_cols]) {
#pragma unroll
    for (int unit = 0; unit < units; ++unit) {
      float values[Layout::lane_cols];
      vectors[unit].widen_to(values);
#pragma unroll
      for (int i = 0; i < Layout::lane_cols; ++i) {
        sums[unit][i] = fmaf(weight, values[i], sums[unit][i]);
      }
    }
  }

  __device__ void add_slots(const cuda::CutRow& row,
                            float (&sums)[units][Layout::lane_cols]) const {
    const std::int64_t inner = launch_.features.inner;
    for (int slot = 0; slot < row.num_slots; ++slot) {
      const float* const from = launch_.work.slots + (row.first_slot + slot) * inner;
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
#pragma unroll
        for (int i = 0; i < Layout::lane_cols; ++i) {
          const int col = first_col_ + unit * Layout::unit_cols + i;
          if (col < inner) sums[unit][i] += from[col];
        }
      }
    }
  }

  __device__ void finish(const UpdateRow (&rows)[2], float own_factor, Values& sums) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (rows[r].row < 0) continue;
      const RowScale scale(launch_, rows[r].row);
#pragma unroll
      for (auto& unit : sums[r]) {
#pragma unroll
        for (float& sum : unit) sum = scale(sum);
      }
      if (!launch_.features.self) continue;
      Vector own[units];
      load(true, rows[r].row, own);
      add(own, own_factor, sums[r]);
    }
  }

  const UpdateLaunch& launch_;
  int first_col_;
  const T* x_;
  std::uint32_t row_bytes_;
};

/// Asks for what the next window needs and memory would let it wait for: rows of X with the numbers
/// of its own, of which its neighbours are few others where graphs are small or communities, and
/// the first columns of its edges.
template <class T>
__device__ void expect_rows(const UpdateLaunch& launch, std::int64_t first_row, int num_rows,
                            int thread, int threads) {
  constexpr int line_bytes = 128;
  const auto row_bytes = static_cast<int>(launch.features.inner * sizeof(T));
  const int lines = (row_bytes + line_bytes - 1) / line_bytes;
  for (int i = thread; i < num_rows * lines; i += threads) {
    const std::int64_t row = first_row + i / lines;
    if (row >= launch.features.x_rows) return;
    cuda::expect_in_l2(static_cast<const char*>(launch.features.x) +
                       row * launch.features.x_stride * static_cast<int>(sizeof(T)) +
                       i % lines * line_bytes);
  }
}

__device__ inline void expect_columns(const UpdateLaunch& launch, const UpdateRow (&rows)[2]) {
#pragma unroll
  for (const UpdateRow& row : rows) {
    if (row.count > 0) cuda::expect_in_l2(launch.matrix.indices + row.begin);
  }
}

/// One number of Y before its epilogue, without planes: where those give what is not finite.
template <class T>
__device__ float plain_update(const UpdateLaunch& launch, const UpdateRow& row, std::int64_t col) {
  const auto* const x = static_cast<const T*>(launch.features.x);
  const auto weight_at = [&](const void* weight, std::int64_t stride, std::int64_t k) {
    const auto* const from = static_cast<const T*>(weight);
    return cuda::widen(launch.weights.inner_in_row ? from[col * stride + k]
                                                   : from[k * stride + col]);
  };
  const float own_factor = self_factor<T>(launch);
  const RowScale scale(launch, row.row);
  const bool has_own = launch.features.self || launch.weights.root != nullptr;
  float total = 0;
#pragma unroll 1
  for (std::int64_t k = 0; k < launch.features.inner; ++k) {
    float sum = 0;
#pragma unroll 1
    for (EdgeOffset edge = row.begin; edge < row.begin + row.count; ++edge) {
      const VertexId column = __ldg(launch.matrix.indices + edge);
      sum = fmaf(update_weight(launch.matrix, edge, column),
                 cuda::widen(x[column * launch.features.x_stride + k]), sum);
    }
    if (row.is_long()) {
      const cuda::CutRow slots = row.slots(launch);
#pragma unroll 1
      for (int slot = 0; slot < slots.num_slots; ++slot) {
        sum += launch.work.slots[(slots.first_slot + slot) * launch.features.inner + k];
      }
    }
    const float own = has_own ? cuda::widen(x[row.row * launch.features.x_stride + k]) : 0.0f;
    sum = scale(sum);
    if (launch.features.self) sum = fmaf(own_factor, own, sum);
    total = fmaf(sum, weight_at(launch.weights.weight, launch.weights.stride, k), total);
    if (launch.weights.root != nullptr) {
      total = fmaf(own, weight_at(launch.weights.root, launch.weights.root_stride, k), total);
    }
  }
  return total;
}

}  // namespace tessera::ops
