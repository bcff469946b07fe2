// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/softmax.cuh"
#include "ops/attention/cuda/rows/tables.cuh"
#include "ops/attention/cuda/rows/walk.cuh"

/// The forward pass: one sweep over the edges of a row.
namespace tessera::ops {

/// The softmax of some edges and their weighted features. Weights are powers of two relative to
/// `base`, which is near the largest score so far: it is moved only where a score lies far above
/// it, so that most steps rescale nothing.
template <class Lanes>
struct WeightedFeatures {
  static constexpr float slack = 8;  ///< weights may grow to 2^8 before the base follows

  float base = -cuda::infinity;  ///< in powers of two, as scores are compared
  float sum = 0;                 ///< of weights
  float features[Lanes::held] = {};

  __device__ float weight_of(float score) const { 
    return power_of_2(fmaf(score, log2_of_e, -finite_base()));
  }
  /// Where all scores are -inf nothing is subtracted: their weights are 0, and a row of nothing
  /// else divides 0 by 0, as the reference does.
  __device__ float finite_base() const { return base > -cuda::infinity ? base : 0.0f; }

  __device__ void scale(float factor) {
    sum *= factor;
#pragma unroll
    for (float& feature : features) feature *= factor;
  }

  /// Makes room for a score of `top`.
  __device__ void raise(float top) {
    const float wanted = top * log2_of_e;
    if (!(wanted > base + slack) && !(base == -cuda::infinity && wanted > base)) return;
    scale(power_of_2(base - wanted));
    base = wanted;
  }

  /// With those of other edges of the row.
  __device__ void join(float other_base, float other_sum, const float (&others)[Lanes::held]) {
    const float joint = fmaxf(base, other_base);
    const bool none = joint == -cuda::infinity;
    const float mine = none ? 1.0f : power_of_2(base - joint);
    const float theirs = none ? 1.0f : power_of_2(other_base - joint);
    sum = sum * mine + other_sum * theirs;
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) features[i] = features[i] * mine + others[i] * theirs;
    base = joint;
  }

  /// Over the groups of a warp: the first one ends up with the result.
  __device__ void join_groups(int lanes) {
    for (int distance = lanes; distance < 32; distance *= 2) {
      float others[Lanes::held];
#pragma unroll
      for (int i = 0; i < Lanes::held; ++i) {
        others[i] = __shfl_xor_sync(~0u, features[i], distance);
      }
      const float other_base = __shfl_xor_sync(~0u, base, distance);
      const float other_sum = __shfl_xor_sync(~0u, sum, distance);
      join(other_base, other_sum, others);
    }
  }

  /// The log of the sum of exponentials. The base was rounded to powers of two: what that lost is
  /// in the weights, too.
  __device__ float log_sum() const { return (finite_base() + log2f(sum)) * ln_of_2; }
};

template <class Lanes, class Form>
class ForwardRow {
 public:
  static constexpr int unroll = Lanes::vectors > 1 ? 1 : 4;

  __device__ ForwardRow(const RowsAttentionLaunch& launch, const Lanes& lanes, const Form& form)
      : launch_(launch), lanes_(lanes), form_(form) {}

  __device__ void run(const GroupEdges& edges) {
    const auto own = form_.own(edges.row, edges.count > 0);
    const int steps = steps_of<unroll>(edges);
    auto next = EdgeBatch<unroll>::at(launch_, edges, 0);
    for (int step = 0; step < steps; ++step) {
      const auto batch = next;
      typename Form::Gathered scores[unroll];
      typename Lanes::Loaded values[unroll];
#pragma unroll
      for (int u = 0; u < unroll; ++u) {
        scores[u] = form_.gathered(batch.vertex[u], batch.exists[u]);
        values[u] = values_of(scores[u], batch.vertex[u], batch.exists[u]);
      }
      next = EdgeBatch<unroll>::at(launch_, edges, step + 1);
      float raw[unroll];
#pragma unroll
      for (int u = 0; u < unroll; ++u) raw[u] = form_.partial(own, scores[u]);
      if constexpr (Form::over_features) lanes_.add_over_head(raw);
      float factors[unroll];
      load_dropout(launch_, lanes_, edges, step, factors);
      add(batch, raw, factors, values);
    }
    if (edges.stride > 1) sums_.join_groups(launch_.shape.lanes);
  }

