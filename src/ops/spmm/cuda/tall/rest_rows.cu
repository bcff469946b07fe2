// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/rest_rows.hpp"

#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/overlapped_pair.cuh"
#include "cuda/vectors.cuh"

/// A warp per row: `lanes` of them load one row of X together, and several such groups work on
/// different edges. Rows with very many edges are shared by the warps of a block. The order of a
/// sum depends on the graph alone.
namespace tessera::ops {
namespace {

constexpr int block_warps = 8;
constexpr EdgeOffset long_row = 2048;

__device__ EdgeOffset offset_at(const cuda::Offsets& offsets, std::int64_t row) {
  return offsets.narrow != nullptr ? __ldg(offsets.narrow + row) : __ldg(offsets.wide + row);
}

template <class T, int lanes, bool aligned, bool scaled>
class RestSum {
 public:
  using FeatureVector = cuda::Vector<T, aligned ? 16 : static_cast<int>(sizeof(T))>;
  static constexpr int width = FeatureVector::count;
  static constexpr int edges = 32 / lanes;
  /// Loads in flight: 16-bit rows are short.
  static constexpr int unroll = aligned && sizeof(T) == 2 ? 8 : 4;
  static constexpr int step = edges * unroll;

  __device__ explicit RestSum(const RestLaunch& launch)
      : launch_(launch),
        lane_(static_cast<int>(threadIdx.x) % 32),
        feature_((std::int64_t{blockIdx.y} * lanes + lane_ % lanes) * width),
        active_(feature_ < launch.features),
        // Lanes beyond the last feature load the first one instead and write nothing.
        source_(static_cast<const char*>(launch.x) + (active_ ? feature_ : 0) * sizeof(T)),
        row_bytes_(static_cast<std::uint32_t>(launch.x_stride * sizeof(T))) {}

  /// All but the last step are whole, and the columns of the next one are on their way while the
  /// rows of this one are.
  __device__ void gather(EdgeOffset begin, EdgeOffset end) {
    if (begin >= end) return;
    auto left = static_cast<int>(end - begin);
    const VertexId* indices = launch_.indices + begin + lane_ / lanes;
    VertexId columns[unroll];
    load_columns(indices, left, columns);
#pragma unroll 1
    for (; left >= step; left -= step) {
      VertexId next[unroll];
      indices += step;
      load_columns(indices, left - step, next);
      add<true>(columns, left);
#pragma unroll
      for (int u = 0; u < unroll; ++u) columns[u] = next[u];
    }
    if (left > 0) add<false>(columns, left);
  }

  /// Afterwards the first `lanes` lanes hold the sums of the warp.
  __device__ void combine_groups() {
#pragma unroll
    for (int distance = lanes; distance < 32; distance *= 2) {
#pragma unroll
      for (int i = 0; i < width; ++i) sums_[i] += __shfl_xor_sync(~0u, sums_[i], distance);
    }
  }

  __device__ bool writes() const { return active_ && lane_ < lanes; }

  /// Sums and column ids are the first that the cache may forget: rows of X are needed again.
  __device__ void store(std::int64_t row) const {
    float* const to = launch_.sums + row * launch_.sums_stride + feature_;
    if constexpr (width == 1) {
      __stcs(to, sums_[0]);
    } else {
#pragma unroll
      for (int i = 0; i < width; i += 4) {
        __stcs(reinterpret_cast<float4*>(to + i),
               make_float4(sums_[i], sums_[i + 1], sums_[i + 2], sums_[i + 3]));
      }
    }
  }

  /// The warps of a block add up what each has gathered, in their order.
  __device__ void combine_warps() {
    __shared__ float warp_sums[block_warps][lanes * width];
    __syncthreads();
    if (lane_ < lanes) {
#pragma unroll
      for (int i = 0; i < width; ++i) {
        warp_sums[threadIdx.x / 32][lane_ * width + i] = sums_[i];
      }
    }
    __syncthreads();
    if (lane_ >= lanes) return;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      sums_[i] = 0;
      for (int warp = 0; warp < block_warps; ++warp) sums_[i] += warp_sums[warp][lane_ * width + i];
    }
  }

 private:
  __device__ bool live(int u, int left) const { return u * edges + lane_ / lanes < left; }

  __device__ void load_columns(const VertexId* indices, int left,
                               VertexId (&columns)[unroll]) const {
#pragma unroll
    for (int u = 0; u < unroll; ++u) columns[u] = live(u, left) ? __ldcs(indices + u * edges) : 0;
  }

  template <bool whole>
  __device__ void add(const VertexId (&columns)[unroll], int left) {
    FeatureVector rows[unroll];
    float scales[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const auto offset = std::uint64_t{static_cast<std::uint32_t>(columns[u])} * row_bytes_;
      const bool exists = whole || live(u, left);
      rows[u] = exists ? FeatureVector::load(source_ + offset) : FeatureVector::zero();
      if constexpr (scaled) scales[u] = exists ? __ldg(launch_.col_scale + columns[u]) : 0.0f;
    }
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      float values[width];
      rows[u].widen_to(values);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        sums_[i] = scaled ? fmaf(scales[u], values[i], sums_[i]) : sums_[i] + values[i];
      }
    }
  }

  const RestLaunch& launch_;
  int lane_;
  std::int64_t feature_;
  bool active_;
  const char* source_;
  std::uint32_t row_bytes_;
  float sums_[width] = {};
};

