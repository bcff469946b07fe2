// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/last_arrival.cuh"
#include "ops/attention/cuda/rows/mutual.hpp"
#include "ops/attention/cuda/rows/tables.cuh"
#include "ops/attention/cuda/rows/walk.cuh"

/// Where every edge (i, j) has a twin (j, i), one sweep is the whole backward pass of attention by
/// cosines: both edges have the same score, and what they need of j are the same two rows, V and
/// dO. With u the rows of V at length 1:
///
///     dS[i][j] = P[i][j] (dO[i] . V[j] - D[i]),   dS[j][i] = P[j][i] (dO[j] . V[i] - D[j])
///     du[i] = factor * sum over j of (dS[i][j] + dS[j][i]) u[j]
///     dV[i] = sum over j of P[j][i] dO[j] + what of du[i] stands at right angles to u[i], over the
///             length of V[i]
namespace tessera::ops {

template <class Lanes>
class MutualRow {
 public:
  static constexpr int batch = Lanes::vectors > 2 ? 1 : 4;

  __device__ MutualRow(const MutualLaunch& launch, const Lanes& lanes)
      : launch_(launch),
        lanes_(lanes),
        values_(lanes.features_of(launch.value)),
        gradients_(lanes.features_of(launch.grad_output)),
        factor_(cuda::widen(*static_cast<const typename Lanes::Type*>(launch.vector))) {}

  __device__ static constexpr bool wants_edges() { return true; }

  __device__ void begin(const GroupEdges& edges) {
    const bool has_edges = edges.has_edges();
    state_ = state_at(edges.row, has_edges);
    lanes_.load_widened(launch_.value, edges.row, has_edges, unit_);
    lanes_.load_widened(launch_.grad_output, edges.row, has_edges, own_gradient_);
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) {
      unit_[i] *= state_.inverse_length;
      unit_sums_[i] = 0;
      sums_[i] = 0;
    }
  }

  template <bool whole>
  __device__ void step(EdgeOffset, int num_edges, const BatchVertices<batch>& vertices) {
    constexpr int size = batch;
    typename Lanes::Loaded values[size], gradients[size];
    MutualState states[size];
#pragma unroll
    for (int u = 0; u < size; ++u) {
      const bool exists = whole || u < num_edges;
      values[u] = lanes_.load(values_, vertices.ids[u], exists);
      gradients[u] = lanes_.load(gradients_, vertices.ids[u], exists);
      states[u] = state_at(vertices.ids[u], exists);
    }
    float products[3 * size];
#pragma unroll
    for (int u = 0; u < size; ++u) {
      products[3 * u] = product(unit_, values[u]);
      products[3 * u + 1] = product(own_gradient_, values[u]);
      products[3 * u + 2] = product(unit_, gradients[u]);
    }
    lanes_.add_over_head(products);
#pragma unroll
    for (int u = 0; u < size; ++u) {
      if (!whole && u >= num_edges) continue;
      const MutualState& other = states[u];
      const float cosine = products[3 * u] * other.inverse_length;
      const float score = factor_ * log2_of_e * cosine;
      const float weight = power_of_2(score - state_.log_sum);
      const float twin_weight = power_of_2(score - other.log_sum);
      const float gradient = weight * (products[3 * u + 1] - state_.dot);
      const float twin_gradient =
          twin_weight * fmaf(products[3 * u + 2], state_.length, -other.dot);
      add((gradient + twin_gradient) * factor_ * other.inverse_length, values[u], unit_sums_);
      add(twin_weight, gradients[u], sums_);
      if (launch_.factor_gradient != nullptr && lanes_.speaks_for_head()) {
        scale_sum_ += static_cast<double>(gradient) * static_cast<double>(cosine);
      }
    }
  }

