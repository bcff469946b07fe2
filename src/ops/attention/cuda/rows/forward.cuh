// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/precision.cuh"
#include "cuda/softmax.cuh"
#include "ops/attention/cuda/row_walk.cuh"
#include "ops/attention/cuda/rows/dropped.cuh"
#include "ops/attention/cuda/rows/functions.hpp"
#include "ops/attention/cuda/rows/scores.cuh"
#include "ops/cuda/exponentials.cuh"

/// The forward pass: one sweep over the edges of a row.
namespace tessera::ops {

/// The softmax of some edges and their weighted features. Weights are exponentials relative to
/// `base`, which is near the largest score so far: it moves only where a score lies far above it,
/// so that most steps rescale nothing. There are sums over all edges and, where these are `kinds`,
/// over those whose score lies above 0.
template <class Lanes, int kinds>
struct WeightedFeatures {
  static constexpr float slack = 5;  ///< weights may grow to e^5 before the base follows

  /// Of weights, and of features times weights.
  struct Sums {
    float weights = 0;
    float features[Lanes::held] = {};

    __device__ void scale(float factor) {
      weights *= factor;
#pragma unroll
      for (float& feature : features) feature *= factor;
    }
    __device__ void add(float weight, const float (&values)[Lanes::held]) {
#pragma unroll
      for (int i = 0; i < Lanes::held; ++i) features[i] = fmaf(weight, values[i], features[i]);
    }
    __device__ Sums of_other_group(int distance) const {
      Sums others;
      others.weights = __shfl_xor_sync(~0u, weights, distance);
#pragma unroll
      for (int i = 0; i < Lanes::held; ++i) {
        others.features[i] = __shfl_xor_sync(~0u, features[i], distance);
      }
      return others;
    }
  };

  /// Lower than any score but -inf, whose weight is 0 whatever the base is: a row of nothing else
  /// divides 0 by 0, as the reference does.
  float base = lowest_base;
  Sums sums[kinds];

  /// The difference first: a score near the largest number times log2(e) would be infinite.
  __device__ float weight_of(float score) const { return exponential(score - base); }

  /// Makes room for a score of `top`.
  __device__ void raise(float top) {
    if (!(top > base + slack)) return;
    const float factor = exponential(base - top);
    base = top;
#pragma unroll
    for (Sums& of_kind : sums) of_kind.scale(factor);
  }

  /// With those of other edges of the row.
  __device__ void join(float other_base, Sums (&others)[kinds]) {
    const float joint = fmaxf(base, other_base);
    const float mine = exponential(base - joint);
    const float theirs = exponential(other_base - joint);
#pragma unroll
    for (int k = 0; k < kinds; ++k) {
      sums[k].scale(mine);
      sums[k].weights = fmaf(others[k].weights, theirs, sums[k].weights);
      sums[k].add(theirs, others[k].features);
    }
    base = joint;
  }

  /// Over the groups of a warp: the first one ends up with the result.
  __device__ void join_groups(int lanes) {
    for (int distance = lanes; distance < 32; distance *= 2) {
      Sums others[kinds];
#pragma unroll
      for (int k = 0; k < kinds; ++k) others[k] = sums[k].of_other_group(distance);
      join(__shfl_xor_sync(~0u, base, distance), others);
    }
  }

  /// The log of the sum of exponentials. Weights of 16 bits have errors of their own.
  __device__ float log_sum() const {
    const float sum = sums[0].weights;
    return base + (sizeof(typename Lanes::Type) == 2 ? __logf(sum) : logf(sum));
  }
};

/// `may_drop`: weights are dropped where the launch says so. `keeps`: sums over edges whose score
/// lies above 0 are kept for the backward pass (backward.cuh).
template <class Lanes, class Form, bool may_drop, bool keeps>
class ForwardRow {
 public:
  /// As many as registers allow: edges in flight are what a sweep over a large graph waits for.
  static constexpr int batch = Lanes::vectors > 2 ? (Form::gathers_once&& Lanes::held <= 16 ? 2 : 1)
                               : Form::over_features && !Form::of_values && Lanes::vectors == 2 ? 2
                                                                                                : 4;

  __device__ ForwardRow(const RowsAttentionLaunch& launch, const Lanes& lanes, const Form& form)
      : launch_(launch),
        lanes_(lanes),
        form_(form),
        values_(lanes.features_of(launch.gathered_values)),
        dropout_(launch) {}

