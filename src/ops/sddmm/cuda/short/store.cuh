// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/vectors.cuh"
#include "ops/sddmm/cuda/short/steps.cuh"

namespace tessera::ops {

/// A number as 16 bits hold it.
template <class T>
__device__ std::uint16_t half_bits(float value) {
  const T narrowed = cuda::narrow<T>(value);
  std::uint16_t raw;
  memcpy(&raw, &narrowed, sizeof(raw));
  return raw;
}

template <class T>
__device__ void put_if(std::uint32_t edge, std::uint32_t to, float value) {
  if constexpr (sizeof(T) == 2) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.shared.u16 [%1], %2; }" ::"r"(edge),
                 "r"(to), "h"(half_bits<T>(value))
                 : "memory");
  } else {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.shared.f32 [%1], %2; }" ::"r"(edge),
                 "r"(to), "f"(value)
                 : "memory");
  }
}

template <class T>
__device__ void store_if(std::uint32_t edge, char* to, float value) {
  if constexpr (sizeof(T) == 2) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.u16 [%1], %2; }" ::"r"(edge),
                 "l"(to), "h"(half_bits<T>(value))
                 : "memory");
  } else {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.f32 [%1], %2; }" ::"r"(edge),
                 "l"(to), "f"(value)
                 : "memory");
  }
}

/// Whether no product has to be computed again; those of 16-bit features never have.
template <class T, class Products>
__device__ bool are_right(const Products& products) {
  if constexpr (!std::is_same_v<T, float>) return true;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum = fmaf(products.of(i / 4, i % 4), 0.0f, sum);
  return sum == 0;
}

/// A lane's four columns of a row that are edges, if they are not finite, once more and as they
/// should be: infinity times what tf32 leaves out is not infinity.
template <class T>
__device__ __noinline__ void compute_again(const ShortDotsLaunch& launch, std::int32_t step,
                                           std::int64_t row, std::uint32_t bits, char* results,
                                           std::uint32_t result_stride) {
  const std::uint64_t head = std::uint64_t{blockIdx.y} * launch.row_bytes;
  const auto row_of = [&](const void* matrix, std::int64_t id, std::uint32_t stride) {
    return reinterpret_cast<const T*>(static_cast<const char*>(matrix) + head +
                                      static_cast<std::uint64_t>(id) * stride);
  };
  const T* const u = row_of(launch.u, row, launch.u_stride);
  for (int j = 0; j < 4; ++j) {
    if ((bits >> j & 1u) == 0) continue;
    T& result = *reinterpret_cast<T*>(results);
    results += result_stride;
    if (isfinite(cuda::widen(result))) continue;
    const std::int64_t at = std::int64_t{step} * tiles::step_columns + threadIdx.x % 4 * 4 + j;
    const T* const v = row_of(launch.v, launch.columns[at], launch.v_stride);
    float sum = 0;
#pragma unroll 1
    for (std::uint32_t k = 0; k < launch.row_bytes / sizeof(T); ++k) {
      sum = fmaf(cuda::widen(u[k]), cuda::widen(v[k]), sum);
    }
    result = cuda::narrow<T>(sum);
  }
}

/// From products to edges. A lane has four neighbouring columns of two rows: what is an edge is a
/// bit, and its place among the row's edges the number of bits before it. The results of a run wait
/// in shared memory, row by row: stored one by one, each is a message to L2 of its own.
template <class T>
class DotStore {
 public:
  /// A row's results, and some bytes that let neighbouring rows begin in other banks.
  static constexpr int pitch =
      most_run_steps * tiles::step_columns + 4 / static_cast<int>(sizeof(T));
  struct Results {
    T of[tiles::dot_step_rows][pitch];
  };

  __device__ DotStore(const ShortDotsLaunch& launch, Results& results)
      : launch_(launch), results_(results) {}

  /// Asks for the places of a run.
  __device__ void begin_run(std::int32_t run) {
    places_ = load_now<uint2>(launch_.places + std::int64_t{run} * 8 + lane() / 4);
  }