  /// A row of fixed length changes at right angles alone. Rows that are taken for longer than they
  /// are have their gradients whole.
  __device__ void finish(const GroupEdges&) {
    float along[1] = {0};
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) along[0] = fmaf(unit_[i], unit_sums_[i], along[0]);
    lanes_.add_over_head(along);
    if (state_.inverse_length >= longest_inverse) along[0] = 0;
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) {
      sums_[i] = fmaf(state_.inverse_length, fmaf(-along[0], unit_[i], unit_sums_[i]), sums_[i]);
    }
  }

  __device__ void join_groups() {
    for (int distance = launch_.shape.lanes; distance < 32; distance *= 2) {
#pragma unroll
      for (float& sum : sums_) sum += __shfl_xor_sync(~0u, sum, distance);
    }
  }

  __device__ void store(const GroupEdges& edges) const {
    lanes_.store(launch_.value_gradient, edges.row, sums_);
  }

  __device__ void store_piece(const RowPiece& piece) const {
    float* const slot = slot_at(piece.slot);
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) {
      if (lanes_.exists(i)) slot[lanes_.feature(i)] = sums_[i];
    }
  }

  /// Every group takes some pieces of the row, then the groups put theirs together.
  __device__ void join_pieces(const RowPiece& piece, int group) {
#pragma unroll
    for (float& sum : sums_) sum = 0;
    for (int i = group; i < piece.num_slots; i += launch_.shape.groups()) {
      const float* const slot = slot_at(piece.first_slot + i);
#pragma unroll
      for (int k = 0; k < Lanes::held; ++k) {
        if (lanes_.exists(k)) sums_[k] += __ldcg(slot + lanes_.feature(k));
      }
    }
    join_groups();
  }

  /// This warp's part of the gradient of the factor, after its last row.
  __device__ double scale_sum() {
    for (int distance = 16; distance >= 1; distance /= 2) {
      scale_sum_ += __shfl_xor_sync(~0u, scale_sum_, distance);
    }
    return scale_sum_;
  }

 private:
  __device__ MutualState state_at(VertexId vertex, bool exists) const {
    const auto found = cuda::Vector<float, 16>::load_if(exists, launch_.states + vertex).raw;
    return {__uint_as_float(found.x), __uint_as_float(found.y), __uint_as_float(found.z),
            __uint_as_float(found.w)};
  }
  __device__ static float product(const float (&own)[Lanes::held],
                                  const typename Lanes::Loaded& loaded) {
    float values[Lanes::held];
    Lanes::widen(loaded, values);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) sum = fmaf(own[i], values[i], sum);
    return sum;
  }
  __device__ static void add(float weight, const typename Lanes::Loaded& loaded,
                             float (&sums)[Lanes::held]) {
    float values[Lanes::held];
    Lanes::widen(loaded, values);
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) sums[i] = fmaf(weight, values[i], sums[i]);
  }

  __device__ float* slot_at(int slot) const { return launch_.slots + slot * launch_.slot_size; }

  const MutualLaunch& launch_;
  const Lanes& lanes_;
  typename Lanes::Reader values_, gradients_;
  float factor_;
  MutualState state_;
  float unit_[Lanes::held];
  float own_gradient_[Lanes::held];
  float unit_sums_[Lanes::held];
  float sums_[Lanes::held];
  double scale_sum_ = 0;
};

/// A block adds up what its warps have found of the factor's gradient, and the block that comes
/// last what all blocks have.
template <class T>
__device__ void store_factor_gradient(const MutualLaunch& launch, double of_warp) {
  __shared__ double partial[rows_attention_threads];
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = of_warp;
  __syncthreads();
  if (threadIdx.x == 0) {
    double total = 0;
    for (int warp = 0; warp < rows_attention_warps; ++warp) total += partial[warp];
    launch.scale_sums[blockIdx.x] = total;
  }
  if (!cuda::is_last_block(launch.num_blocks_done, gridDim.x)) return;
  double total = 0;
#pragma unroll 8
  for (unsigned i = threadIdx.x; i < gridDim.x; i += rows_attention_threads) {
    total += __ldcg(launch.scale_sums + i);
  }
  partial[threadIdx.x] = total;
  for (unsigned half = rows_attention_threads / 2; half >= 1; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  *static_cast<T*>(launch.factor_gradient) = cuda::narrow<T>(static_cast<float>(partial[0]));
}

/// Blocks that an SM should hold, by what a lane holds: edges in flight count for more than blocks.
constexpr int mutual_blocks(int held) { return held > 8 ? 2 : held > 4 ? 3 : 4; }

template <class T, int count, int vectors, LaneLoads loads>
__global__ __launch_bounds__(
    rows_attention_threads,
    (mutual_blocks(count * vectors))) void differentiate_mutual_rows(const MutualLaunch launch) {
  using Lanes = VertexLanes<T, count, vectors, loads>;
  using Row = MutualRow<Lanes>;
  cuda::begin_overlapped();
  const Lanes lanes(launch);
  Row row(launch, lanes);
  RowWalk<Row>(launch).go(row);
  if (launch.factor_gradient == nullptr) return;
  store_factor_gradient<T>(launch, row.scale_sum());
}

template <class T>
constexpr MutualFunctions make_mutual_functions() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return MutualFunctions{[](const MutualLaunch& launch, Stream stream) {
      constexpr LaneVectors held = lane_vectors_of<T>()[i];
      cuda::launch_overlapped(differentiate_mutual_rows<T, held.count, held.vectors, held.loads>,
                              dim3(launch.num_blocks), rows_attention_threads, stream, launch);
    }...};
  }
  (std::make_index_sequence<lane_vectors_of<T>().size()>{});
}

}  // namespace tessera::ops
