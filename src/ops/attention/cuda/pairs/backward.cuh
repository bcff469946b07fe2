// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/pairs/kernel.cuh"
#include "ops/attention/cuda/pairs/scores.cuh"
#include "ops/attention/cuda/pairs/shares.cuh"

/// The backward pass of GATv2: with P the weights, which come again from the scores and `log_sum`,
/// D = dO . O of a target and z = x[i] + y[j],
///
///     dS    = P (dO[i] . V[j] - D[i])
///     dx[i] = a * sum over j of dS leaky_relu'(z),   dy[j] = a * sum over i of the same
///     dV[j] = sum over i of P dO[i],                 da    = sum of dS leaky_relu(z)
///
/// leaky_relu' is s + (1 - s) [z > 0], so that dx and dy are made of sums of dS where z > 0, to
/// which s times the sum of dS is added; over the sources of a target that is 0. One comparison
/// tells it for two features. As leaky_relu(z) is leaky_relu' times x plus the same times y, da is
/// what every target's sums times its x and every source's times its y add up to. The sweep over
/// rows gives dx, that over columns dy and dV.
namespace tessera::ops {

/// Adds `number` to the sums of those of two features of which a is greater than b.
template <class T>
__device__ void add_where_greater(float& low, float& high, float number, std::uint32_t a,
                                  std::uint32_t b) {
#if __CUDA_ARCH__ >= 900
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    asm("{ .reg .pred p, q; setp.gt.bf16x2 p|q, %2, %3;\n"
        "  @p add.f32 %0, %0, %4; @q add.f32 %1, %1, %4; }"
        : "+f"(low), "+f"(high)
        : "r"(a), "r"(b), "f"(number));
    return;
  }
#endif
  const float2 x = unpacked<T>(a);
  const float2 y = unpacked<T>(b);
  if (x.x > y.x) low += number;
  if (x.y > y.y) high += number;
}

/// `shares`: values are the sources, and by rows they are gathered once.
template <class T, int width, bool by_rows, bool shares>
class PairGradient {
  static_assert(by_rows || !shares);
  using Row = LaneRow<T, width>;
  using Share = PairShare<width>;
  static constexpr int held = Share::held;

 public:
  static constexpr int blocks = by_rows ? (width == 32 ? 5 : 4) : (width == 32 ? 4 : 3);

  __device__ explicit PairGradient(const RowsAttentionLaunch& launch)
      : launch_(launch),
        scores_(launch.vector, launch.slope),
        met_score_rows_(lane_features<width>(launch.gathered_scores)),
        met_value_rows_(lane_features<width>(launch.gathered_values)) {}

  __device__ void run(unsigned item) {
    const PairEdges edges = pair_edges(launch_, item);
    begin(edges);
    for_pairs(edges, [&](const PairVertices& vertices) { step(vertices); });
    finish(pair_result(launch_, item, Share::half()));
  }

  /// Stores this warp's part of the gradient of a.
  __device__ void end() const {
    if (launch_.vector_sums == nullptr) return;
    float* const to =
        launch_.vector_sums + std::int64_t{warp_of_grid()} * launch_.heads * width + Share::begin();
#pragma unroll
    for (int i = 0; i < Share::size; ++i) {
      const float sum = Share::over_halves(vector_sums_[i]);
      if (Share::half() == 0) to[i] = sum;
    }
  }

 private:
  struct State {
    float log_sum = 0;  ///< in powers of two
    float dot = 0;      ///< dO . O
  };

