// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/precision.cuh"
#include "ops/attention/cuda/row_walk.cuh"
#include "ops/attention/cuda/rows/dropped.cuh"
#include "ops/attention/cuda/rows/functions.hpp"
#include "ops/attention/cuda/rows/scores.cuh"
#include "ops/cuda/exponentials.cuh"

/// The backward pass: one sweep over rows, one over columns. Scores and weights are computed again;
/// with weight P = exp(S - log_sum), f what dropout multiplied it by, and dP = dO[i] . V[j]:
///
///     dS = P (f dP - dO[i] . O[i])     sent on to what the score was made of
///     dV[j] = sum over i of f P dO[i]
namespace tessera::ops {

/// `may_drop`: weights were dropped where the launch says so.
template <class Lanes, class Form, bool by_rows, bool may_drop>
class BackwardRow {
 public:
  static constexpr int batch = Lanes::vectors > 2                       ? 1
                               : Lanes::held > 4 && Form::over_features ? 2
                                                                        : 4;

  __device__ BackwardRow(const RowsAttentionLaunch& launch, const Lanes& lanes, const Form& form)
      : launch_(launch),
        lanes_(lanes),
        form_(form),
        others_(lanes.features_of(launch.gathered_values)),
        dropout_(launch) {}

  __device__ bool wants_edges() const { return !by_rows || !launch_.state_only; }

  __device__ void begin(const GroupEdges& edges) {
    scores_ = {};
    clear(values_);
    own_ = form_.own(edges.row, edges.has_edges());
    lanes_.load_widened(launch_.own_values, edges.row, edges.row >= 0, own_values_);
    if constexpr (by_rows) state_ = make_state(edges);
    if constexpr (by_rows && !Form::over_features) {
      if (launch_.above.features != nullptr) scores_.sums[0] = gradient_from_above(edges);
    }
  }

  __device__ void draw(EdgeOffset position, int num_edges) {
    if (may_drop && launch_.drops) drawn_ = dropout_.draw(position, num_edges);
  }

  template <bool whole>
  __device__ void step(int num_edges, const BatchVertices<batch>& vertices) {
    constexpr int size = batch;
    typename Form::Gathered gathered[size];
    typename Lanes::Loaded values[size];
    AttentionRowState states[size];
#pragma unroll
    for (int u = 0; u < size; ++u) {
      const bool exists = whole || u < num_edges;
      values[u] = lanes_.load(others_, vertices.ids[u], exists);
      gathered[u] = by_rows ? form_.gathered_with(values[u], vertices.ids[u], exists)
                            : form_.gathered(vertices.ids[u], exists);
      states[u] = by_rows ? state_ : state_at(vertices.ids[u], exists);
    }
    // Scores and products dO . V: those that are sums over features are added up together.
    constexpr int summed = Form::over_features ? 2 * size : size;
    float sums[summed];
    float raw[size];
#pragma unroll
    for (int u = 0; u < size; ++u) {
      sums[u] = Lanes::product(own_values_, values[u]);
      raw[u] = form_.partial(own_, gathered[u]);
      if constexpr (Form::over_features) sums[size + u] = raw[u];
    }
    lanes_.add_over_head(sums);
    float kept[size];
    float weights[size];
#pragma unroll
    for (int u = 0; u < size; ++u) {
      if constexpr (Form::over_features) raw[u] = sums[size + u];
      weights[u] = exponential(form_.value(raw[u]) - states[u].log_sum);
      kept[u] = 1;
    }
    if (may_drop && launch_.drops) dropout_.multiply(drawn_, kept);
#pragma unroll
    for (int u = 0; u < size; ++u) {
      if (!whole && u >= num_edges) continue;
      const float gradient = weights[u] * (kept[u] * sums[u] - states[u].dot);
      form_.add(own_, gathered[u], raw[u], gradient, scores_);
      if constexpr (by_rows) {
        form_.add_shared(own_, gathered[u], raw[u], gradient, vector_sums_, scale_sum_);
      } else {
        Lanes::add(weights[u] * kept[u], values[u], values_);
      }
    }
  }

  __device__ void finish(const GroupEdges& edges) {
    form_.finish(own_, edges.has_edges() ? edges.row : -1, scores_);
  }
  __device__ void join_groups() {
    add_over_groups(launch_.shape, scores_.sums);
    if constexpr (!by_rows) add_over_groups(launch_.shape, values_);
  }

