// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/fused/row.cuh"

/// The backward pass over rows of A, for what belongs to targets, or of its transpose, for what
/// belongs to sources. The weights are computed again from the scores and each row's log_sum.
namespace tessera::ops {

template <class T, bool aligned, int vectors>
class RowGradients {
  using Work = RowWork<T, aligned, vectors>;

 public:
  __device__ RowGradients(const AttentionLaunch& launch, const Work& work)
      : launch_(launch),
        work_(work),
        wants_scores_(launch.score_gradient.data != nullptr || launch.vector_sums != nullptr ||
                      launch.scale_sums != nullptr),
        wants_values_(launch.value_gradient.data != nullptr) {}

  __device__ void run(const RowPart& part) {
    head_sum_ = 0;
    clear(scores_);
    // By rows, the second sums are those of the vector, which go on over all rows of a warp.
    if (!launch_.by_rows) clear(second_);
    if (launch_.by_rows) load_state(part.row);
    for (EdgeOffset batch = part.begin; batch < part.end; batch += work_.batch_edges()) {
      const LaneEdge edge = work_.edge_at(batch, part.end);
      if (!launch_.by_rows) load_state(edge.other);
      const Score score = work_.score(part.row, edge);
      const float factor = work_.dropped(edge);
      const float weight = edge.exists ? expf(score.value - log_sum_) : 0.0f;
      const EdgeOffset left = part.end - batch;
      const int edges = left < work_.batch_edges() ? static_cast<int>(left) : work_.batch_edges();
      if (wants_scores_) add_scores(part.row, edge, edges, score, weight, factor);
      if (wants_values_) {
        work_.add_weighted(launch_.gathered_values, edge, edges, weight * factor, second_);
      }
    }
    finish();
  }

  __device__ void store(const RowPart& part) const {
    if (launch_.score_gradient.data != nullptr) {
      if (launch_.form == AttentionForm::gat) {
        if (work_.speaks_for_head() && work_.owns_heads()) {
          work_.store_head(launch_.score_gradient, part.row, head_sum_);
        }
      } else {
        store_features(launch_.score_gradient, part.row, scores_);
      }
    }
    if (wants_values_) store_features(launch_.value_gradient, part.row, second_);
  }

  __device__ void store_piece(std::int64_t slot) const {
    float* const to = launch_.slots + slot * launch_.slot_size;
    if (launch_.form == AttentionForm::gat) {
      if (work_.speaks_for_head() && work_.owns_heads()) to[work_.head()] = head_sum_;
    } else {
      copy_features(scores_, to);
    }
    if (!launch_.by_rows) copy_features(second_, to + launch_.score_cols);
  }

  /// What all edges of the graph share, after the last row of this warp.
  __device__ void store_shared(std::int64_t warp, std::int64_t num_warps) {
    if (launch_.vector_sums != nullptr) {
      work_.combine_groups(second_);
      copy_features(second_, launch_.vector_sums + warp * launch_.features);
    }
    if (launch_.scale_sums == nullptr) return;
    for (int distance = 16; distance >= 1; distance /= 2) {
      scale_sum_ += __shfl_xor_sync(~0u, scale_sum_, distance);
    }
    if (threadIdx.x % 32 == 0) {
      launch_.scale_sums[std::int64_t{blockIdx.y} * num_warps + warp] = scale_sum_;
    }
  }

 private:
  using Sums = float[vectors][Work::count];

  __device__ static void clear(Sums& sums) {
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
#pragma unroll
      for (float& sum : sums[k]) sum = 0;
    }
  }

  /// log_sum and dO . O of a row, for this lane's head.
  __device__ void load_state(std::int64_t row) {
    if (!work_.has_head()) return;
    const float* const state = launch_.row_state + row * 2 * launch_.heads + work_.head();
    log_sum_ = __ldg(state);
    row_dot_ = __ldg(state + launch_.heads);
  }

