// SPDX-License-Identifier: Apache-2.0
#include "ops/windows/rest_rows.hpp"

#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/offsets.cuh"
#include "cuda/overlap.cuh"
#include "cuda/vectors.cuh"

/// A warp per row: `lanes` of them load one row of X together, and several such groups work on
/// different edges. Blocks stay and take row after row; those with very many edges are shared by
/// the warps of a block, and those without edges have no sum. The order of a sum depends on the
/// graph alone.
namespace tessera::ops {
namespace {

constexpr int block_warps = 8;

struct EdgeRange {
  EdgeOffset begin = 0;
  int count = 0;
};

__device__ EdgeRange edges_of(const RestLaunch& launch, std::int64_t row) {
  if (row >= launch.num_rows) return {};
  const EdgeOffset begin = cuda::fixed_offset_at(launch.offsets, row);
  return {begin, static_cast<int>(cuda::fixed_offset_at(launch.offsets, row + 1) - begin)};
}

__device__ EdgeRange edges_of_lane(const EdgeRange& own, int lane) {
  return {__shfl_sync(~0u, own.begin, lane), __shfl_sync(~0u, own.count, lane)};
}

template <class T, int lanes, bool scaled>
class RestSum {
 public:
  using FeatureVector = cuda::Vector<T, 16>;
  static constexpr int width = FeatureVector::count;
  static constexpr int edges = 32 / lanes;
  /// Loads in flight: 16-bit rows are short.
  static constexpr int unroll = sizeof(T) == 2 ? 8 : 4;
  static constexpr int step = edges * unroll;

  __device__ explicit RestSum(const RestLaunch& launch)
      : launch_(launch),
        lane_(static_cast<int>(threadIdx.x) % 32),
        feature_((std::int64_t{blockIdx.y} * lanes + lane_ % lanes) * width),
        active_(feature_ < launch.features),
        // Lanes beyond the last feature load the first one instead and write nothing.
        source_(static_cast<const char*>(launch.x) + (active_ ? feature_ : 0) * sizeof(T)),
        row_bytes_(static_cast<std::uint32_t>(launch.x_stride * sizeof(T))) {}

  /// Asks for the first columns of some edges.
  __device__ void begin(const EdgeRange& range) {
    indices_ = launch_.indices + range.begin + lane_ / lanes;
    left_ = range.count;
    load_columns(columns_);
  }

