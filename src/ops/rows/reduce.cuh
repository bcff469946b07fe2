// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/offsets.cuh"
#include "cuda/vectors.cuh"
#include "ops/dense/cuda/epilogue.cuh"
#include "ops/rows/launch.hpp"

/// What is kept of the edges of a row. A reduction has
///   Element    what it keeps of one feature: a sum, or the best product and its source
///   none()     the Element of no edges
///   Beside     what an edge brings besides its row of X, loaded together with it
///   weights_ahead  whether `add` wants the weights of edges, all of a step loaded at once
///   add        one edge's features into a lane's Elements
///   merge      the Element of some edges with that of others
///   read       an Element that another block wrote
///   finish     the values to store
namespace tessera::ops {

/// One edge of a step; only a `live` one exists.
struct GatheredEdge {
  EdgeOffset edge = 0;
  VertexId column = 0;
  bool live = false;
  float weight = 0;
};

/// Sets the weights of edges, but for their rows' scales; 0 for those that do not exist. All of a
/// kind are on their way before the first is waited for.
template <class T, int count>
__device__ void load_weights(const RowsLaunch::Matrix& matrix, GatheredEdge (&edges)[count]) {
#pragma unroll
  for (GatheredEdge& edge : edges) edge.weight = edge.live ? 1.0f : 0.0f;
  if (matrix.col_scale != nullptr) {
#pragma unroll
    for (GatheredEdge& edge : edges) {
      if (edge.live) edge.weight = __ldg(matrix.col_scale + edge.column);
    }
  }
  if (matrix.graph_values == nullptr && matrix.stored_values == nullptr) return;
  EdgeOffset at[count];
#pragma unroll
  for (int i = 0; i < count; ++i) at[i] = edges[i].edge;
  if (matrix.positions != nullptr) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (edges[i].live) at[i] = __ldg(matrix.positions + at[i]);
    }
  }
  float values[count] = {};
  if (matrix.stored_values != nullptr) {
    const auto* const stored = static_cast<const T*>(matrix.stored_values);
    T some[count] = {};
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (edges[i].live) some[i] = stored[at[i] * matrix.value_stride];
    }
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = cuda::widen(some[i]);
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (edges[i].live) values[i] = __ldg(matrix.graph_values + at[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < count; ++i) edges[i].weight *= values[i];
}

template <class T>
__device__ float weight_of(const RowsLaunch& launch, EdgeOffset edge, VertexId column) {
  GatheredEdge edges[1] = {{edge, column, true}};
  load_weights<T>(launch.matrix, edges);
  return edges[0].weight;
}

/// A row that is reduced, from feature `feature` on.
struct ReducedRow {
  VertexId row = 0;
  int feature = 0;
};

/// Ids of neighbouring features, at once where a lane has several of them: rows of ids then lie on
/// boundaries of 16 bytes.
template <int width>
__device__ void load_ids(const VertexId* from, VertexId (&ids)[width]) {
  if constexpr (width % 4 == 0) {
#pragma unroll
    for (int i = 0; i < width; i += 4) {
      const int4 some = __ldg(reinterpret_cast<const int4*>(from + i));
      ids[i] = some.x;
      ids[i + 1] = some.y;
      ids[i + 2] = some.z;
      ids[i + 3] = some.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < width; ++i) ids[i] = __ldg(from + i);
  }
}
template <int width>
__device__ void store_ids(const VertexId (&ids)[width], VertexId* to) {
  if constexpr (width % 4 == 0) {
#pragma unroll
    for (int i = 0; i < width; i += 4) {
      *reinterpret_cast<int4*>(to + i) = {ids[i], ids[i + 1], ids[i + 2], ids[i + 3]};
    }
  } else if constexpr (width == 2) {
    *reinterpret_cast<int2*>(to) = {ids[0], ids[1]};
  } else {
#pragma unroll
    for (int i = 0; i < width; ++i) to[i] = ids[i];
  }
}

/// Of reductions whose edges bring nothing else.
struct NothingBeside {
  __device__ static NothingBeside load(const RowsLaunch&, const ReducedRow&, VertexId, bool) {
    return {};
  }
};