  /// dS = P (f dP - dO . O), sent on to what the scores were made of.
  __device__ void add_scores(std::int64_t fixed, const LaneEdge& edge, int edges,
                             const Score& score, float weight, float factor) {
    const float product =
        work_.head_dot(launch_.fixed_values, fixed, launch_.gathered_values, edge);
    float grad = edge.exists ? weight * (factor * product - row_dot_) : 0.0f;
    if (launch_.form == AttentionForm::gat) {
      if (!(score.raw > 0)) grad *= launch_.slope;
      head_sum_ += grad;
    } else if (launch_.form == AttentionForm::dot) {
      if (edge.exists && work_.owns_heads()) {
        scale_sum_ += static_cast<double>(grad) * static_cast<double>(score.raw);
      }
      work_.add_weighted(launch_.gathered_scores, edge, edges, grad * launch_.scale, scores_);
    } else {
      work_.add_additive(fixed, edge, edges, grad, scores_, second_,
                         launch_.vector_sums != nullptr);
    }
  }

  __device__ void finish() {
    head_sum_ = cuda::sum_over_edges<32>(work_.lanes(), head_sum_);
    work_.combine_groups(scores_);
    if (!launch_.by_rows) work_.combine_groups(second_);
    if (launch_.form != AttentionForm::gatv2) return;
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      if (!work_.stores(k)) continue;
      float vector[Work::count];
      work_.load_vector(k, vector);
#pragma unroll
      for (int i = 0; i < Work::count; ++i) scores_[k][i] *= vector[i];
    }
  }

  __device__ void store_features(const GpuOutput& to, std::int64_t row, const Sums& sums) const {
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      if (work_.stores(k)) work_.store(to, row, k, sums[k]);
    }
  }
  __device__ void copy_features(const Sums& sums, float* to) const {
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      if (!work_.stores(k)) continue;
#pragma unroll
      for (int i = 0; i < Work::count; ++i) to[work_.feature(k) + i] = sums[k][i];
    }
  }

  const AttentionLaunch& launch_;
  const Work& work_;
  bool wants_scores_;
  bool wants_values_;
  float log_sum_ = 0;
  float row_dot_ = 0;
  float head_sum_ = 0;  ///< gat: of this lane's head
  double scale_sum_ = 0;
  Sums scores_ = {};
  Sums second_ = {};  ///< values by columns, the vector by rows
};

/// Each warp takes every num_warps-th part: one, or several where sums over all edges are wanted.
template <class T, bool aligned, int vectors>
__global__ __launch_bounds__(attention_block_threads) void attention_backward(
    const AttentionLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t warp = (std::int64_t{blockIdx.x} * attention_block_threads + threadIdx.x) / 32;
  const std::int64_t num_warps = std::int64_t{gridDim.x} * attention_block_warps;
  const std::int64_t items = launch.rows.num_pieces + launch.rows.num_rows;
  const RowWork<T, aligned, vectors> work(launch);
  RowGradients<T, aligned, vectors> row(launch, work);
  for (std::int64_t item = warp; item < items; item += num_warps) {
    const RowPart part = row_part(launch.rows, item);
    if (!part.exists) continue;
    row.run(part);
    if (part.slot >= 0) {
      row.store_piece(part.slot);
    } else {
      row.store(part);
    }
  }
  row.store_shared(warp, num_warps);
}

/// Adds the pieces of a row in order: a block per row.
template <class T>
__global__ __launch_bounds__(attention_block_threads) void add_gradient_pieces(
    const AttentionLaunch launch) {
  cuda::begin_overlapped();
  const cuda::CutRow cut = launch.rows.cut_rows[blockIdx.x];
  const auto store = [&](const GpuOutput& to, std::int64_t first, std::int64_t count) {
    if (to.data == nullptr) return;
    for (std::int64_t i = threadIdx.x; i < count; i += attention_block_threads) {
      float total = 0;
      for (std::int64_t piece = 0; piece < cut.num_slots; ++piece) {
        total += launch.slots[(cut.first_slot + piece) * launch.slot_size + first + i];
      }
      static_cast<T*>(to.data)[cut.row * to.stride + i] = cuda::narrow<T>(total);
    }
  };
  store(launch.score_gradient, 0, launch.score_cols);
  store(launch.value_gradient, launch.score_cols, launch.features);
}

