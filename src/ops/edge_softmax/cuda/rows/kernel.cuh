// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "cuda/precision.cuh"
#include "cuda/softmax.cuh"
#include "cuda/vectors.cuh"
#include "ops/edge_softmax/cuda/rows/launch.hpp"

/// Softmax over the edges of each row. A team of lanes measures a row (maximum and sum, or the sum
/// of P dP), then changes it; the first numbers of a lane stay in registers between the two. Rows
/// that are cut are measured piece by piece in one launch and changed in another.
namespace tessera::ops {

/// exp(S - max) / sum.
struct ForwardPass {
  using Value = float;
  using Total = cuda::RunningSum;
  static constexpr int slot_numbers = 2;

  /// Where there are no more numbers.
  __device__ static Value none() { return -cuda::infinity; }
  template <class Load>
  __device__ static Value load(const SoftmaxLaunch& launch, Load&& number) {
    return launch.scale * number(launch.first);
  }
  template <int count>
  __device__ static void add(const Value (&scores)[count], Total& total) {
    total.add(scores);
  }
  template <int team>
  __device__ static void join_lanes(const cuda::HeadLanes& lanes, Total& total) {
    cuda::over_edges<team>(lanes, [&](int distance) {
      Total other;
      other.max = __shfl_xor_sync(cuda::team_mask<team>(), total.max, distance);
      other.sum = __shfl_xor_sync(cuda::team_mask<team>(), total.sum, distance);
      total.join(other);
    });
  }
  __device__ static void save(const Total& total, float* slot) {
    slot[0] = total.max;
    slot[1] = total.sum;
  }
  __device__ static void join(const float* slot, Total& total) { total.join({slot[0], slot[1]}); }
  /// What makes a result of a value.
  __device__ static auto result(const Total& total) {
    return [max = total.max, reciprocal = 1 / total.sum](Value score) {
      return expf(score - max) * reciprocal;
    };
  }
};

struct WeightAndGradient {
  float weight;
  float grad;
};

/// P (dP - sum of P dP).
struct BackwardPass {
  using Value = WeightAndGradient;
  using Total = float;
  static constexpr int slot_numbers = 1;

  __device__ static Value none() { return {0, 0}; }
  template <class Load>
  __device__ static Value load(const SoftmaxLaunch& launch, Load&& number) {
    return {number(launch.first), number(launch.second)};
  }
  template <int count>
  __device__ static void add(const Value (&pairs)[count], Total& sum) {
#pragma unroll
    for (const Value& pair : pairs) sum = fmaf(pair.weight, pair.grad, sum);
  }
  template <int team>
  __device__ static void join_lanes(const cuda::HeadLanes& lanes, Total& sum) {
    sum = cuda::sum_over_edges<team>(lanes, sum);
  }
  __device__ static void save(Total sum, float* slot) { *slot = sum; }
  __device__ static void join(const float* slot, Total& sum) { sum += *slot; }
  __device__ static auto result(Total sum) {
    return [sum](const Value& pair) { return pair.weight * (pair.grad - sum); };
  }
};

/// How a team goes over the numbers of some edges.
template <class Pass, class T, int team>
class SoftmaxRow {
 public:
  __device__ SoftmaxRow(const SoftmaxLaunch& launch, EdgeOffset begin, EdgeOffset end)
      : launch_(launch),
        lanes_(team, padded_heads(launch)),
        head_(std::int64_t{blockIdx.y} * 32 + lanes_.head),
        begin_(begin + lanes_.edge),
        end_(head_ < launch.heads ? end : begin) {
    load_batch(begin_, first_);
  }

  __device__ void measure() {
    for_batches([&](EdgeOffset, const Batch& values) { Pass::add(values, total_); });
    Pass::template join_lanes<team>(lanes_, total_);
  }
  __device__ void apply() {
    const auto result = Pass::result(total_);
    for_batches([&](EdgeOffset edge, const Batch& values) {
#pragma unroll
      for (int i = 0; i < batch; ++i, edge += lanes_.batch_edges) {
        if (edge < end_) store(edge, result(values[i]));
      }
    });
  }
  /// Forward. It is -inf for a row without edges.
  __device__ void save_log_sum(VertexId row) const {
    if constexpr (std::is_same_v<Pass, ForwardPass>) {
      if (launch_.log_sum == nullptr || !is_first_of_head()) return;
      launch_.log_sum[row * launch_.log_sum_stride + head_] = total_.max + logf(total_.sum);
    }
  }
  __device__ void save(std::int64_t slot) const {
    if (is_first_of_head()) Pass::save(total_, slot_at(slot));
  }
  __device__ void join_slot(std::int64_t slot) {
    if (head_ < launch_.heads) Pass::join(slot_at(slot), total_);
  }

 private:
  /// Numbers of a lane whose loads are in flight together; its first ones stay in registers.
  static constexpr int batch = 4;
  using Batch = typename Pass::Value[batch];

  __device__ static int padded_heads(const SoftmaxLaunch& launch) {
    const auto heads = static_cast<int>(launch.heads < 32 ? launch.heads : 32);
    return 1 << (32 - __clz(heads - 1));
  }