struct Sum {
  static constexpr bool weights_ahead = false;
  using Element = float;
  template <int width>
  using Beside = NothingBeside;

  __device__ static float none() { return 0; }
  __device__ static void merge(float& sum, float other) { sum += other; }
  __device__ static float read(const volatile float* slot) { return *slot; }
  __device__ static float from_lane(unsigned mask, float sum, int distance) {
    return __shfl_xor_sync(mask, sum, distance);
  }
  template <int width>
  __device__ static void finish(const RowsLaunch& launch, const ReducedRow& at,
                                const float (&sums)[width], float (&values)[width]) {
    const float scale =
        launch.epilogue.row_scale != nullptr ? __ldg(launch.epilogue.row_scale + at.row) : 1.0f;
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] = sums[i] * scale;
    if (!launch.epilogue.mean) return;
    // Read again: to keep it would cost every kernel a register.
    const EdgeOffset degree =
        cuda::fixed_offset_at(launch.matrix.offsets, std::int64_t{at.row} + 1) -
        cuda::fixed_offset_at(launch.matrix.offsets, at.row);
    if (degree == 0) return;
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] /= static_cast<float>(degree);
  }
};

/// Sums of the features themselves. What is loaded for an edge that does not exist is 0.
template <class T>
struct PatternSum : Sum {
  static constexpr bool needs_weights = false;
  template <int width>
  __device__ static void add(const RowsLaunch&, const ReducedRow&, const GatheredEdge&,
                             const NothingBeside&, const float (&values)[width],
                             float (&sums)[width]) {
#pragma unroll
    for (int i = 0; i < width; ++i) sums[i] += values[i];
  }
};

template <class T>
struct WeightedSum : Sum {
  static constexpr bool needs_weights = true;
  static constexpr bool weights_ahead = true;
  template <int width>
  __device__ static void add(const RowsLaunch&, const ReducedRow&, const GatheredEdge& edge,
                             const NothingBeside&, const float (&values)[width],
                             float (&sums)[width]) {
#pragma unroll
    for (int i = 0; i < width; ++i) sums[i] = fmaf(edge.weight, values[i], sums[i]);
  }
};

/// The gradient of max and min of features themselves: over the elements that this row won.
template <class T>
struct PatternWinnerSum : Sum {
  static constexpr bool needs_weights = false;
  /// Who won the elements of a row of Y; nobody those of an edge that does not exist.
  template <int width>
  struct Beside {
    VertexId won_by[width];

    __device__ static Beside load(const RowsLaunch& launch, const ReducedRow& at, VertexId column,
                                  bool live) {
      Beside beside;
      if (live) {
        load_ids(launch.features.won_by + column * launch.features.won_by_stride + at.feature,
                 beside.won_by);
      } else {
#pragma unroll
        for (VertexId& id : beside.won_by) id = -1;
      }
      return beside;
    }
  };
  template <int width>
  __device__ static void add(const RowsLaunch&, const ReducedRow& at, const GatheredEdge&,
                             const Beside<width>& beside, const float (&values)[width],
                             float (&sums)[width]) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (beside.won_by[i] == at.row) sums[i] += values[i];
    }
  }
};

template <class T>
struct WinnerSum : PatternWinnerSum<T> {
  static constexpr bool needs_weights = true;
  template <int width>
  __device__ static void add(const RowsLaunch& launch, const ReducedRow& at,
                             const GatheredEdge& edge,
                             const typename PatternWinnerSum<T>::template Beside<width>& beside,
                             const float (&values)[width], float (&sums)[width]) {
    const float weight = edge.live ? weight_of<T>(launch, edge.edge, edge.column) : 0.0f;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (beside.won_by[i] == at.row) sums[i] = fmaf(weight, values[i], sums[i]);
    }
  }
};

/// The largest product times `sign`, and its source; -1 while there is none above -inf.
struct BestElement {
  float product;
  VertexId source;
};

/// The larger of two, and not-a-number, always the same, if one of them is.
__device__ inline float larger_or_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