  __device__ void store(const GroupEdges& edges) {
    if (launch_.score_gradient.data != nullptr) form_.store(edges.row, scores_);
    if (by_rows || launch_.value_gradient.data == nullptr) return;
    if constexpr (Form::of_values) add_all_shares(edges.row);
    lanes_.store(launch_.value_gradient, edges.row, values_);
  }

  /// A slot holds the gradients of scores, then those of values.
  __device__ void store_piece(const RowPiece& piece) const {
    float* const slot = slot_at(piece.slot);
#pragma unroll
    for (int i = 0; i < Form::Gradient::size; ++i) {
      if (form_.has(i)) slot[form_.column(i)] = scores_.sums[i];
    }
    if constexpr (!by_rows) lanes_.store_wide(slot + score_cols(), values_);
  }

  /// Every group takes some pieces of the row, then the groups put theirs together.
  __device__ void join_pieces(const RowPiece& piece, int group) {
    scores_ = {};
    clear(values_);
    for (int i = group; i < piece.num_slots; i += launch_.shape.groups()) {
      const float* const slot = slot_at(piece.first_slot + i);
#pragma unroll
      for (int k = 0; k < Form::Gradient::size; ++k) {
        if (form_.has(k)) scores_.sums[k] += __ldcg(slot + form_.column(k));
      }
      if constexpr (!by_rows) {
#pragma unroll
        for (int k = 0; k < Lanes::held; ++k) {
          if (lanes_.exists(k)) values_[k] += __ldcg(slot + score_cols() + lanes_.feature(k));
        }
      }
    }
    join_groups();
  }

  /// What all edges of the graph share, after the last row of this warp.
  __device__ void store_shared() {
    const unsigned warp = warp_of_grid();
    if (launch_.vector_sums != nullptr) {
      add_over_groups(launch_.shape, vector_sums_);
      float* const to = launch_.vector_sums + std::int64_t{warp} * features();
      if (group() == 0) lanes_.store_wide(to, vector_sums_);
    }
    if (launch_.scale_sums == nullptr) return;
    for (int distance = 16; distance >= 1; distance /= 2) {
      scale_sum_ += __shfl_xor_sync(~0u, scale_sum_, distance);
    }
    const std::int64_t num_warps = std::int64_t{gridDim.x} * rows_attention_warps;
    if (threadIdx.x % 32 == 0) {
      launch_.scale_sums[std::int64_t{blockIdx.y} * num_warps + warp] = scale_sum_;
    }
  }

 private:
  __device__ static void clear(float (&sums)[Lanes::held]) {
#pragma unroll
    for (float& sum : sums) sum = 0;
  }
  __device__ int group() const {
    return static_cast<int>(threadIdx.x) % 32 >> launch_.shape.log_lanes;
  }

  /// By rows: dO is the own row. What the other sweep will need is kept for it.
  __device__ AttentionRowState make_state(const GroupEdges& edges) const {
    AttentionRowState state;
    const bool exists = edges.row >= 0;
    float outputs[Lanes::held];
    lanes_.load_widened(launch_.outputs, edges.row, exists, outputs);
    float dot[1] = {0};
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) dot[0] = fmaf(outputs[i], own_values_[i], dot[0]);
    lanes_.add_over_head(dot);
    state.dot = dot[0];
    if (!exists || !lanes_.has_head()) return state;
    state.log_sum = launch_.log_sum[edges.row * launch_.log_sum_stride + lanes_.head()];
    if (edges.leads && lanes_.speaks_for_head()) {
      launch_.row_state[edges.row * launch_.heads + lanes_.head()] = {state.log_sum, state.dot};
    }
    return state;
  }
  /// The weights of a row sum up to 1 whatever is added to all of its scores, so that their
  /// gradients dS sum up to 0. With slope s below 0, the gradient of the target's number is
  ///
  ///     (sum of dS of scores above 0) + s * (sum of dS of the others)
  ///         = (1 - s) * sum of dS of scores above 0
  ///         = (1 - s) * (dO . sum of f P V - dO . O * sum of P)     over scores above 0
  ///
  /// of which the forward pass has kept both sums. One group has it, the others nothing.
  __device__ float gradient_from_above(const GroupEdges& edges) const {
    const bool exists = edges.has_edges() && lanes_.has_head();
    float above[Lanes::held];
    clear(above);
    if (exists) lanes_.load_wide(launch_.above.features + edges.row * features(), above);
    float dot[1] = {0};
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) dot[0] = fmaf(above[i], own_values_[i], dot[0]);
    lanes_.add_over_head(dot);
    if (!exists || !edges.leads) return 0;
    const float weight = launch_.above.weights[edges.row * launch_.heads + lanes_.head()];
    return (1 - launch_.slope) * fmaf(-state_.dot, weight, dot[0]);
  }
  __device__ AttentionRowState state_at(VertexId row, bool exists) const {
    const auto* const from = launch_.row_state + row * launch_.heads + lanes_.head();
    const auto state = cuda::Vector<float, 8>::load_if(exists, from);
    return {__uint_as_float(state.raw.x), __uint_as_float(state.raw.y)};
  }

  /// Where scores are made of values: what these get as sources, and what the sweep over rows has
  /// left for them as targets.
  __device__ void add_all_shares(VertexId row) {
    const AttentionSums& to = launch_.value_gradient;
    const auto row_bytes = static_cast<std::uint32_t>(to.stride * sizeof(typename Lanes::Type));
    float as_target[Lanes::held];
    lanes_.load_widened({to.data, row_bytes}, row, launch_.adds_to_gradient, as_target);
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) values_[i] += scores_.sums[i] + as_target[i];
  }

  __device__ std::int64_t features() const { return launch_.heads * launch_.width; }
  __device__ std::int64_t score_cols() const {
    return Form::over_features ? features() : launch_.heads;
  }
  __device__ float* slot_at(int slot) const { return launch_.slots + slot * launch_.slot_size; }

  const RowsAttentionLaunch& launch_;
  const Lanes& lanes_;
  const Form& form_;
  typename Lanes::Reader others_;
  BatchDropout<batch> dropout_;
  unsigned drawn_ = 0;
  typename Form::Own own_;
  float own_values_[Lanes::held];
  AttentionRowState state_;  ///< by rows
  typename Form::Gradient scores_;
  float values_[Lanes::held];            ///< by columns
  float vector_sums_[Lanes::held] = {};  ///< by rows: of all rows of this warp
  double scale_sum_ = 0;
};