/// log_sum and dO . O of every row and head, eight lanes each.
template <class T>
__global__ __launch_bounds__(attention_block_threads) void attention_row_state(
    const RowStateLaunch launch) {
  cuda::begin_overlapped();
  constexpr int team = 8;
  const std::int64_t number =
      (std::int64_t{blockIdx.x} * attention_block_threads + threadIdx.x) / team;
  const int lane = static_cast<int>(threadIdx.x) % team;
  const std::int64_t row = number / launch.heads;
  const std::int64_t head = number % launch.heads;
  const bool exists = row < launch.num_rows;
  float sum = 0;
  if (exists) {
    const T* const output = static_cast<const T*>(launch.output.data) + row * launch.output.stride;
    const T* const grad =
        static_cast<const T*>(launch.grad_output.data) + row * launch.grad_output.stride;
    for (std::int64_t f = head * launch.width + lane; f < (head + 1) * launch.width; f += team) {
      sum = fmaf(cuda::widen(output[f]), cuda::widen(grad[f]), sum);
    }
  }
#pragma unroll
  for (int distance = team / 2; distance >= 1; distance /= 2) {
    sum += __shfl_xor_sync(~0u, sum, distance);
  }
  if (!exists || lane != 0) return;
  float* const state = launch.row_state + row * 2 * launch.heads + head;
  state[0] = launch.log_sum[row * launch.log_sum_stride + head];
  state[launch.heads] = sum;
}

/// Adds the rows of a matrix: a block takes 8 columns, so that the many threads that it has for
/// each of them see few rows one after another.
inline constexpr int added_columns = 8;
inline constexpr int added_threads = 1024;

template <class T>
__global__ __launch_bounds__(added_threads) void add_rows(const float* sums, std::int64_t num_sums,
                                                          std::int64_t features, T* to) {
  cuda::begin_overlapped();
  constexpr int warps = added_threads / 32;
  __shared__ double partial[warps][added_columns];
  const int column = static_cast<int>(threadIdx.x) % added_columns;
  const std::int64_t feature = std::int64_t{blockIdx.x} * added_columns + column;
  double total = 0;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x / added_columns; i < num_sums && feature < features;
       i += added_threads / added_columns) {
    total += static_cast<double>(sums[i * features + feature]);
  }
#pragma unroll
  for (int distance = added_columns; distance < 32; distance *= 2) {
    total += __shfl_xor_sync(~0u, total, distance);
  }
  if (threadIdx.x % 32 < added_columns) partial[threadIdx.x / 32][column] = total;
  __syncthreads();
  if (threadIdx.x >= added_columns || feature >= features) return;
  for (int w = 1; w < warps; ++w) total += partial[w][column];
  to[feature] = cuda::narrow<T>(static_cast<float>(total));
}

template <class T, bool aligned, int vectors>
void launch_attention_backward(const AttentionLaunch& launch, Stream stream) {
  cuda::launch_overlapped(attention_backward<T, aligned, vectors>,
                          dim3(launch.num_blocks, launch.slices.count), attention_block_threads,
                          stream, launch);
  cuda::launch_overlapped(add_gradient_pieces<T>,
                          dim3(static_cast<unsigned>(launch.rows.num_cut_rows)),
                          attention_block_threads, stream, launch);
}

template <class T>
void launch_row_state(const RowStateLaunch& launch, Stream stream) {
  cuda::launch_overlapped(
      attention_row_state<T>,
      dim3(cuda::num_blocks(launch.num_rows * launch.heads, attention_block_threads / 8)),
      attention_block_threads, stream, launch);
}

template <class T>
void launch_store_vector(const float* sums, std::int64_t num_sums, std::int64_t features, void* to,
                         Stream stream) {
  cuda::launch_overlapped(add_rows<T>, dim3(cuda::num_blocks(features, added_columns)),
                          added_threads, stream, sums, num_sums, features, static_cast<T*>(to));
}

template <class T>
constexpr AttentionBackwardFunctions make_attention_backward() {
  return {launch_attention_backward<T, true, attention_vectors>,
          launch_attention_backward<T, false, attention_vectors>, launch_row_state<T>,
          launch_store_vector<T>};
}

}  // namespace tessera::ops