  __device__ void begin(const PairEdges& edges) {
    const FeatureRows own_rows = lane_features<width>(launch_.own_scores);
    const FeatureRows own_values = lane_features<width>(launch_.own_values);
    Row own[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      own[half].load(own_rows, edges.rows[half], edges.has_edges(half));
      totals_[half] = 0;
#pragma unroll
      for (float& sum : score_sums_[half]) sum = 0;
      if constexpr (!by_rows) {
#pragma unroll
        for (float& sum : value_sums_[half]) sum = 0;
      }
    }
    scores_.begin(own);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const VertexId row = edges.has_edges(half) ? edges.rows[half] : -1;
      Row values;
      values.load(own_values, row, row >= 0);
#pragma unroll
      for (int chunk = 0; chunk < Row::chunks; ++chunk) {
        own_values_[half][chunk] = MetFeatures(values.of[chunk]);
      }
    }
    if constexpr (by_rows) find_states(edges);
  }

  /// By rows, of all rows; the other sweep will want them.
  __device__ void find_states(const PairEdges& edges) {
    constexpr int lanes = 16;  // of a row
    static_assert(width / 8 <= lanes);
    const int unit = WarpLane::number() % lanes;
    const VertexId row = Share::half() == 0 ? edges.rows[0] : edges.rows[1];
    const bool wanted = row >= 0 && unit < width / 8;
    const FeatureRows outputs(launch_.outputs.data, launch_.outputs.row_bytes / 2, width, unit * 8);
    const FeatureRows gradients(launch_.own_values.data, launch_.own_values.row_bytes / 2, width,
                                unit * 8);
    using Unit = cuda::Vector<T, 16>;
    float of_output[8], of_gradient[8];
    Unit::load_if(wanted, outputs.at(wanted ? row : 0)).widen_to(of_output);
    Unit::load_if(wanted, gradients.at(wanted ? row : 0)).widen_to(of_gradient);
    float dot = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) dot = fmaf(of_output[i], of_gradient[i], dot);