  __device__ void store(const GroupEdges& edges) {
    const float reciprocal = edges.count == 0 ? 0.0f : 1 / sums_.sum;
    float features[Lanes::held];
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) features[i] = sums_.features[i] * reciprocal;
    lanes_.store(launch_.output, edges.row, features);
    if (launch_.log_sum == nullptr || !lanes_.speaks_for_head()) return;
    launch_.log_sum[edges.row * launch_.log_sum_stride + lanes_.head()] =
        edges.count == 0 ? -cuda::infinity : sums_.log_sum();
  }

  /// A slot holds the features of all heads, then their bases, then their sums.
  __device__ void store_piece(const RowPiece& piece) const {
    float* const slot = slot_at(piece.slot);
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) {
      if (lanes_.exists(i)) slot[lanes_.feature(i)] = sums_.features[i];
    }
    if (!lanes_.speaks_for_head()) return;
    slot[features() + lanes_.head()] = sums_.base;
    slot[features() + launch_.heads + lanes_.head()] = sums_.sum;
  }

  /// Every group takes some pieces of the row, then the groups put theirs together.
  __device__ void join_pieces(const GroupEdges& edges) {
    sums_ = {};
    for (int i = edges.first; i < edges.piece.num_slots; i += edges.stride) {
      const float* const slot = slot_at(edges.piece.first_slot + i);
      float others[Lanes::held];
#pragma unroll
      for (int k = 0; k < Lanes::held; ++k) {
        others[k] = lanes_.exists(k) ? __ldcg(slot + lanes_.feature(k)) : 0.0f;
      }
      sums_.join(__ldcg(slot + features() + lanes_.head()),
                 __ldcg(slot + features() + launch_.heads + lanes_.head()), others);
    }
    sums_.join_groups(launch_.shape.lanes);
  }

 private:
  __device__ typename Lanes::Loaded values_of(const typename Form::Gathered& scores,
                                              VertexId vertex, bool exists) const {
    if constexpr (Form::over_features) {
      if (launch_.same_gathered) return scores;
    }
    return lanes_.load(launch_.gathered_values, vertex, exists);
  }

  __device__ void add(const EdgeBatch<unroll>& batch, const float (&raw)[unroll],
                      const float (&factors)[unroll],
                      const typename Lanes::Loaded (&values)[unroll]) {
    float scores[unroll];
    float top = -cuda::infinity;
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      scores[u] = batch.exists[u] ? form_.value(raw[u]) : -cuda::infinity;
      top = fmaxf(top, scores[u]);
    }
    sums_.raise(top);
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const float weight = sums_.weight_of(scores[u]);
      sums_.sum += weight;
      const float kept = weight * factors[u];
      float features[Lanes::held];
      Lanes::widen(values[u], features);
#pragma unroll
      for (int i = 0; i < Lanes::held; ++i) {
        sums_.features[i] = fmaf(kept, features[i], sums_.features[i]);
      }
    }
  }

  __device__ std::int64_t features() const { return launch_.heads * launch_.width; }
  __device__ float* slot_at(int slot) const { return launch_.slots + slot * launch_.slot_size; }

  const RowsAttentionLaunch& launch_;
  const Lanes& lanes_;
  const Form& form_;
  WeightedFeatures<Lanes> sums_;
};

template <class T, int count, int vectors, bool whole, AttentionForm form_name>
__global__ __launch_bounds__(rows_attention_threads) void attend_rows(
    const RowsAttentionLaunch launch) {
  using Lanes = VertexLanes<T, count, vectors, whole>;
  using Form = typename FormOf<form_name, Lanes>::Type;
  cuda::let_next_begin();
  const unsigned item = warp_of_grid();
  if (item >= num_items(launch)) return;
  const Lanes lanes(launch);
  const GroupEdges edges = edges_of(launch, item);
  cuda::wait_for_previous();
  const Form form(launch, lanes);
  ForwardRow<Lanes, Form> row(launch, lanes, form);
  row.run(edges);
  if (edges.is_piece()) {
    if (edges.first == 0) row.store_piece(edges.piece);
    if (!is_last_piece(launch, edges.piece)) return;
    row.join_pieces(edges);
  }
  if (edges.stores()) row.store(edges);
}

template <class T, int count, int vectors, bool whole, AttentionForm form>
void launch_attend_rows(const RowsAttentionLaunch& launch, Stream stream) {
  cuda::launch_overlapped(attend_rows<T, count, vectors, whole, form>,
                          dim3(launch.num_blocks, launch.shape.num_slices), rows_attention_threads,
                          stream, launch);
}

template <class T, AttentionForm form>
constexpr RowsAttentionForward make_rows_forward() {
  return for_lane_vectors<T>([](auto i) -> RowsAttentionFunction {
    constexpr LaneVectors held = lane_vectors_of<T>()[i];
    return launch_attend_rows<T, held.count, held.vectors, held.whole, form>;
  });
}

}  // namespace tessera::ops