  /// Adds these edges up, and asks for the first columns of those that come next. The columns of a
  /// step are on their way while the rows of the one before it are.
  __device__ void gather(const EdgeRange& next) {
#pragma unroll
    for (float& sum : sums_) sum = 0;
#pragma unroll 1
    for (bool last = false; !last;) {
      const int now = left_;
      last = now <= step;
      VertexId following[unroll];
      if (last) {
        indices_ = launch_.indices + next.begin + lane_ / lanes;
        left_ = next.count;
      } else {
        indices_ += step;
        left_ -= step;
      }
      load_columns(following);
      if (now >= step) {
        add<true>(now);
      } else if (now > 0) {
        add<false>(now);
      }
#pragma unroll
      for (int u = 0; u < unroll; ++u) columns_[u] = following[u];
    }
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
#pragma unroll
    for (int i = 0; i < width; i += 4) {
      __stcs(reinterpret_cast<float4*>(to + i),
             make_float4(sums_[i], sums_[i + 1], sums_[i + 2], sums_[i + 3]));
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

  __device__ void load_columns(VertexId (&columns)[unroll]) const {
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      columns[u] = live(u, left_) ? __ldcs(indices_ + u * edges) : 0;
    }
  }

  template <bool whole>
  __device__ void add(int left) {
    FeatureVector rows[unroll];
    float scales[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const auto offset = std::uint64_t{static_cast<std::uint32_t>(columns_[u])} * row_bytes_;
      const bool exists = whole || live(u, left);
      rows[u] = exists ? FeatureVector::load(source_ + offset) : FeatureVector::zero();
      if constexpr (scaled) scales[u] = exists ? __ldg(launch_.col_scale + columns_[u]) : 0.0f;
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
  const VertexId* indices_ = nullptr;  ///< of the step whose columns are loaded, for this lane
  int left_ = 0;                       ///< edges from that step on
  VertexId columns_[unroll];
  float sums_[width] = {};
};

/// A warp each, one after another: the lanes ask for 32 of them at once where their edges are, and
/// the warp sums those that have some.
template <class T, int lanes, bool scaled>
__device__ void sum_rows(const RestLaunch& launch) {
  const std::int64_t step = std::int64_t{gridDim.x} * block_warps;
  const unsigned lane = threadIdx.x % 32;
  RestSum<T, lanes, scaled> sum(launch);
#pragma unroll 1
  for (std::int64_t first = std::int64_t{blockIdx.x} * block_warps + threadIdx.x / 32;
       first < launch.num_rows; first += 32 * step) {
    const EdgeRange own = edges_of(launch, first + lane * step);
    unsigned left = __ballot_sync(~0u, own.count > 0);
    if (left != 0) sum.begin(edges_of_lane(own, __ffs(left) - 1));
#pragma unroll 1
    while (left != 0) {
      const std::int64_t row = first + (__ffs(left) - 1) * step;
      left &= left - 1;
      sum.gather(left != 0 ? edges_of_lane(own, __ffs(left) - 1) : EdgeRange{});
      sum.combine_groups();
      if (sum.writes()) sum.store(row);
    }
  }
}

/// The same where some rows have very many edges: those by all warps.
template <class T, int lanes, bool scaled>
__device__ void sum_long_rows_too(const RestLaunch& launch) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t step = std::int64_t{gridDim.x} * block_warps;
#pragma unroll 1
  for (std::int64_t first_row = std::int64_t{blockIdx.x} * block_warps; first_row < launch.num_rows;
       first_row += step) {
    RestSum<T, lanes, scaled> sum(launch);
    const EdgeRange own = edges_of(launch, first_row + warp);
    const bool is_long = own.count > longest_rest_row;
    if (own.count > 0 && !is_long) {
      sum.begin(own);
      sum.gather({});
      sum.combine_groups();
      if (sum.writes()) sum.store(first_row + warp);
    }
    if (!__syncthreads_or(is_long)) continue;
#pragma unroll 1
    for (int i = 0; i < block_warps; ++i) {
      const EdgeRange all = edges_of(launch, first_row + i);
      if (all.count <= longest_rest_row) continue;
      const int share = all.count / block_warps + 1;
      const int skipped = min(warp * share, all.count);
      sum.begin({all.begin + skipped, min(share, all.count - skipped)});
      sum.gather({});
      sum.combine_groups();
      sum.combine_warps();
      if (warp == 0 && sum.writes()) sum.store(first_row + i);
    }
  }
}

template <class T, int lanes, bool scaled>
__global__ __launch_bounds__(block_warps * 32,
                             scaled ? 3 : 4) void sum_rest(const RestLaunch launch) {
  cuda::begin_overlapped();
  if (launch.has_long_rows) {
    sum_long_rows_too<T, lanes, scaled>(launch);
  } else {
    sum_rows<T, lanes, scaled>(launch);
  }
}

template <class T, int lanes>
constexpr std::int64_t block_width = std::int64_t{lanes} * RestSum<T, lanes, false>::width;

template <class T, int lanes>
constexpr auto kernel_of(bool scaled) {
  return scaled ? sum_rest<T, lanes, true> : sum_rest<T, lanes, false>;
}

template <class T, int lanes>
void launch_rest(const RestLaunch& launch, Stream stream) {
  // Parts of the features come one after the other, of which the cache holds one.
  const dim3 grid(std::min(cuda::num_blocks(launch.num_rows, block_warps),
                           static_cast<unsigned>(std::max(1, launch.num_blocks))),
                  cuda::num_blocks(launch.features, block_width<T, lanes>));
  cuda::launch_overlapped(kernel_of<T, lanes>(launch.col_scale != nullptr), grid, block_warps * 32,
                          stream, launch);
}

template <class T, int lanes>
int resident_rest_blocks(bool scaled) {
  return cuda::resident_blocks(kernel_of<T, lanes>(scaled), block_warps * 32, 0);
}

template <class T, int lanes>
constexpr RestFunction make_rest_function() {
  return {launch_rest<T, lanes>, resident_rest_blocks<T, lanes>};
}

template <class T>
RestFunction function_of(std::int64_t features) {
  const std::int64_t units = (features * static_cast<std::int64_t>(sizeof(T)) + 15) / 16;
  if (units <= 8) return make_rest_function<T, 8>();
  return units <= 16 ? make_rest_function<T, 16>() : make_rest_function<T, 32>();
}

}  // namespace

RestFunction rest_function(Precision precision, std::int64_t features) {
  switch (precision) {
    case Precision::bf16: return function_of<__nv_bfloat16>(features);
    case Precision::fp16: return function_of<__half>(features);
    default: return function_of<float>(features);
  }
}

}  // namespace tessera::ops