#pragma unroll
    for (int distance = lanes / 2; distance >= 1; distance /= 2) {
      dot += __shfl_xor_sync(~0u, dot, distance);
    }
    const float log_sum =
        row >= 0 ? launch_.log_sum[row * launch_.log_sum_stride + blockIdx.y] : 0.0f;
    // Pieces of one row write the same.
    if (row >= 0 && unit == 0) {
      launch_.row_state[row * launch_.heads + blockIdx.y] = {log_sum, dot};
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int from = half * lanes;
      states_[half] = {__shfl_sync(~0u, log_sum * log2_of_e, from), __shfl_sync(~0u, dot, from)};
    }
  }
  __device__ State state_of(const PairVertices& vertices, int half) const {
    if constexpr (by_rows) return states_[half];
    if (!vertices.exist[half]) return {};
    const auto* const from = launch_.row_state + vertices.ids[half] * launch_.heads + blockIdx.y;
    const float2 state = __ldg(reinterpret_cast<const float2*>(from));
    return {state.x * log2_of_e, state.y};
  }

  __device__ void step(const PairVertices& vertices) {
    Row met[2], values[2];
    State states[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      met[half].load(met_score_rows_, vertices.ids[half], vertices.exist[half]);
      if constexpr (shares) {
        values[half] = met[half];
      } else {
        values[half].load(met_value_rows_, vertices.ids[half], vertices.exist[half]);
      }
      states[half] = state_of(vertices, half);
    }
    float scores[2];
    scores_.find(scores, met);
    EdgeProducts products[2];
#pragma unroll
    for (int chunk = 0; chunk < Row::chunks; ++chunk) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        products[half].add<T>(values[half].of[chunk], own_values_[half][chunk]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool exists = vertices.exist[half];
      const float weight = exists ? power_of_2(scores[half] - states[half].log_sum) : 0.0f;
      const float product = products[half].total();
      const float gradient = exists ? weight * (product - states[half].dot) : 0.0f;
      totals_[half] += gradient;
#pragma unroll
      for (int chunk = 0; chunk < Row::chunks; ++chunk) {
        add_masked(score_sums_[half] + 8 * chunk, gradient, met[half].of[chunk],
                   scores_.minus_own(half).of[chunk]);
        if constexpr (!by_rows) {
          add_weighted_unit<T>(value_sums_[half] + 8 * chunk, weight, values[half].of[chunk]);
        }
      }
    }
  }
  __device__ static void add_masked(float* sums, float gradient, const uint4& met,
                                    const uint4& minus_own) {
    add_where_greater<T>(sums[0], sums[1], gradient, met.x, minus_own.x);
    add_where_greater<T>(sums[2], sums[3], gradient, met.y, minus_own.y);
    add_where_greater<T>(sums[4], sums[5], gradient, met.z, minus_own.z);
    add_where_greater<T>(sums[6], sums[7], gradient, met.w, minus_own.w);
  }

  __device__ void finish(const PairResult& result) {
    add_over_edges(totals_, result.one_row);
    // By rows it is 0 but for rounding; what is not finite makes the row so.
    const float sloped =
        (by_rows ? 0.0f : launch_.slope) * (Share::half() == 0 ? totals_[0] : totals_[1]);
    Share of_scores(score_sums_, result.one_row);
    const T* const vector = static_cast<const T*>(launch_.vector) + Share::begin();
#pragma unroll
    for (int i = 0; i < Share::size; ++i) {
      const float sum = fmaf(1 - launch_.slope, of_scores.of[i], sloped);
      if (result.row >= 0) add_to_vector(result.row, i, sum);
      of_scores.of[i] = result.has_edges ? sum * cuda::widen(vector[i]) : 0.0f;
    }
    if constexpr (by_rows) {
      store(result, of_scores, of_scores);
    } else {
      store(result, of_scores, Share(value_sums_, result.one_row));
    }
  }
  /// A row without edges adds nothing, whatever it is.
  __device__ void add_to_vector(VertexId row, int i, float sum) {
    if (launch_.vector_sums == nullptr || sum == 0) return;
    const FeatureRows own(launch_.own_scores.data, launch_.own_scores.row_bytes / 2, width,
                          Share::first_feature() + i);
    const T feature = __ldg(reinterpret_cast<const T*>(own.at(row)));
    vector_sums_[i] = fmaf(cuda::widen(feature), sum, vector_sums_[i]);
  }

  /// A slot holds the gradients of scores of all heads, then those of values.
  __device__ float* slot_at(int slot, int matrix) const {
    return launch_.slots + slot * launch_.slot_size + matrix * launch_.heads * width +
           Share::begin();
  }
  __device__ void store(const PairResult& result, Share of_scores, Share of_values) const {
    if (result.is_cut()) {
      if (result.row >= 0) {
#pragma unroll
        for (int i = 0; i < Share::size; ++i) {
          slot_at(result.piece.slot, 0)[i] = of_scores.of[i];
          if constexpr (!by_rows) slot_at(result.piece.slot, 1)[i] = of_values.of[i];
        }
      }
      if (!is_last_piece(launch_, result.piece)) return;
      join(result.piece, 0, of_scores);
      if constexpr (!by_rows) join(result.piece, 1, of_values);
    }
    if (result.row < 0) return;
    put(launch_.score_gradient, result.row, of_scores);
    if constexpr (!by_rows) put(launch_.value_gradient, result.row, of_values);
  }
  __device__ void put(const AttentionSums& to, VertexId row, const Share& share) const {
    if (to.data == nullptr) return;
    share.store(static_cast<T*>(to.data) + row * to.stride + Share::begin());
  }
  __device__ void join(const RowPiece& piece, int matrix, Share& share) const {
#pragma unroll
    for (float& sum : share.of) sum = 0;
    for (int k = 0; k < piece.num_slots; ++k) {
      const float* const slot = slot_at(piece.first_slot + k, matrix);
#pragma unroll
      for (int i = 0; i < Share::size; ++i) share.of[i] += __ldcg(slot + i);
    }
  }

  const RowsAttentionLaunch& launch_;
  EdgeScores<T, width> scores_;
  FeatureRows met_score_rows_, met_value_rows_;
  MetFeatures own_values_[2][Row::chunks];
  State states_[2];  ///< by rows
  // Of this lane's edges: dS, and dS where z > 0; by columns P dO.
  float totals_[2];
  float score_sums_[2][held];
  float value_sums_[by_rows ? 1 : 2][held];
  float vector_sums_[Share::size] = {};
};

template <class T, int width>
inline constexpr RowsAttentionFunction pair_by_rows =
    launch_pairs<PairGradient<T, width, true, true>, PairGradient<T, width, true, false>>;
template <class T, int width>
inline constexpr RowsAttentionFunction pair_by_columns =
    launch_pairs<PairGradient<T, width, false, false>>;

}  // namespace tessera::ops
