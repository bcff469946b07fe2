// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/softmax.cuh"
#include "ops/attention/cuda/rows/tables.cuh"
#include "ops/attention/cuda/rows/walk.cuh"

/// The forward pass: one sweep over the edges of a row.
namespace tessera::ops {

/// The softmax of some edges and their weighted features. Weights are exponentials relative to
/// `base`, which is near the largest score so far: it moves only where a score lies far above it,
/// so that most steps rescale nothing.
template <class Lanes>
struct WeightedFeatures {
  static constexpr float slack = 5;  ///< weights may grow to e^5 before the base follows

  /// Lower than any score but -inf, whose weight is 0 whatever the base is: a row of nothing else
  /// divides 0 by 0, as the reference does.
  float base = lowest_base;
  float sum = 0;  ///< of weights
  float features[Lanes::held] = {};

  /// The difference first: a score near the largest number times log2(e) would be infinite.
  __device__ float weight_of(float score) const { return exponential(score - base); }

  /// Makes room for a score of `top`.
  __device__ void raise(float top) {
    if (!(top > base + slack)) return;
    const float factor = exponential(base - top);
    base = top;
    sum *= factor;
#pragma unroll
    for (float& feature : features) feature *= factor;
  }

  /// With those of other edges of the row.
  __device__ void join(float other_base, float other_sum, const float (&others)[Lanes::held]) {
    const float joint = fmaxf(base, other_base);
    const float mine = exponential(base - joint);
    const float theirs = exponential(other_base - joint);
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

  /// The log of the sum of exponentials. Weights of 16 bits have errors of their own.
  __device__ float log_sum() const {
    return base + (sizeof(typename Lanes::Type) == 2 ? __logf(sum) : logf(sum));
  }
};

/// `may_drop`: weights are dropped where the launch says so.
template <class Lanes, class Form, bool may_drop>
class ForwardRow {
 public:
  static constexpr int batch = Lanes::vectors > 2 ? (Form::gathers_once&& Lanes::held <= 16 ? 2 : 1)
                               : Form::over_features&& Lanes::vectors == 2 ? 2
                                                                           : 4;

  __device__ ForwardRow(const RowsAttentionLaunch& launch, const Lanes& lanes, const Form& form)
      : launch_(launch),
        lanes_(lanes),
        form_(form),
        values_(lanes.features_of(launch.gathered_values)) {}

  __device__ static constexpr bool wants_edges() { return true; }

  __device__ void begin(const GroupEdges& edges) {
    sums_ = {};
    own_ = form_.own(edges.row, edges.has_edges());
  }

  template <bool whole>
  __device__ void step(EdgeOffset position, int num_edges, const BatchVertices<batch>& vertices) {
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
    float top = -cuda::infinity;
#pragma unroll
    for (int u = 0; u < size; ++u) {
      weights[u] = whole || u < num_edges ? form_.value(weights[u]) : -cuda::infinity;
      top = fmaxf(top, weights[u]);
    }
    sums_.raise(top);
#pragma unroll
    for (int u = 0; u < size; ++u) {
      weights[u] = sums_.weight_of(weights[u]);
      sums_.sum += weights[u];
    }
    if (may_drop && launch_.drops) {
#pragma unroll
      for (int u = 0; u < size; ++u) {
        if (whole || u < num_edges) weights[u] *= dropped(launch_, position + u, lanes_.head());
      }
    }
#pragma unroll
    for (int u = 0; u < size; ++u) {
      if (whole || u < num_edges) add(weights[u], values[u]);
    }
  }

  __device__ static void finish(const GroupEdges&) {}
  __device__ void join_groups() { sums_.join_groups(launch_.shape.lanes); }

