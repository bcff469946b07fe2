// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/any_start.cuh"
#include "cuda/vectors.cuh"
#include "ops/rows/reduce.cuh"

namespace tessera::ops {

/// A team gathers some features over edges of a row, and reduces them in registers.
template <RowsPolicy policy, class T, RowStarts starts, class Reduction>
class TeamGather {
 public:
  /// Whether a lane loads 16 bytes wherever rows of X begin, and stores them wherever those of Y
  /// do.
  static constexpr bool shifts = starts == RowStarts::anywhere;
  static constexpr bool stores_shifted = shifts || starts == RowStarts::units;
  static constexpr int vector_bytes =
      starts == RowStarts::elements ? static_cast<int>(sizeof(T)) : policy.bytes;
  using FeatureVector = cuda::Vector<T, vector_bytes>;
  using Element = typename Reduction::Element;
  /// The columns of one step's edges that fall to a lane.
  struct Columns {
    VertexId ids[policy.unroll];
  };
  static constexpr int width = FeatureVector::count;
  /// Features of a lane: those of its vectors, which are `lanes` vectors apart.
  static constexpr int held = policy.vectors * width;
  /// Features that a block takes of each row.
  static constexpr int block_features = policy.lanes * held;
  /// Features of a lane after `combine_groups`: `kept_vectors` times `kept` neighbours.
  static constexpr int all_kept = held > policy.edges ? held / policy.edges : 1;
  static constexpr int kept = all_kept < width ? all_kept : width;
  static constexpr int kept_vectors = all_kept / kept;
  static constexpr int kept_bytes = kept * static_cast<int>(sizeof(T));
  using KeptVector = cuda::Vector<T, kept_bytes>;
  static_assert(!stores_shifted || (policy.vectors == 1 && policy.bytes == 16));

  /// `first_vector` times `vectors` is the position of the team's first vector in a row of X. Lanes
  /// beyond the last feature load the first one instead and write nothing; where lanes have several
  /// vectors, no lane is beyond it.
  __device__ TeamGather(const RowsLaunch& launch, VertexId row, int first_vector)
      : launch_(launch),
        lane_(static_cast<int>(threadIdx.x % policy.team())),
        at_{row, (first_vector * policy.vectors + lane_ % policy.lanes) * width},
        active_(at_.feature < static_cast<int>(launch.features.count)),
        row_bytes_(static_cast<std::uint32_t>(launch.features.x_stride * sizeof(T))) {
    if (!active_) at_.feature = 0;
    features_ = static_cast<const char*>(launch.features.x) + std::int64_t{at_.feature} * sizeof(T);
    // Taken for new numbers: the compiler would keep what they are made of, and make them again for
    // every edge, at the cost of registers that loads need.
    if constexpr (!Reduction::needs_weights) asm("" : "+l"(features_), "+r"(at_.feature));
#pragma unroll
    for (Element& element : elements_) element = Reduction::none();
  }

  /// A row has fewer than 2^31 edges: 32 bits count them. The ids of the next step are on their way
  /// while the features of this one are; those of the first are `next`. All but the last step are
  /// whole, so that all their loads are in flight together.
  __device__ void gather(EdgeOffset begin, int left, Columns next) {
    const VertexId* indices = launch_.matrix.indices + begin + group();
#pragma unroll 1
    while (left > policy.step()) {
      const Columns columns = next;
      indices += policy.step();
      left -= policy.step();
      next = loaded(indices, left);
      add<true>(begin, policy.step(), columns);
      begin += policy.step();
    }
    if (left > 0) add<false>(begin, left, next);
  }

  __device__ Columns first_columns(EdgeOffset begin, int count) const {
    return loaded(launch_.matrix.indices + begin + group(), count);
  }

  /// Puts the results of the groups together by halves, so that they are spread over the team: each
  /// exchange also halves the features that a lane is concerned with.
  __device__ void combine_groups() { exchange<policy.lanes, held>(); }

  /// After `combine_groups`: stores a row of Y that begins anywhere.
  __device__ void store_shifted() const {
    Element elements[kept];
    float values[kept];
#pragma unroll
    for (int i = 0; i < kept; ++i) elements[i] = elements_[i];
    Reduction::finish(launch_, at_, elements, values);
    const std::int64_t y_bytes = launch_.features.y_stride * static_cast<std::int64_t>(sizeof(T));
    char* const row = static_cast<char*>(launch_.features.y) + at_.row * y_bytes;
    const int left = static_cast<int>(launch_.features.count) - at_.feature;
    if constexpr (policy.edges == 1) {
      const uint4 unit = FeatureVector::narrowed(values).raw;
      const uint4 before = {
          __shfl_up_sync(team_mask(), unit.x, 1), __shfl_up_sync(team_mask(), unit.y, 1),
          __shfl_up_sync(team_mask(), unit.z, 1), __shfl_up_sync(team_mask(), unit.w, 1)};
      if (!active_) return;
      cuda::store_unit<T>(row + at_.feature * sizeof(T), unit, before,
                          left * static_cast<int>(sizeof(T)), lane_ == 0, lane_ + 1 < policy.lanes);
    } else {
      if (!active_ || group() >= held) return;
      const int from = kept_from();
#pragma unroll
      for (int i = 0; i < kept; ++i) {
        if (from + i < left) {
          reinterpret_cast<T*>(row)[at_.feature + from + i] = cuda::narrow<T>(values[i]);
        }
      }
    }
  }