  __device__ static constexpr bool wants_edges() { return true; }

  __device__ void begin(const GroupEdges& edges) {
    sums_ = {};
    own_ = form_.own(edges.row, edges.has_edges());
  }

  __device__ void draw(EdgeOffset position, int num_edges) {
    if (may_drop && launch_.drops) drawn_ = dropout_.draw(position, num_edges);
  }

  template <bool whole>
  __device__ void step(int num_edges, const BatchVertices<batch>& vertices) {
    constexpr int size = batch;
    typename Form::Gathered gathered[size];
    typename Lanes::Loaded values[size];
#pragma unroll
    for (int u = 0; u < size; ++u) {
      values[u] = lanes_.load(values_, vertices.ids[u], whole || u < num_edges);
    }
#pragma unroll
    for (int u = 0; u < size; ++u) {
      gathered[u] = form_.gathered_with(values[u], vertices.ids[u], whole || u < num_edges);
    }
    float weights[size];
#pragma unroll
    for (int u = 0; u < size; ++u) weights[u] = form_.partial(own_, gathered[u]);
    if constexpr (Form::over_features) lanes_.add_over_head(weights);
    bool above[size];
    float top = -cuda::infinity;
#pragma unroll
    for (int u = 0; u < size; ++u) {
      above[u] = weights[u] > 0;
      weights[u] = whole || u < num_edges ? form_.value(weights[u]) : -cuda::infinity;
      top = fmaxf(top, weights[u]);
    }
    sums_.raise(top);
#pragma unroll
    for (int u = 0; u < size; ++u) {
      weights[u] = sums_.weight_of(weights[u]);
      sums_.sums[0].weights += weights[u];
      if (keeps && above[u]) sums_.sums[kinds - 1].weights += weights[u];
    }
    if (may_drop && launch_.drops) dropout_.multiply(drawn_, weights);
#pragma unroll
    for (int u = 0; u < size; ++u) {
      if (!whole && u >= num_edges) continue;
      float features[Lanes::held];
      Lanes::widen(values[u], features);
      sums_.sums[0].add(weights[u], features);
      if (keeps) sums_.sums[kinds - 1].add(above[u] ? weights[u] : 0.0f, features);
    }
  }

  __device__ static void finish(const GroupEdges&) {}
  __device__ void join_groups() { sums_.join_groups(launch_.shape.lanes); }

  __device__ void store(const GroupEdges& edges) {
    const float reciprocal = edges.has_edges() ? __fdividef(1.0f, sums_.sums[0].weights) : 0.0f;
    if (launch_.log_sum != nullptr && lanes_.speaks_for_head()) {
      launch_.log_sum[edges.row * launch_.log_sum_stride + lanes_.head()] =
          edges.has_edges() ? sums_.log_sum() : -cuda::infinity;
    }
#pragma unroll
    for (auto& of_kind : sums_.sums) of_kind.scale(reciprocal);
    lanes_.store(launch_.output, edges.row, sums_.sums[0].features);
    if constexpr (keeps) {
      const auto& above = sums_.sums[kinds - 1];
      lanes_.store_wide(launch_.above.features + edges.row * features(), above.features);
      if (lanes_.speaks_for_head()) {
        launch_.above.weights[edges.row * launch_.heads + lanes_.head()] = above.weights;
      }
    }
  }

  /// A slot holds the features of all heads, then sums of their weights, of each kind; then bases.
  __device__ void store_piece(const RowPiece& piece) const {
    float* const slot = slot_at(piece.slot);
#pragma unroll
    for (int k = 0; k < kinds; ++k) {
      float* const of_kind = slot + k * kind_size();
      lanes_.store_wide(of_kind, sums_.sums[k].features);
      if (lanes_.speaks_for_head()) of_kind[features() + lanes_.head()] = sums_.sums[k].weights;
    }
    if (lanes_.speaks_for_head()) slot[kinds * kind_size() + lanes_.head()] = sums_.base;
  }

  /// Every group takes some pieces of the row, then the groups put theirs together.
  __device__ void join_pieces(const RowPiece& piece, int group) {
    sums_ = {};
    for (int i = group; i < piece.num_slots; i += launch_.shape.groups()) {
      const float* const slot = slot_at(piece.first_slot + i);
      typename WeightedFeatures<Lanes, kinds>::Sums others[kinds];
#pragma unroll
      for (int k = 0; k < kinds; ++k) {
        const float* const of_kind = slot + k * kind_size();
        lanes_.load_wide(of_kind, others[k].features);
        others[k].weights = __ldcg(of_kind + features() + lanes_.head());
      }
      sums_.join(__ldcg(slot + kinds * kind_size() + lanes_.head()), others);
    }
    join_groups();
  }

