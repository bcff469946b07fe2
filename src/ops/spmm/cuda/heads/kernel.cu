// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/heads/launch.hpp"

#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"

/// Sums over rows where every head of an edge has a weight of its own, or where the edges
/// themselves have features. A warp takes a row or a piece of a long one; `lanes` lanes load a row
/// of X together, the others do the same for the next edges.
namespace tessera::ops {
namespace {

constexpr int block_threads = 128;

template <class T, bool aligned>
class RowSum {
 public:
  using FeatureVector = cuda::Vector<T, aligned ? 16 : static_cast<int>(sizeof(T))>;
  static constexpr int count = FeatureVector::count;

  __device__ explicit RowSum(const HeadsLaunch& launch)
      : launch_(launch),
        lane_(static_cast<int>(threadIdx.x) % 32),
        feature_((std::int64_t{blockIdx.y} * launch.work.lanes + lane_ % launch.work.lanes) *
                 count),
        active_(feature_ < launch.features.count),
        head_(active_ ? feature_ / launch.features.head_width : 0) {}

  __device__ void gather(EdgeOffset begin, EdgeOffset end) {
    if (active_) {
      const int step = 32 / launch_.work.lanes;
#pragma unroll 4
      for (EdgeOffset edge = begin + lane_ / launch_.work.lanes; edge < end; edge += step)
        add(edge);
    }
    for (int distance = launch_.work.lanes; distance < 32; distance *= 2) {
#pragma unroll
      for (float& sum : sums_) sum += __shfl_xor_sync(~0u, sum, distance);
    }
  }

  __device__ bool writes() const { return active_ && lane_ < launch_.work.lanes; }
  __device__ void store_row(std::int64_t row) const {
    FeatureVector::narrowed(sums_).store(static_cast<T*>(launch_.features.y) +
                                         row * launch_.features.y_stride + feature_);
  }
  __device__ void store_slot(std::int64_t slot) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      launch_.work.slots[slot * launch_.features.count + feature_ + i] = sums_[i];
    }
  }

 private:
  __device__ void add(EdgeOffset edge) {
    const EdgeOffset at =
        launch_.matrix.positions != nullptr ? __ldg(launch_.matrix.positions + edge) : edge;
    std::int64_t row = at;
    float weight = 1;
    if (!launch_.features.of_edges) {
      row = __ldg(launch_.matrix.indices + edge);
      weight = cuda::widen(
          static_cast<const T*>(launch_.matrix.values)[at * launch_.matrix.value_stride + head_]);
    }
    float values[count];
    FeatureVector::load(static_cast<const T*>(launch_.features.x) +
                        row * launch_.features.x_stride + feature_)
        .widen_to(values);
#pragma unroll
    for (int i = 0; i < count; ++i) sums_[i] = fmaf(weight, values[i], sums_[i]);
  }

  const HeadsLaunch& launch_;
  int lane_;
  std::int64_t feature_;
  bool active_;
  std::int64_t head_;
  float sums_[count] = {};
};

/// Warps [0, num_pieces) take a piece each, the rest the rows that are not cut.
template <class T, bool aligned>
__global__ __launch_bounds__(block_threads) void sum_heads(const HeadsLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t item = (std::int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32;
  RowSum<T, aligned> sum(launch);
  if (item < launch.work.rows.num_pieces) {
    const cuda::Piece piece = launch.work.rows.pieces[item];
    sum.gather(piece.begin, piece.end);
    if (sum.writes()) sum.store_slot(piece.slot);
    return;
  }
  const std::int64_t row = item - launch.work.rows.num_pieces;
  if (row >= launch.work.rows.num_rows) return;
  const EdgeOffset begin = cuda::fixed_offset_at(launch.work.rows.offsets, row);
  const EdgeOffset end = cuda::fixed_offset_at(launch.work.rows.offsets, row + 1);
  if (end - begin > launch.work.rows.longest) return;
  sum.gather(begin, end);
  if (sum.writes()) sum.store_row(row);
}

/// Adds the pieces of a row in order: a block per row.
template <class T>
__global__ __launch_bounds__(block_threads) void add_pieces(const HeadsLaunch launch) {
  cuda::begin_overlapped();
  const cuda::CutRow cut = launch.work.rows.cut_rows[blockIdx.x];
  for (std::int64_t feature = threadIdx.x; feature < launch.features.count;
       feature += block_threads) {
    float total = 0;
    for (std::int64_t i = 0; i < cut.num_slots; ++i) {
      total += launch.work.slots[(cut.first_slot + i) * launch.features.count + feature];
    }
    static_cast<T*>(launch.features.y)[cut.row * launch.features.y_stride + feature] =
        cuda::narrow<T>(total);
  }
}

template <class T, bool aligned>
void launch_heads(const HeadsLaunch& launch, Stream stream) {
  const std::int64_t items = launch.work.rows.num_pieces + launch.work.rows.num_rows;
  const dim3 grid(cuda::num_blocks(items, block_threads / 32),
                  cuda::num_blocks(launch.features.count,
                                   std::int64_t{launch.work.lanes} * RowSum<T, aligned>::count));
  cuda::launch_overlapped(sum_heads<T, aligned>, grid, block_threads, stream, launch);
  cuda::launch_overlapped(add_pieces<T>, dim3(static_cast<unsigned>(launch.work.rows.num_cut_rows)),
                          block_threads, stream, launch);
}

}  // namespace

template <HeadsKey key>
HeadsFunction HeadsKernel<key>::get() {
  return launch_heads<cuda::Stored<key.precision>, key.aligned>;
}

template struct HeadsKernel<HeadsKey{Precision::fp32, true}>;
template struct HeadsKernel<HeadsKey{Precision::fp32, false}>;
template struct HeadsKernel<HeadsKey{Precision::bf16, true}>;
template struct HeadsKernel<HeadsKey{Precision::bf16, false}>;
template struct HeadsKernel<HeadsKey{Precision::fp16, true}>;
template struct HeadsKernel<HeadsKey{Precision::fp16, false}>;

}  // namespace tessera::ops