  __device__ void load_batch(EdgeOffset edge, Batch& values) const {
#pragma unroll
    for (int i = 0; i < batch; ++i, edge += lanes_.batch_edges) {
      const auto number = [&](const EdgeNumbers& numbers) {
        return cuda::widen(static_cast<const T*>(numbers.data)[edge * numbers.stride + head_]);
      };
      values[i] = edge < end_ ? Pass::load(launch_, number) : Pass::none();
    }
  }

  /// Calls body(first edge, values) for all of this lane's numbers, batch by batch.
  template <class Body>
  __device__ void for_batches(Body&& body) const {
    body(begin_, first_);
    const EdgeOffset step = EdgeOffset{batch} * lanes_.batch_edges;
    for (EdgeOffset edge = begin_ + step; edge < end_; edge += step) {
      Batch values;
      load_batch(edge, values);
      body(edge, values);
    }
  }

  __device__ void store(EdgeOffset edge, float value) const {
    static_cast<T*>(launch_.result)[edge * launch_.result_stride + head_] = cuda::narrow<T>(value);
  }
  /// One lane for each head that exists.
  __device__ bool is_first_of_head() const { return lanes_.edge == 0 && head_ < launch_.heads; }
  __device__ float* slot_at(std::int64_t slot) const {
    return launch_.slots + (slot * launch_.heads + head_) * Pass::slot_numbers;
  }

  const SoftmaxLaunch& launch_;
  cuda::HeadLanes lanes_;
  std::int64_t head_;
  EdgeOffset begin_;
  EdgeOffset end_;
  typename Pass::Total total_ = {};
  Batch first_;
};

/// Rows that are not cut, a team each.
template <class Row, int team>
__global__ __launch_bounds__(softmax_block_threads) void softmax_short_rows(
    const SoftmaxLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t row = (std::int64_t{blockIdx.x} * softmax_block_threads + threadIdx.x) / team;
  if (row >= launch.rows.num_rows) return;
  const EdgeOffset begin = cuda::fixed_offset_at(launch.rows.offsets, row);
  const EdgeOffset end = cuda::fixed_offset_at(launch.rows.offsets, row + 1);
  if (end - begin > launch.rows.longest) return;
  if (begin == end && launch.log_sum == nullptr) return;
  Row numbers(launch, begin, end);
  numbers.measure();
  numbers.apply();
  numbers.save_log_sum(static_cast<VertexId>(row));
}

/// A piece of a long row, a warp each.
template <class Row>
__global__ __launch_bounds__(softmax_block_threads) void measure_pieces(
    const SoftmaxLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t index = (std::int64_t{blockIdx.x} * softmax_block_threads + threadIdx.x) / 32;
  if (index >= launch.rows.num_pieces) return;
  const cuda::Piece piece = launch.rows.pieces[index];
  Row numbers(launch, piece.begin, piece.end);
  numbers.measure();
  numbers.save(piece.slot);
}

template <class Row>
__global__ __launch_bounds__(softmax_block_threads) void change_pieces(const SoftmaxLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t index = (std::int64_t{blockIdx.x} * softmax_block_threads + threadIdx.x) / 32;
  if (index >= launch.rows.num_pieces) return;
  const cuda::Piece piece = launch.rows.pieces[index];
  Row numbers(launch, piece.begin, piece.end);
  for (int i = 0; i < piece.num_slots; ++i) numbers.join_slot(piece.first_slot + i);
  numbers.apply();
  if (piece.slot == piece.first_slot) numbers.save_log_sum(piece.row);
}

template <class Pass, class T, int team>
void launch_softmax(const SoftmaxLaunch& launch, Stream stream) {
  const unsigned head_blocks = cuda::num_blocks(launch.heads, 32);
  const dim3 row_grid(cuda::num_blocks(launch.rows.num_rows, softmax_block_threads / team),
                      head_blocks);
  const dim3 piece_grid(cuda::num_blocks(launch.rows.num_pieces, softmax_block_threads / 32),
                        head_blocks);
  cuda::launch_overlapped(softmax_short_rows<SoftmaxRow<Pass, T, team>, team>, row_grid,
                          softmax_block_threads, stream, launch);
  cuda::launch_overlapped(measure_pieces<SoftmaxRow<Pass, T, 32>>, piece_grid,
                          softmax_block_threads, stream, launch);
  cuda::launch_overlapped(change_pieces<SoftmaxRow<Pass, T, 32>>, piece_grid, softmax_block_threads,
                          stream, launch);
}

template <SoftmaxKey key>
std::span<const SoftmaxFunction> SoftmaxKernels<key>::get() {
  using T = cuda::Stored<key.precision>;
  using Pass = std::conditional_t<key.backward, BackwardPass, ForwardPass>;
  static constexpr auto functions = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{SoftmaxFunction{launch_softmax<Pass, T, softmax_teams[i]>}...};
  }
  (std::make_index_sequence<softmax_teams.size()>{});
  return functions;
}

}  // namespace tessera::ops
