// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/last_arrival.cuh"
#include "cuda/precision.cuh"
#include "ops/attention/cuda/lane_shape.hpp"
#include "ops/attention/cuda/row_walk.cuh"
#include "ops/attention/cuda/rows/cosine.hpp"
#include "ops/attention/cuda/rows/scores.cuh"
#include "ops/cuda/exponentials.cuh"

/// Where every edge (i, j) has a twin (j, i), one sweep is the whole backward pass of attention by
/// cosines: both edges have the same score, and what they need of j are the same two rows, V and
/// dO. With u the rows of V at length 1:
///
///     dS[i][j] = P[i][j] (dO[i] . V[j] - D[i]),   dS[j][i] = P[j][i] (dO[j] . V[i] - D[j])
///     du[i] = factor * sum over j of (dS[i][j] + dS[j][i]) u[j]
///     dV[i] = sum over j of P[j][i] dO[j] + what of du[i] stands at right angles to u[i], over the
///             length of V[i]
namespace tessera::ops {

/// Sums over the lanes of a head, of four edges at once, where a head has four lanes at least: each
/// exchange halves the edges that a lane has numbers of, so that it ends up with one edge, and does
/// for this edge alone what follows from the sums.
///
///     lanes of a head    0 1 2 3 4 5 6 7
///     edge               0 0 1 1 2 2 3 3
class FourEdges {
 public:
  __device__ explicit FourEdges(const LaneShape& shape) : head_lanes_(shape.head_lanes) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int place = lane & (head_lanes_ - 1);
    first_lane_ = lane - place;
    edge_ = place >> (shape.log_head_lanes - 2);
    speaks_ = (place & (head_lanes_ / 4 - 1)) == 0;
  }

  /// This lane's.
  __device__ int edge() const { return edge_; }
  /// One lane of each edge.
  __device__ bool speaks_for_edge() const { return speaks_; }

  template <class T>
  __device__ T own(const T (&of_edges)[4]) const {
    const T of_first = edge_ % 2 == 0 ? of_edges[0] : of_edges[1];
    const T of_second = edge_ % 2 == 0 ? of_edges[2] : of_edges[3];
    return edge_ < 2 ? of_first : of_second;
  }

  /// Of each kind, the sum over the head's lanes for this lane's edge. All lanes of a warp must
  /// call together, as they must for `of`.
  template <int kinds>
  __device__ void add_over_head(const float (&numbers)[kinds][4], float (&sums)[kinds]) const {
#pragma unroll
    for (int k = 0; k < kinds; ++k) {
      float pair[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        pair[i] = exchanged(numbers[k][i], numbers[k][2 + i], edge_ < 2, head_lanes_ / 2);
      }
      sums[k] = exchanged(pair[0], pair[1], edge_ % 2 == 0, head_lanes_ / 4);
    }
    for (int distance = head_lanes_ / 8; distance >= 1; distance /= 2) {
#pragma unroll
      for (float& sum : sums) sum += __shfl_xor_sync(~0u, sum, distance);
    }
  }

  /// What the lanes of another edge have.
  __device__ float of(int edge, float number) const {
    const int place = edge / 2 * (head_lanes_ / 2) + edge % 2 * (head_lanes_ / 4);
    return __shfl_sync(~0u, number, first_lane_ + place);
  }

 private:
  /// One of two numbers, with what another lane has of it; that lane gets the other one.
  __device__ static float exchanged(float first, float second, bool keeps_first, int distance) {
    const float given = __shfl_xor_sync(~0u, keeps_first ? second : first, distance);
    return (keeps_first ? first : second) + given;
  }

  int head_lanes_;
  int first_lane_;  ///< of the head
  int edge_;
  bool speaks_;
};

constexpr int mutual_batch(int vectors) { return vectors > 2 ? 1 : 4; }

/// Narrow loads and padded rows are rare, and lanes that hold more have a single edge.
constexpr bool mutual_folds(const LaneVectors& held) {
  return held.loads == LaneLoads::whole && held.count >= 4 && mutual_batch(held.vectors) == 4;
}

/// `folds`: a head has a lane for each edge of a batch, or more.
template <class Lanes, bool folds>
class MutualRow {
 public:
  static constexpr int batch = mutual_batch(Lanes::vectors);

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

  __device__ static void draw(EdgeOffset, int) {}

