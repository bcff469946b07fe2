// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/rest_rows.hpp"

#include "cuda/launch.cuh"
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

  __device__ void store(std::int64_t row) const {
    float* const to = launch_.sums + row * launch_.sums_stride + feature_;
    if constexpr (width == 1) {
      *to = sums_[0];
    } else {
#pragma unroll
      for (int i = 0; i < width; i += 4) {
        *reinterpret_cast<float4*>(to + i) =
            make_float4(sums_[i], sums_[i + 1], sums_[i + 2], sums_[i + 3]);
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
    for (int u = 0; u < unroll; ++u) columns[u] = live(u, left) ? __ldg(indices + u * edges) : 0;
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

template <class T, int lanes, bool aligned, bool scaled>
__global__ __launch_bounds__(block_warps * 32) void sum_rest(const RestLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t first_row = std::int64_t{blockIdx.x} * block_warps;
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
    if (warp == 0 && sum.writes()) sum.store(first_row + i);
  }
}

template <class T, int lanes, bool aligned>
void launch_rest(const RestLaunch& launch, Stream stream) {
  constexpr int width = RestSum<T, lanes, aligned, false>::width;
  const dim3 grid(cuda::num_blocks(launch.num_rows, block_warps),
                  cuda::num_blocks(launch.features, std::int64_t{lanes} * width));
  const auto kernel = launch.col_scale != nullptr ? sum_rest<T, lanes, aligned, true>
                                                  : sum_rest<T, lanes, aligned, false>;
  cuda::launch_overlapped(kernel, grid, block_warps * 32, stream, launch);
}

template <class T>
RestFunction function_of(std::int64_t features, bool aligned) {
  if (!aligned) return launch_rest<T, 32, false>;
  const std::int64_t units = features * static_cast<std::int64_t>(sizeof(T)) / 16;
  if (units <= 8) return launch_rest<T, 8, true>;
  return units <= 16 ? launch_rest<T, 16, true> : launch_rest<T, 32, true>;
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
