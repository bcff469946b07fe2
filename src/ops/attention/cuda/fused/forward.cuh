// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/fused/row.cuh"

/// The forward pass over rows: a running maximum, batch by batch.
namespace tessera::ops {

template <class T, bool aligned, int vectors>
class RowOutput {
  using Work = RowWork<T, aligned, vectors>;

 public:
  __device__ RowOutput(const AttentionLaunch& launch, const Work& work)
      : launch_(launch), work_(work) {}

  __device__ void run(const RowPart& part) {
    for (EdgeOffset batch = part.begin; batch < part.end; batch += work_.batch_edges()) {
      const LaneEdge edge = work_.edge_at(batch, part.end);
      const float score = work_.score(part.row, edge).value;
      raise_max(cuda::max_over_edges<32>(work_.lanes(), score));
      // Where all scores are -inf nothing is subtracted: their weights are 0, and a row of nothing
      // else divides 0 by 0, as the reference does.
      const float weight = expf(score - (max_ > -cuda::infinity ? max_ : 0.0f));
      sum_ += weight;
      const EdgeOffset left = part.end - batch;
      const int edges = left < work_.batch_edges() ? static_cast<int>(left) : work_.batch_edges();
      work_.add_weighted(launch_.gathered_values, edge, edges, weight * work_.dropped(edge),
                         features_);
    }
    sum_ = cuda::sum_over_edges<32>(work_.lanes(), sum_);
    work_.combine_groups(features_);
  }

  __device__ void store(const RowPart& part) {
    const bool empty = part.begin == part.end;
    const float reciprocal = empty ? 0.0f : 1 / sum_;
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      const float factor = work_.of_head(reciprocal, k);
      for (float& value : features_[k]) value *= factor;
      if (work_.stores(k)) work_.store(launch_.output, part.row, k, features_[k]);
    }
    if (launch_.log_sum == nullptr || !work_.speaks_for_head() || !work_.owns_heads()) return;
    launch_.log_sum[part.row * launch_.log_sum_stride + work_.head()] =
        empty ? -cuda::infinity : max_ + logf(sum_);
  }

  __device__ void store_piece(std::int64_t slot) const {
    float* const to = launch_.slots + slot * launch_.slot_size;
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      if (!work_.stores(k)) continue;
#pragma unroll
      for (int i = 0; i < Work::count; ++i) to[work_.feature(k) + i] = features_[k][i];
    }
    if (!work_.speaks_for_head() || !work_.owns_heads()) return;
    to[launch_.features + work_.head()] = max_;
    to[launch_.features + launch_.heads + work_.head()] = sum_;
  }

 private:
  /// Scales what was summed with the maximum so far to the new one.
  __device__ void raise_max(float score) {
    const bool raised = score > max_;
    const float factor = raised ? expf(max_ - score) : 1.0f;
    if (raised) max_ = score;
    sum_ *= factor;
    if (__any_sync(~0u, raised) == 0) return;
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      const float of_feature = work_.of_head(factor, k);
#pragma unroll
      for (float& value : features_[k]) value *= of_feature;
    }
  }

  const AttentionLaunch& launch_;
  const Work& work_;
  float max_ = -cuda::infinity;  ///< of this lane's head
  float sum_ = 0;                ///< of this lane's numbers until `run` ends, then of its head's
  float features_[vectors][Work::count] = {};
};

template <class T, bool aligned, int vectors>
__global__ __launch_bounds__(attention_block_threads) void attention_forward(
    const AttentionLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t item = (std::int64_t{blockIdx.x} * attention_block_threads + threadIdx.x) / 32;
  if (item >= launch.rows.num_pieces + launch.rows.num_rows) return;
  const RowPart part = row_part(launch.rows, item);
  if (!part.exists) return;
  const RowWork<T, aligned, vectors> work(launch);
  RowOutput<T, aligned, vectors> row(launch, work);
  row.run(part);
  if (part.slot >= 0) {
    row.store_piece(part.slot);
  } else {
    row.store(part);
  }
}