/// Lets windows that wait for it see the sum of a row.
__device__ void arrive(const RestLaunch& launch, std::int64_t row) {
  if (launch.arrivals == nullptr) return;
  __threadfence();
  __syncwarp();
  if (threadIdx.x % 32 == 0) atomicAdd(launch.arrivals + row / launch.window_rows, 1u);
}

/// A warp each, and those with very many edges by all warps, one after another.
template <class T, int lanes, bool aligned, bool scaled>
__device__ void sum_rows(const RestLaunch& launch, std::int64_t first_row) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  bool any_long = false;
  if (first_row + warp < launch.num_rows) {
    const EdgeOffset begin = offset_at(launch.offsets, first_row + warp);
    const EdgeOffset end = offset_at(launch.offsets, first_row + warp + 1);
    any_long = end - begin > long_row;
    if (!any_long) {
      RestSum<T, lanes, aligned, scaled> sum(launch);
      sum.gather(begin, end);
      sum.combine_groups();
      if (sum.writes()) sum.store(first_row + warp);
      arrive(launch, first_row + warp);
    }
  }
  if (!__syncthreads_or(any_long)) return;
  for (int i = 0; i < block_warps && first_row + i < launch.num_rows; ++i) {
    const EdgeOffset begin = offset_at(launch.offsets, first_row + i);
    const EdgeOffset end = offset_at(launch.offsets, first_row + i + 1);
    if (end - begin <= long_row) continue;
    const EdgeOffset share = (end - begin + block_warps - 1) / block_warps;
    const EdgeOffset own = begin + warp * share;
    RestSum<T, lanes, aligned, scaled> sum(launch);
    sum.gather(own, own + share < end ? own + share : end);
    sum.combine_groups();
    sum.combine_warps();
    if (warp != 0) continue;
    if (sum.writes()) sum.store(first_row + i);
    arrive(launch, first_row + i);
  }
}

/// Beside windows, half of the registers are theirs.
template <class T, int lanes, bool aligned, bool scaled>
__global__ __launch_bounds__(block_warps * 32, !aligned ? 1
                                               : scaled
                                                   ? 3
                                                   : 4) void sum_rest(const RestLaunch launch) {
  const bool leads = launch.arrivals != nullptr;
  cuda::begin_leader(leads);
  cuda::wait_as_leader(leads);
  const std::int64_t step = std::int64_t{gridDim.x} * block_warps;
  for (std::int64_t first_row = std::int64_t{blockIdx.x} * block_warps; first_row < launch.num_rows;
       first_row += step) {
    sum_rows<T, lanes, aligned, scaled>(launch, first_row);
  }
}

template <class T, int lanes, bool aligned>
constexpr std::int64_t block_width = std::int64_t{lanes} * RestSum<T, lanes, aligned, false>::width;

template <class T, int lanes, bool aligned>
constexpr auto kernel_of(bool scaled) {
  return scaled ? sum_rest<T, lanes, aligned, true> : sum_rest<T, lanes, aligned, false>;
}

template <class T, int lanes, bool aligned>
void launch_rest(const RestLaunch& launch, Stream stream) {
  const unsigned chunks = cuda::num_blocks(launch.features, block_width<T, lanes, aligned>);
  unsigned blocks = cuda::num_blocks(launch.num_rows, block_warps);
  if (launch.arrivals != nullptr) {
    blocks = std::min(blocks, std::max(1u, static_cast<unsigned>(launch.num_blocks) / chunks));
  }
  cuda::launch_overlapped(kernel_of<T, lanes, aligned>(launch.col_scale != nullptr),
                          dim3(blocks, chunks), block_warps * 32, stream, launch);
}

template <class T, int lanes, bool aligned>
int resident_rest_blocks(bool scaled) {
  return cuda::resident_blocks(kernel_of<T, lanes, aligned>(scaled), block_warps * 32, 0);
}

template <class T, int lanes, bool aligned>
constexpr RestFunction make_rest_function() {
  return {block_width<T, lanes, aligned>, launch_rest<T, lanes, aligned>,
          resident_rest_blocks<T, lanes, aligned>};
}

template <class T>
RestFunction function_of(std::int64_t features, bool aligned) {
  if (!aligned) return make_rest_function<T, 32, false>();
  const std::int64_t units = features * static_cast<std::int64_t>(sizeof(T)) / 16;
  if (units <= 8) return make_rest_function<T, 8, true>();
  return units <= 16 ? make_rest_function<T, 16, true>() : make_rest_function<T, 32, true>();
}

}  // namespace

RestFunction rest_function(Precision precision, std::int64_t features, bool aligned) {
  switch (precision) {
    case Precision::bf16: return function_of<__nv_bfloat16>(features, aligned);
    case Precision::fp16: return function_of<__half>(features, aligned);
    default: return function_of<float>(features, aligned);
  }
}

}  // namespace tessera::ops