  __device__ void store(const GroupEdges& edges) {
    const float reciprocal = edges.has_edges() ? __fdividef(1.0f, sums_.sum) : 0.0f;
    float features[Lanes::held];
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) features[i] = sums_.features[i] * reciprocal;
    lanes_.store(launch_.output, edges.row, features);
    if (launch_.log_sum == nullptr || !lanes_.speaks_for_head()) return;
    launch_.log_sum[edges.row * launch_.log_sum_stride + lanes_.head()] =
        edges.has_edges() ? sums_.log_sum() : -cuda::infinity;
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
  __device__ void join_pieces(const RowPiece& piece, int group) {
    sums_ = {};
    for (int i = group; i < piece.num_slots; i += launch_.shape.groups()) {
      const float* const slot = slot_at(piece.first_slot + i);
      float others[Lanes::held];
#pragma unroll
      for (int k = 0; k < Lanes::held; ++k) {
        others[k] = lanes_.exists(k) ? __ldcg(slot + lanes_.feature(k)) : 0.0f;
      }
      sums_.join(__ldcg(slot + features() + lanes_.head()),
                 __ldcg(slot + features() + launch_.heads + lanes_.head()), others);
    }
    join_groups();
  }

 private:
  __device__ void add(float weight, const typename Lanes::Loaded& value) {
    float features[Lanes::held];
    Lanes::widen(value, features);
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) {
      sums_.features[i] = fmaf(weight, features[i], sums_.features[i]);
    }
  }

  __device__ std::int64_t features() const { return launch_.heads * launch_.width; }
  __device__ float* slot_at(int slot) const { return launch_.slots + slot * launch_.slot_size; }

  const RowsAttentionLaunch& launch_;
  const Lanes& lanes_;
  const Form& form_;
  typename Lanes::Reader values_;
  typename Form::Own own_;
  WeightedFeatures<Lanes> sums_;
};

/// Blocks that an SM should hold, as registers allow.
constexpr int forward_blocks(const LaneVectors& held, AttentionForm form, bool shares,
                             bool may_drop) {
  if (held.vectors > 2) return shares && held.count * held.vectors <= 16 ? 4 : 2;
  if (held.vectors > 1 || (form == AttentionForm::gatv2 && held.count > 4)) return 5;
  return may_drop ? 5 : form == AttentionForm::gat ? 7 : 6;
}

/// `shares`: values are what scores are made of.
template <class T, int count, int vectors, LaneLoads loads, AttentionForm form_name, bool shares,
          bool may_drop>
__global__ __launch_bounds__(
    rows_attention_threads,
    (forward_blocks({count, vectors, loads}, form_name, shares,
                    may_drop))) void attend_rows(const RowsAttentionLaunch launch) {
  using Lanes = VertexLanes<T, count, vectors, loads>;
  using Form = ForwardFormOf<form_name, shares, Lanes>;
  using Row = ForwardRow<Lanes, Form, may_drop>;
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

template <class T, int count, int vectors, LaneLoads loads, AttentionForm form, bool shares>
void launch_attend_rows(const RowsAttentionLaunch& launch, Stream stream) {
  constexpr LaneVectors held{count, vectors, loads};
  if constexpr (!shares && may_share(held, form)) {
    if (shares_rows(launch)) {
      launch_attend_rows<T, count, vectors, loads, form, true>(launch, stream);
      return;
    }
  }
  const auto dropped = attend_rows<T, count, vectors, loads, form, shares, true>;
  const auto kernel =
      launch.drops ? dropped
                   : attend_rows<T, count, vectors, loads, form, shares, !has_undropped(held)>;
  cuda::launch_overlapped(kernel, dim3(launch.num_blocks, launch.shape.num_slices),
                          rows_attention_threads, stream, launch);
}

template <class T, AttentionForm form>
constexpr RowsAttentionForward make_rows_forward() {
  return for_lane_vectors<T>([](auto i) -> RowsAttentionFunction {
    constexpr LaneVectors held = lane_vectors_of<T>()[i];
    return launch_attend_rows<T, held.count, held.vectors, held.loads, form, false>;
  });
}

}  // namespace tessera::ops
