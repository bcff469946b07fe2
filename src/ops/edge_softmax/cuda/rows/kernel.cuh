// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>

#include "cuda/cuts.cuh"
#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/softmax.cuh"
#include "cuda/vectors.cuh"
#include "ops/edge_softmax/cuda/rows/launch.hpp"

/// Softmax over the edges of each row. A team of lanes measures a row (maximum and sum, or the sum
/// of P dP), then changes it; the first numbers of a lane stay in registers between the two. Rows
/// that are cut are measured piece by piece in one launch and changed in another.
namespace tessera::ops {

/// How a team goes over the numbers of some edges.
template <class T, int team>
class TeamNumbers {
 public:
  /// Numbers of a lane whose loads are in flight together; its first ones stay in registers.
  static constexpr int batch = 4;

  __device__ TeamNumbers(const SoftmaxLaunch& launch, EdgeOffset begin, EdgeOffset end)
      : launch_(launch),
        lanes_(team, padded_heads(launch)),
        head_(std::int64_t{blockIdx.y} * 32 + lanes_.head),
        begin_(begin + lanes_.edge),
        end_(head_ < launch.heads ? end : begin) {}

  __device__ static int padded_heads(const SoftmaxLaunch& launch) {
    const auto heads = static_cast<int>(launch.heads < 32 ? launch.heads : 32);
    return 1 << (32 - __clz(heads - 1));
  }

  /// Loads a batch; `none` where there are no more numbers.
  template <class Value, class Load>
  __device__ void load_batch(EdgeOffset edge, Value (&values)[batch], const Value& none,
                             Load&& load) const {
#pragma unroll
    for (int i = 0; i < batch; ++i, edge += lanes_.batch_edges) {
      values[i] = edge < end_ ? load(edge) : none;
    }
  }

  /// Calls body(first edge, values) for all of this lane's numbers, batch by batch. The first batch
  /// is what `first` holds.
  template <class Value, class Load, class Body>
  __device__ void for_batches(Value (&first)[batch], const Value& none, Load&& load,
                              Body&& body) const {
    body(begin_, first);
    const EdgeOffset step = EdgeOffset{batch} * lanes_.batch_edges;
    for (EdgeOffset edge = begin_ + step; edge < end_; edge += step) {
      Value values[batch];
      load_batch(edge, values, none, load);
      body(edge, values);
    }
  }

  __device__ EdgeOffset first_edge() const { return begin_; }

  __device__ float load(const EdgeNumbers& numbers, EdgeOffset edge) const {
    return cuda::widen(static_cast<const T*>(numbers.data)[edge * numbers.stride + head_]);
  }
  /// The results of a batch, of which `result(value)` is each.
  template <class Value, class Result>
  __device__ void store_batch(EdgeOffset edge, const Value (&values)[batch],
                              Result&& result) const {
#pragma unroll
    for (int i = 0; i < batch; ++i, edge += lanes_.batch_edges) {
      if (edge < end_) store(edge, result(values[i]));
    }
  }
  __device__ void store(EdgeOffset edge, float value) const {
    static_cast<T*>(launch_.result)[edge * launch_.result_stride + head_] = cuda::narrow<T>(value);
  }
  __device__ float sum(float value) const { return cuda::sum_over_edges<team>(lanes_, value); }
  __device__ const cuda::HeadLanes& head_lanes() const { return lanes_; }
  __device__ std::int64_t head() const { return head_; }

 protected:
  const SoftmaxLaunch& launch_;
  cuda::HeadLanes lanes_;
  std::int64_t head_;
  EdgeOffset begin_;
  EdgeOffset end_;
};

/// exp(S - max) / sum.
template <class T, int team>
class ForwardRow {
 public:
  __device__ ForwardRow(const SoftmaxLaunch& launch, EdgeOffset begin, EdgeOffset end)
      : launch_(launch), numbers_(launch, begin, end) {
    numbers_.load_batch(numbers_.first_edge(), first_, -cuda::infinity, loader());
  }

  __device__ void measure() {
    numbers_.for_batches(first_, -cuda::infinity, loader(),
                         [&](EdgeOffset, const Scores& scores) { total_.add(scores); });
    cuda::over_edges<team>(numbers_.head_lanes(), [&](int distance) {
      cuda::RunningSum other;
      other.max = __shfl_xor_sync(cuda::team_mask<team>(), total_.max, distance);
      other.sum = __shfl_xor_sync(cuda::team_mask<team>(), total_.sum, distance);
      total_.join(other);
    });
  }
  __device__ void apply() {
    const float reciprocal = 1 / total_.sum;
    numbers_.for_batches(
        first_, -cuda::infinity, loader(), [&](EdgeOffset edge, const Scores& scores) {
          numbers_.store_batch(edge, scores,
                               [&](float score) { return expf(score - total_.max) * reciprocal; });
        });
  }
  /// It is -inf for a row without edges.
  __device__ void save_log_sum(VertexId row) const {
    if (launch_.log_sum == nullptr || !is_first_of_head()) return;
    launch_.log_sum[row * launch_.log_sum_stride + numbers_.head()] = total_.max + logf(total_.sum);
  }
  __device__ void save(std::int64_t slot) const {
    if (!is_first_of_head()) return;
    float* const to = launch_.slots + (slot * launch_.heads + numbers_.head()) * 2;
    to[0] = total_.max;
    to[1] = total_.sum;
  }
  __device__ void join_slot(std::int64_t slot) {
    if (numbers_.head() >= launch_.heads) return;
    const float* const from = launch_.slots + (slot * launch_.heads + numbers_.head()) * 2;
    total_.join({from[0], from[1]});
  }