  template <bool whole>
  __device__ void step(int num_edges, const BatchVertices<batch>& vertices) {
    constexpr int size = batch;
    typename Lanes::Loaded values[size], gradients[size];
    float products[3][size];
#pragma unroll
    for (int u = 0; u < size; ++u) {
      const bool exists = whole || u < num_edges;
      values[u] = lanes_.load(values_, vertices.ids[u], exists);
      gradients[u] = lanes_.load(gradients_, vertices.ids[u], exists);
    }
    EdgeFactors factors[size];
    if constexpr (folds) {
      const FourEdges edges(launch_.shape);
      const bool exists = whole || edges.edge() < num_edges;
      const MutualState other = state_at(edges.own(vertices.ids), exists);
      multiply(values, gradients, products);
      float sums[3];
      edges.add_over_head(products, sums);
      EdgeFactors own;
      if (exists) own = factors_of(sums[0], sums[1], sums[2], other, edges.speaks_for_edge());
#pragma unroll
      for (int u = 0; u < size; ++u) {
        factors[u] = {edges.of(u, own.of_value), edges.of(u, own.of_gradient)};
      }
    } else {
      MutualState others[size];
#pragma unroll
      for (int u = 0; u < size; ++u) others[u] = state_at(vertices.ids[u], whole || u < num_edges);
      multiply(values, gradients, products);
#pragma unroll
      for (auto& of_kind : products) lanes_.add_over_head(of_kind);
#pragma unroll
      for (int u = 0; u < size; ++u) {
        if (!whole && u >= num_edges) continue;
        factors[u] = factors_of(products[0][u], products[1][u], products[2][u], others[u],
                                lanes_.speaks_for_head());
      }
    }
#pragma unroll
    for (int u = 0; u < size; ++u) {
      if (!whole && u >= num_edges) continue;
      Lanes::add(factors[u].of_value, values[u], unit_sums_);
      Lanes::add(factors[u].of_gradient, gradients[u], sums_);
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

  __device__ void join_groups() { add_over_groups(launch_.shape, sums_); }

  __device__ void store(const GroupEdges& edges) const {
    lanes_.store(launch_.value_gradient, edges.row, sums_);
  }

  __device__ void store_piece(const RowPiece& piece) const {
    lanes_.store_wide(slot_at(piece.slot), sums_);
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
  /// What the gathered rows of an edge are multiplied by.
  struct EdgeFactors {
    float of_value = 0;
    float of_gradient = 0;
  };
  /// From u[i] . V[j], dO[i] . V[j] and u[i] . dO[j].
  __device__ EdgeFactors factors_of(float along, float product, float twin_product,
                                    const MutualState& other, bool speaks) {
    const float cosine = along * other.inverse_length;
    const float score = factor_ * log2_of_e * cosine;
    const float weight = power_of_2(score - state_.log_sum);
    const float twin_weight = power_of_2(score - other.log_sum);
    const float gradient = weight * (product - state_.dot);
    const float twin_gradient = twin_weight * fmaf(twin_product, state_.length, -other.dot);
    if (launch_.factor_gradient != nullptr && speaks) {
      scale_sum_ += static_cast<double>(gradient) * static_cast<double>(cosine);
    }
    return {(gradient + twin_gradient) * factor_ * other.inverse_length, twin_weight};
  }

  __device__ MutualState state_at(VertexId vertex, bool exists) const {
    const auto found = cuda::Vector<float, 16>::load_if(exists, launch_.states + vertex).raw;
    return {__uint_as_float(found.x), __uint_as_float(found.y), __uint_as_float(found.z),
            __uint_as_float(found.w)};
  }
  /// This lane's share of the three products of each edge.
  __device__ void multiply(const typename Lanes::Loaded (&values)[batch],
                           const typename Lanes::Loaded (&gradients)[batch],
                           float (&products)[3][batch]) const {
#pragma unroll
    for (int u = 0; u < batch; ++u) {
      products[0][u] = Lanes::product(unit_, values[u]);
      products[1][u] = Lanes::product(own_gradient_, values[u]);
      products[2][u] = Lanes::product(unit_, gradients[u]);
    }
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

template <class T, int count, int vectors, LaneLoads loads, bool folds>
__global__ __launch_bounds__(
    rows_attention_threads,
    (mutual_blocks(count * vectors))) void differentiate_mutual_rows(const MutualLaunch launch) {
  using Lanes = VertexLanes<T, count, vectors, loads>;
  using Row = MutualRow<Lanes, folds>;
  cuda::begin_overlapped();
  const Lanes lanes(launch);
  Row row(launch, lanes);
  RowWalk<Row>(launch).go(row);
  if (launch.factor_gradient == nullptr) return;
  store_factor_gradient<T>(launch, row.scale_sum());
}

template <class T, int count, int vectors, LaneLoads loads>
void launch_mutual_rows(const MutualLaunch& launch, Stream stream) {
  constexpr bool may_fold = mutual_folds({count, vectors, loads});
  const auto kernel = may_fold && launch.shape.head_lanes >= 4
                          ? differentiate_mutual_rows<T, count, vectors, loads, may_fold>
                          : differentiate_mutual_rows<T, count, vectors, loads, false>;
  cuda::launch_overlapped(kernel, dim3(launch.num_blocks), rows_attention_threads, stream, launch);
}

template <Precision precision>
const ByLanes<MutualFunction>* MutualKernels<precision>::get() {
  using T = cuda::Stored<precision>;
  static constexpr auto functions = for_lane_vectors([](auto i) -> MutualFunction {
    constexpr LaneVectors held = lane_vectors(sizeof(T))[i];
    return launch_mutual_rows<T, held.count, held.vectors, held.loads>;
  });
  return &functions;
}

}  // namespace tessera::ops