/// Joins the pieces of a row: a block per row, a thread per feature.
template <class T>
__global__ __launch_bounds__(attention_block_threads) void join_pieces(
    const AttentionLaunch launch) {
  cuda::begin_overlapped();
  const cuda::CutRow cut = launch.rows.cut_rows[blockIdx.x];
  const float* const first = launch.slots + cut.first_slot * launch.slot_size;
  const auto join_head = [&](std::int64_t head, auto&& with_factor) {
    const float* const maxima = first + launch.features + head;
    float max = -cuda::infinity;
    for (std::int64_t i = 0; i < cut.num_slots; ++i) {
      max = fmaxf(max, maxima[i * launch.slot_size]);
    }
    float sum = 0;
    for (std::int64_t i = 0; i < cut.num_slots; ++i) {
      const float of_piece = maxima[i * launch.slot_size];
      // Where nothing but -inf was seen there is nothing to scale.
      const float factor = of_piece > -cuda::infinity ? expf(of_piece - max) : 1.0f;
      sum = fmaf(maxima[i * launch.slot_size + launch.heads], factor, sum);
      with_factor(i, factor);
    }
    return cuda::RunningSum{max, sum};
  };
  for (std::int64_t f = threadIdx.x; f < launch.features; f += attention_block_threads) {
    float total = 0;
    const cuda::RunningSum head =
        join_head(f / launch.width, [&](std::int64_t piece, float factor) {
          total = fmaf(first[piece * launch.slot_size + f], factor, total);
        });
    static_cast<T*>(launch.output.data)[cut.row * launch.output.stride + f] =
        cuda::narrow<T>(total / head.sum);
  }
  if (launch.log_sum == nullptr) return;
  for (std::int64_t h = threadIdx.x; h < launch.heads; h += attention_block_threads) {
    const cuda::RunningSum head = join_head(h, [](std::int64_t, float) {});
    launch.log_sum[cut.row * launch.log_sum_stride + h] = head.max + logf(head.sum);
  }
}

/// P = exp(score - log_sum) of every edge and head.
template <class T>
__global__ __launch_bounds__(attention_block_threads) void attention_weights_kernel(
    const AttentionLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t item = (std::int64_t{blockIdx.x} * attention_block_threads + threadIdx.x) / 32;
  if (item >= launch.rows.num_pieces + launch.rows.num_rows) return;
  const RowPart part = row_part(launch.rows, item);
  if (!part.exists) return;
  const RowWork<T, false, 1> work(launch);
  const float log_sum =
      work.has_head() ? launch.log_sum[part.row * launch.log_sum_stride + work.head()] : 0.0f;
  for (EdgeOffset batch = part.begin; batch < part.end; batch += work.batch_edges()) {
    const LaneEdge edge = work.edge_at(batch, part.end);
    const float weight = expf(work.score(part.row, edge).value - log_sum);
    if (edge.exists) work.store_head(launch.output, edge.position, weight);
  }
}

template <class T, bool aligned, int vectors>
void launch_attention_forward(const AttentionLaunch& launch, Stream stream) {
  cuda::launch_overlapped(attention_forward<T, aligned, vectors>,
                          dim3(launch.num_blocks, launch.slices.count), attention_block_threads,
                          stream, launch);
  cuda::launch_overlapped(join_pieces<T>, dim3(static_cast<unsigned>(launch.rows.num_cut_rows)),
                          attention_block_threads, stream, launch);
}

template <class T>
void launch_attention_weights(const AttentionLaunch& launch, Stream stream) {
  cuda::launch_overlapped(attention_weights_kernel<T>, dim3(launch.num_blocks, launch.slices.count),
                          attention_block_threads, stream, launch);
}

template <class T>
constexpr AttentionForwardFunctions make_attention_forward() {
  return {launch_attention_forward<T, true, attention_vectors>,
          launch_attention_forward<T, false, attention_vectors>, launch_attention_weights<T>};
}

}  // namespace tessera::ops