  template <class Step, class Products>
  __device__ void put(const Step& step, std::uint32_t mask, const Products& products) {
    const std::uint32_t shift = lane() % 4 * 4;
    const bool finite = are_right<T>(products);
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const std::uint32_t row = upper == 0 ? mask & 0xffffu : mask >> 16;
      const std::uint32_t own = row >> shift & 15u;
      const int before = counts_[upper] + __popc(row & ((1u << shift) - 1));
      T* const to = results_.of[lane() / 4 + 8 * upper] + before;
      std::uint32_t address = cuda::shared_address(to);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        put_if<T>(own & (1u << j), address, products.of(upper, j));
        address += (own >> j & 1u) * static_cast<std::uint32_t>(sizeof(T));
      }
      if (!finite) {
        const auto target = static_cast<std::int64_t>(window_row(launch_, step.first_row, upper));
        compute_again<T>(launch_, step.step, target, own, reinterpret_cast<char*>(to), sizeof(T));
      }
      counts_[upper] += __popc(row);
    }
  }

  /// Stores the results of the run, eight lanes per row.
  __device__ void flush() {
    __syncwarp();
    char* const edges = static_cast<char*>(launch_.edges) + blockIdx.y * sizeof(T);
    const auto longer = static_cast<unsigned>(max(counts_[0], counts_[1]));
    const auto longest = static_cast<int>(__reduce_max_sync(~0u, longer));
    int counts[4];
    char* to[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int source = (4 * k + lane() / 8) % 8 * 4;
      counts[k] = __shfl_sync(~0u, counts_[k / 2], source) - lane() % 8;
      const std::uint32_t first = __shfl_sync(~0u, k / 2 == 0 ? places_.x : places_.y, source);
      to[k] = edges +
              std::uint64_t{first + static_cast<std::uint32_t>(lane() % 8)} * launch_.edge_stride;
    }
#pragma unroll 1
    for (int done = 0; done < longest; done += 8) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (done < counts[k]) {
          *reinterpret_cast<T*>(to[k]) = results_.of[4 * k + lane() / 8][done + lane() % 8];
        }
        to[k] += std::uint64_t{launch_.edge_stride} * 8;
      }
    }
    __syncwarp();
    counts_[0] = counts_[1] = 0;
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  const ShortDotsLaunch& launch_;
  Results& results_;
  uint2 places_ = {};
  int counts_[2] = {};
};

/// Stores results one by one.
template <class T>
class DirectStore {
 public:
  struct Results {};

  __device__ DirectStore(const ShortDotsLaunch& launch, Results&) : launch_(launch) {
    edges_ = static_cast<char*>(launch.edges) + blockIdx.y * sizeof(T);
    asm volatile("" : "+l"(edges_));
  }

  __device__ void begin_run(std::int32_t run) {
    places_ = load_now<uint2>(launch_.places + std::int64_t{run} * 8 + threadIdx.x % 32 / 4);
  }

  template <class Step, class Products>
  __device__ void put(const Step& step, std::uint32_t mask, const Products& products) {
    const std::uint32_t shift = threadIdx.x % 4 * 4;
    const bool finite = are_right<T>(products);
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const std::uint32_t row = upper == 0 ? mask & 0xffffu : mask >> 16;
      const std::uint32_t own = row >> shift & 15u;
      std::uint32_t& place = upper == 0 ? places_.x : places_.y;
      const std::uint32_t first =
          place + static_cast<std::uint32_t>(__popc(row & ((1u << shift) - 1)));
      char* const to = edges_ + std::uint64_t{first} * launch_.edge_stride;
      char* at = to;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        store_if<T>(own & (1u << j), at, products.of(upper, j));
        at += (own >> j & 1u) * launch_.edge_stride;
      }
      if (!finite) {
        const auto target = static_cast<std::int64_t>(window_row(launch_, step.first_row, upper));
        compute_again<T>(launch_, step.step, target, own, to, launch_.edge_stride);
      }
      place += static_cast<std::uint32_t>(__popc(row));
    }
  }

  __device__ void flush() {}

 private:
  const ShortDotsLaunch& launch_;
  char* edges_;
  uint2 places_ = {};
};

}  // namespace tessera::ops