/// Blocks that an SM should hold, by what a lane holds of features and scores.
constexpr int backward_blocks(AttentionForm form, int count, int vectors, bool by_rows,
                              bool may_drop) {
  if (count * vectors > 8) return 1;
  // A fifth would leave GATv2 too few registers for what it holds of eight features.
  if (form == AttentionForm::gatv2 && count == 8) return 4;
  const int of_dropout = may_drop && (by_rows || form == AttentionForm::gat) ? 1 : 0;
  return (form == AttentionForm::gat ? 5 : 4) + (by_rows ? 1 : 0) - of_dropout;
}

template <class T, int count, int vectors, LaneLoads loads, AttentionForm form_name, bool by_rows,
          bool may_drop>
__global__ __launch_bounds__(
    rows_attention_threads,
    (backward_blocks(form_name, count, vectors, by_rows,
                     may_drop))) void differentiate_rows(const RowsAttentionLaunch launch) {
  using Lanes = VertexLanes<T, count, vectors, loads>;
  using Form = FormOf<form_name, Lanes>;
  cuda::begin_overlapped();
  const Lanes lanes(launch);
  const Form form(launch, lanes);
  using Row = BackwardRow<Lanes, Form, by_rows, may_drop>;
  Row row(launch, lanes, form);
  RowWalk<Row>(launch).go(row);
  if constexpr (by_rows) row.store_shared();
}

template <class T, int count, int vectors, LaneLoads loads, AttentionForm form, bool by_rows>
void launch_differentiate_rows(const RowsAttentionLaunch& launch, Stream stream) {
  constexpr bool always_may = !has_undropped({count, vectors, loads});
  const auto dropped = differentiate_rows<T, count, vectors, loads, form, by_rows, true>;
  const auto kernel = launch.drops
                          ? dropped
                          : differentiate_rows<T, count, vectors, loads, form, by_rows, always_may>;
  cuda::launch_overlapped(kernel, dim3(launch.num_blocks, launch.shape.num_slices),
                          rows_attention_threads, stream, launch);
}

template <class T, AttentionForm form, bool by_rows>
constexpr ByLanes<RowsAttentionFunction> make_rows_sweep() {
  return for_lane_vectors([](auto i) -> RowsAttentionFunction {
    constexpr LaneVectors held = lane_vectors(sizeof(T))[i];
    return launch_differentiate_rows<T, held.count, held.vectors, held.loads, form, by_rows>;
  });
}

template <RowsAttentionKey key>
const RowsAttentionBackward* RowsBackwardKernels<key>::get() {
  using T = cuda::Stored<key.precision>;
  static constexpr RowsAttentionBackward functions = {make_rows_sweep<T, key.form, true>(),
                                                      make_rows_sweep<T, key.form, false>()};
  return &functions;
}

}  // namespace tessera::ops