 private:
  static constexpr int kinds = keeps ? 2 : 1;

  __device__ std::int64_t features() const { return launch_.heads * launch_.width; }
  __device__ std::int64_t kind_size() const { return features() + launch_.heads; }
  __device__ float* slot_at(int slot) const { return launch_.slots + slot * launch_.slot_size; }

  const RowsAttentionLaunch& launch_;
  const Lanes& lanes_;
  const Form& form_;
  typename Lanes::Reader values_;
  BatchDropout<batch> dropout_;
  unsigned drawn_ = 0;
  typename Form::Own own_;
  WeightedFeatures<Lanes, kinds> sums_;
};

/// Blocks that an SM should hold, as registers allow.
constexpr int forward_blocks(const LaneVectors& held, AttentionForm form, bool shares,
                             bool may_drop, bool keeps) {
  if (held.vectors > 2) return shares && held.count * held.vectors <= 16 ? 4 : 2;
  const bool of_rows = form == AttentionForm::gatv2 || form == AttentionForm::cosine;
  if (held.vectors > 1 || (of_rows && held.count > 4)) return keeps ? 4 : 5;
  return (may_drop ? 5 : form == AttentionForm::gat ? 7 : 6) - (keeps ? 1 : 0);
}

/// `shares`: values are what scores are made of.
template <class T, int count, int vectors, LaneLoads loads, AttentionForm form_name, bool shares,
          bool may_drop, bool keeps>
__global__ __launch_bounds__(
    rows_attention_threads,
    (forward_blocks({count, vectors, loads}, form_name, shares, may_drop,
                    keeps))) void attend_rows(const RowsAttentionLaunch launch) {
  using Lanes = VertexLanes<T, count, vectors, loads>;
  using Form = ForwardFormOf<form_name, shares, Lanes>;
  using Row = ForwardRow<Lanes, Form, may_drop, keeps>;
  cuda::let_next_begin();
  // Read-only loads may move ahead of a wait that they follow straight away, as those of GATv2 did.
  constexpr bool waits_first = form_name == AttentionForm::gatv2;
  if constexpr (waits_first) cuda::wait_for_previous();
  RowWalk<Row> walk(launch);
  if (!walk.has_item()) return;
  const Lanes lanes(launch);
  if constexpr (!waits_first) cuda::wait_for_previous();
  const Form form(launch, lanes);
  Row row(launch, lanes, form);
  walk.go(row);
}

template <class T, int count, int vectors, LaneLoads loads, AttentionForm form, bool shares,
          bool keeps>
void launch_attend_rows(const RowsAttentionLaunch& launch, Stream stream) {
  constexpr LaneVectors held{count, vectors, loads};
  if constexpr (!shares && may_share(held, form)) {
    if (shares_rows(launch)) {
      launch_attend_rows<T, count, vectors, loads, form, true, keeps>(launch, stream);
      return;
    }
  }
  if constexpr (!keeps && form == AttentionForm::gat) {
    if (launch.above.features != nullptr) {
      launch_attend_rows<T, count, vectors, loads, form, shares, true>(launch, stream);
      return;
    }
  }
  constexpr bool always_may = !has_undropped(held) && !shares;
  const auto dropped = attend_rows<T, count, vectors, loads, form, shares, true, keeps>;
  const auto kernel = launch.drops
                          ? dropped
                          : attend_rows<T, count, vectors, loads, form, shares, always_may, keeps>;
  cuda::launch_overlapped(kernel, dim3(launch.num_blocks, launch.shape.num_slices),
                          rows_attention_threads, stream, launch);
}

template <RowsAttentionKey key>
const ByLanes<RowsAttentionFunction>* RowsForwardKernels<key>::get() {
  using T = cuda::Stored<key.precision>;
  static constexpr auto functions = for_lane_vectors([](auto i) -> RowsAttentionFunction {
    constexpr LaneVectors held = lane_vectors(sizeof(T))[i];
    return launch_attend_rows<T, held.count, held.vectors, held.loads, key.form, false, false>;
  });
  return &functions;
}

}  // namespace tessera::ops