/// A whole number for each product, in their order, with not-a-number above all.
__device__ inline std::int32_t rank_of(float product) {
  const std::int32_t bits = __float_as_int(product);
  return bits ^ (bits >> 31 & 0x7fffffff);
}

/// Max and min of the features themselves.
template <class T>
struct PatternBest {
  static constexpr bool needs_weights = false;
  static constexpr bool weights_ahead = false;
  using Element = BestElement;
  template <int width>
  using Beside = NothingBeside;

  __device__ static BestElement none() { return {-INFINITY, -1}; }
  /// Of equals the lower source stays.
  __device__ static void merge(BestElement& holder, BestElement challenger) {
    const std::int32_t rank = rank_of(challenger.product);
    const std::int32_t held = rank_of(holder.product);
    if (rank > held || (rank == held && challenger.source < holder.source)) holder = challenger;
  }
  __device__ static BestElement read(const volatile BestElement* slot) {
    return {slot->product, slot->source};
  }
  __device__ static BestElement from_lane(unsigned mask, BestElement best, int distance) {
    return {__shfl_xor_sync(mask, best.product, distance),
            __shfl_xor_sync(mask, best.source, distance)};
  }
  template <int width>
  __device__ static void add(const RowsLaunch& launch, const ReducedRow&, const GatheredEdge& edge,
                             const NothingBeside&, const float (&values)[width],
                             BestElement (&best)[width]) {
    if (edge.live) take(launch.matrix.sign, edge.column, values, best);
  }
  /// A row whose products are all -inf has the first of its sources, and one without edges none.
  template <int width>
  __device__ static void finish(const RowsLaunch& launch, const ReducedRow& at,
                                const BestElement (&best)[width], float (&values)[width]) {
    VertexId lowest = best[0].source;
#pragma unroll
    for (int i = 1; i < width; ++i) lowest = min(lowest, best[i].source);
    const VertexId first = lowest < 0 ? first_source(launch, at.row) : lowest;
    VertexId sources[width];
#pragma unroll
    for (int i = 0; i < width; ++i) {
      sources[i] = best[i].source < 0 ? first : best[i].source;
      values[i] = sources[i] < 0 ? 0.0f : fmaf(best[i].product, launch.matrix.sign, 0.0f);
    }
    if (launch.features.winners == nullptr) return;
    store_ids(sources,
              launch.features.winners + at.row * launch.features.winners_stride + at.feature);
  }

 protected:
  /// A lane meets the sources of a row in their order: of equals the first stays. Products are sums
  /// that begin with 0, which has one sign then: equals have the same bits.
  template <int width>
  __device__ static void take(float weight, VertexId source, const float (&values)[width],
                              BestElement (&best)[width]) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const float larger = larger_or_nan(best[i].product, fmaf(weight, values[i], 0.0f));
      if (__float_as_int(larger) != __float_as_int(best[i].product)) best[i].source = source;
      best[i].product = larger;
    }
  }

 private:
  __device__ static VertexId first_source(const RowsLaunch& launch, VertexId row) {
    const EdgeOffset begin = cuda::fixed_offset_at(launch.matrix.offsets, row);
    const bool any = cuda::fixed_offset_at(launch.matrix.offsets, std::int64_t{row} + 1) > begin;
    return any ? __ldg(launch.matrix.indices + begin) : -1;
  }
};

template <class T>
struct Best : PatternBest<T> {
  static constexpr bool needs_weights = true;
  static constexpr bool weights_ahead = true;
  template <int width>
  __device__ static void add(const RowsLaunch& launch, const ReducedRow& at,
                             const GatheredEdge& edge, const NothingBeside&,
                             const float (&values)[width], BestElement (&best)[width]) {
    if (!edge.live) return;
    // The row's scale may be negative, so it takes part in the comparison.
    float weight = edge.weight * launch.matrix.sign;
    if (launch.epilogue.row_scale != nullptr) weight *= __ldg(launch.epilogue.row_scale + at.row);
    PatternBest<T>::take(weight, edge.column, values, best);
  }
};

}  // namespace tessera::ops