 private:
  using Scores = float[TeamNumbers<T, team>::batch];

  /// One lane for each head that exists.
  __device__ bool is_first_of_head() const {
    return numbers_.head_lanes().edge == 0 && numbers_.head() < launch_.heads;
  }
  __device__ auto loader() const {
    return [this](EdgeOffset edge) { return launch_.scale * numbers_.load(launch_.first, edge); };
  }

  const SoftmaxLaunch& launch_;
  TeamNumbers<T, team> numbers_;
  cuda::RunningSum total_;
  Scores first_;
};

/// P (dP - sum of P dP).
template <class T, int team>
class BackwardRow {
 public:
  __device__ BackwardRow(const SoftmaxLaunch& launch, EdgeOffset begin, EdgeOffset end)
      : launch_(launch), numbers_(launch, begin, end) {
    numbers_.load_batch(numbers_.first_edge(), first_, Pair{0, 0}, loader());
  }

  __device__ void measure() {
    float sum = 0;
    numbers_.for_batches(first_, Pair{0, 0}, loader(), [&](EdgeOffset, const Pairs& pairs) {
#pragma unroll
      for (const Pair& pair : pairs) sum = fmaf(pair.weight, pair.grad, sum);
    });
    total_ = numbers_.sum(sum);
  }
  __device__ void apply() {
    numbers_.for_batches(first_, Pair{0, 0}, loader(), [&](EdgeOffset edge, const Pairs& pairs) {
      numbers_.store_batch(edge, pairs,
                           [&](const Pair& pair) { return pair.weight * (pair.grad - total_); });
    });
  }
  __device__ void save_log_sum(VertexId) const {}
  __device__ void save(std::int64_t slot) const {
    if (numbers_.head_lanes().edge != 0 || numbers_.head() >= launch_.heads) return;
    launch_.slots[slot * launch_.heads + numbers_.head()] = total_;
  }
  __device__ void join_slot(std::int64_t slot) {
    if (numbers_.head() >= launch_.heads) return;
    total_ += launch_.slots[slot * launch_.heads + numbers_.head()];
  }

 private:
  struct Pair {
    float weight;
    float grad;
  };
  using Pairs = Pair[TeamNumbers<T, team>::batch];

  __device__ auto loader() const {
    return [this](EdgeOffset edge) {
      return Pair{numbers_.load(launch_.first, edge), numbers_.load(launch_.second, edge)};
    };
  }

  const SoftmaxLaunch& launch_;
  TeamNumbers<T, team> numbers_;
  float total_ = 0;
  Pairs first_;
};

/// Rows that are not cut, a team each.
template <class Row, int team>
__global__ __launch_bounds__(softmax_block_threads) void softmax_short_rows(
    const SoftmaxLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t row = (std::int64_t{blockIdx.x} * softmax_block_threads + threadIdx.x) / team;
  if (row >= launch.rows.num_rows) return;
  const EdgeOffset begin = cuda::row_offset(launch.rows, row);
  const EdgeOffset end = cuda::row_offset(launch.rows, row + 1);
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

template <template <class, int> class Row, class T, int team>
void launch_softmax(const SoftmaxLaunch& launch, Stream stream) {
  const unsigned head_blocks = cuda::num_blocks(launch.heads, 32);
  const dim3 row_grid(cuda::num_blocks(launch.rows.num_rows, softmax_block_threads / team),
                      head_blocks);
  const dim3 piece_grid(cuda::num_blocks(launch.rows.num_pieces, softmax_block_threads / 32),
                        head_blocks);
  cuda::launch_overlapped(softmax_short_rows<Row<T, team>, team>, row_grid, softmax_block_threads,
                          stream, launch);
  cuda::launch_overlapped(measure_pieces<Row<T, 32>>, piece_grid, softmax_block_threads, stream,
                          launch);
  cuda::launch_overlapped(change_pieces<Row<T, 32>>, piece_grid, softmax_block_threads, stream,
                          launch);
}

template <template <class, int> class Row, class T>
constexpr std::array<SoftmaxFunction, softmax_teams.size()> make_softmax_functions() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{SoftmaxFunction{launch_softmax<Row, T, softmax_teams[i]>}...};
  }
  (std::make_index_sequence<softmax_teams.size()>{});
}

template <SoftmaxKey key>
std::span<const SoftmaxFunction> SoftmaxKernels<key>::all() {
  using T = cuda::Stored<key.precision>;
  if constexpr (key.backward) {
    static constexpr auto functions = make_softmax_functions<BackwardRow, T>();
    return functions;
  } else {
    static constexpr auto functions = make_softmax_functions<ForwardRow, T>();
    return functions;
  }
}

}  // namespace tessera::ops