  /// After `combine_groups`: calls `take` with the place of each vector that this lane has to
  /// write, and its elements.
  template <class Take>
  __device__ void for_kept(Take take) const {
    if (!active_ || group() >= held) return;
#pragma unroll
    for (int v = 0; v < kept_vectors; ++v) {
      Element elements[kept];
#pragma unroll
      for (int i = 0; i < kept; ++i) elements[i] = elements_[v * width + i];
      const int from = kept_from() + v * width;
      take(ReducedRow{at_.row, at_.feature + from / width * policy.lanes * width + from % width},
           elements);
    }
  }

 private:
  __device__ int group() const { return lane_ / policy.lanes; }

  __device__ static unsigned team_mask() {
    if constexpr (policy.team() == 32) return ~0u;
    const unsigned shift = threadIdx.x % 32 / policy.team() * policy.team();
    return ((1u << (policy.team() % 32)) - 1) << shift;
  }

  /// Between lanes that are `distance` apart, each with the first `count` of its elements.
  template <int distance, int count>
  __device__ void exchange() {
    if constexpr (distance < policy.team()) {
      constexpr int half = count > 1 ? count / 2 : 1;
      const bool upper = count > 1 && (lane_ & distance) != 0;
#pragma unroll
      for (int i = 0; i < half; ++i) {
        const Element sent = count == 1 || upper ? elements_[i] : elements_[count - half + i];
        if (upper) elements_[i] = elements_[count - half + i];
        Reduction::merge(elements_[i], Reduction::from_lane(team_mask(), sent, distance));
      }
      exchange<2 * distance, half>();
    }
  }

  /// Which of its features a lane keeps: every exchange decided for the upper or the lower half.
  __device__ int kept_from() const {
    int from = 0;
#pragma unroll
    for (int half = held / 2, bit = 1; half >= all_kept && half > 0; half /= 2, bit *= 2) {
      if ((group() & bit) != 0) from += half;
    }
    return from;
  }

  __device__ Columns loaded(const VertexId* indices, int left) const {
    Columns columns;
    if (left >= policy.step()) {
#pragma unroll
      for (int u = 0; u < policy.unroll; ++u) columns.ids[u] = __ldg(indices + u * policy.edges);
    } else {
#pragma unroll
      for (int u = 0; u < policy.unroll; ++u) {
        const bool live = u * policy.edges + group() < left;
        columns.ids[u] = live ? __ldg(indices + u * policy.edges) : 0;
      }
    }
    return columns;
  }

  __device__ const char* row_of(VertexId column) const {
    return features_ + static_cast<std::uint64_t>(static_cast<std::uint32_t>(column)) * row_bytes_;
  }

  /// Adds the edges of one step from `begin` on; unless `whole`, only `left` of them exist.
  template <bool whole>
  __device__ void add(EdgeOffset begin, int left, const Columns& columns) {
    using Beside = typename Reduction::template Beside<held>;
    FeatureVector rows[policy.unroll][policy.vectors];
    Beside beside[policy.unroll];
    GatheredEdge edges[policy.unroll];
    [[maybe_unused]] ShiftedRows shifted;
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      const int edge = u * policy.edges + group();
      edges[u] = {begin + edge, columns.ids[u], whole || edge < left};
    }
    if constexpr (shifts) shifted = load_shifted(edges);
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      if constexpr (!shifts) {
#pragma unroll
        for (int v = 0; v < policy.vectors; ++v) {
          const char* const from = row_of(columns.ids[u]) + v * policy.lanes * vector_bytes;
          rows[u][v] =
              whole ? FeatureVector::load(from) : FeatureVector::load_if(edges[u].live, from);
        }
      }
      beside[u] = Beside::load(launch_, at_, columns.ids[u], edges[u].live);
    }
    if constexpr (Reduction::weights_ahead) load_weights<T>(launch_.matrix, edges);
    if constexpr (shifts) finish_shifted(edges, shifted, rows);
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      float values[held];
#pragma unroll
      for (int v = 0; v < policy.vectors; ++v) {
        float some[width];
        rows[u][v].widen_to(some);
#pragma unroll
        for (int i = 0; i < width; ++i) values[v * width + i] = some[i];
      }
      Reduction::add(launch_, at_, edges[u], beside[u], values, elements_);
    }
  }

  /// Rows that begin anywhere, as they are loaded.
  struct ShiftedRows {
    cuda::UnitBlocks<T> blocks[policy.unroll];
    bool in_blocks = true;  ///< the last rows may end in blocks that do not belong to X
  };

  __device__ int bytes_left() const {
    return static_cast<int>(launch_.features.count - at_.feature) * static_cast<int>(sizeof(T));
  }

  __device__ ShiftedRows load_shifted(const GatheredEdge (&edges)[policy.unroll]) const {
    ShiftedRows shifted;
    VertexId last = 0;
#pragma unroll
    for (const GatheredEdge& edge : edges) last = max(last, edge.column);
    shifted.in_blocks = last < launch_.features.rows_in_blocks;
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      shifted.blocks[u].load_if(shifted.in_blocks && edges[u].live, row_of(edges[u].column),
                                bytes_left());
    }
    return shifted;
  }

  __device__ void finish_shifted(const GatheredEdge (&edges)[policy.unroll], ShiftedRows& shifted,
                                 FeatureVector (&rows)[policy.unroll][policy.vectors]) const {
    if (!shifted.in_blocks) {
#pragma unroll
      for (int u = 0; u < policy.unroll; ++u) {
        shifted.blocks[u].load_alone(edges[u].live, row_of(edges[u].column), bytes_left());
      }
    }
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) rows[u][0].raw = shifted.blocks[u].unit();
  }

  const RowsLaunch& launch_;
  int lane_;
  ReducedRow at_;
  bool active_;
  const char* features_;     ///< this lane's, of the first row of X
  std::uint32_t row_bytes_;  ///< from one row of X to the next
  Element elements_[held];
};

}  // namespace tessera::ops
