// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <type_traits>

#include "cuda/launch.cuh"
#include "cuda/mma.cuh"
#include "cuda/wgmma.cuh"
#include "ops/bits/cuda/integer_mma.cuh"
#include "ops/plan/calibrate/probes.hpp"

namespace tessera::ops::probes {
namespace {

constexpr unsigned block_threads = 256;
constexpr int blocks_per_processor = 4;
constexpr int turns = 2048;
constexpr int products = 8;  ///< of a turn, no two with the same sums

struct Bits {};

/// What is multiplied, and how many columns of A an instruction has.
template <class T>
constexpr int columns = std::is_same_v<T, float>           ? 8
                        : std::is_same_v<T, __nv_bfloat16> ? 16
                        : std::is_same_v<T, std::uint8_t>  ? 32
                                                           : 256;
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, float> || std::is_same_v<T, __nv_bfloat16>, float,
                               std::int32_t>;

template <class T>
__device__ void product(Sum<T> (&sums)[4], const std::uint32_t (&a)[4],
                        const std::uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, Bits>) {
    count_16x8(sums, a, b);
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {
    ops::multiply_16x8(sums, a, b);
  } else {
    cuda::multiply_16x8<T>(sums, a, b);
  }
}

/// Cycles and nanoseconds from here to its end, of the first thread of all.
class Watch {
 public:
  __device__ Watch() : cycles_(cycle()), time_(now()) {}
  __device__ void write(long long* to) const {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    to[0] = cycle() - cycles_;
    to[1] = now() - time_;
  }

 private:
  __device__ static long long cycle() {
    long long number = 0;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(number));
    return number;
  }
  __device__ static long long now() {
    long long time = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
  }
  long long cycles_, time_;
};

/// Numbers near 1 whose digits differ from thread to thread: zeros would take less power than
/// those of a graph, and so reach a higher clock.
__device__ std::uint32_t operand(int place) {
  const std::uint32_t digits = (threadIdx.x * 4u + static_cast<std::uint32_t>(place)) * 2654435769u;
  return 0x3f803f80u | (digits & 0x007f007fu);
}

template <class T>
__global__ void __launch_bounds__(block_threads) multiply_fragments(long long* clocks, float* out) {
  const Watch watch;
  const std::uint32_t a[4] = {operand(0), operand(1), operand(2), operand(3)};
  const std::uint32_t b[2] = {operand(4), operand(5)};
  Sum<T> sums[products][4] = {};
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (auto& each : sums) product<T>(each, a, b);
  }
  float total = 0;
  for (const auto& each : sums) {
    for (const Sum<T> sum : each) total += static_cast<float>(sum);
  }
  watch.write(clocks);
  out[blockIdx.x * block_threads + threadIdx.x] = total;
}

constexpr int wide = 128;  ///< columns of B of a product of four warps

__global__ void __launch_bounds__(block_threads) multiply_wide(long long* clocks, float* out) {
#ifdef TESSERA_HAS_WGMMA
  const Watch watch;
  constexpr int rows = 64;
  __shared__ alignas(1024) std::uint32_t b[wide * rows / 2];
  for (unsigned i = threadIdx.x; i < wide * rows / 2; i += block_threads) {
    b[i] = operand(static_cast<int>(i));
  }
  cuda::fence_shared_for_wgmma();
  __syncthreads();
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(b));
  const std::uint64_t first = cuda::wgmma_descriptor(address, rows * 128);
  std::uint32_t a[4] = {operand(0), operand(1), operand(2), operand(3)};
  float sums[wide / 2] = {};
  for (int turn = 0; turn < turns / products; ++turn) {
    cuda::keep_in_place(a);
    cuda::keep_in_place(sums);
    cuda::wgmma_fence();
#pragma unroll
    for (int i = 0; i < products; ++i) {
      cuda::wgmma<__nv_bfloat16>(sums, a, first + i % (rows / 16) * cuda::wgmma_step);
    }
    cuda::wgmma_commit();
    cuda::wgmma_wait();
    cuda::keep_in_place(sums);
  }
  float total = 0;
  for (const float sum : sums) total += sum;
  watch.write(clocks);
  out[blockIdx.x * block_threads + threadIdx.x] = total;
#endif
}

template <class T>
constexpr auto kernel_of = multiply_fragments<T>;

}  // namespace

double multiply(Matrix kind, void* results, int processors, Stream stream) {
  const auto blocks = static_cast<unsigned>(processors * blocks_per_processor);
  auto* const clocks = static_cast<long long*>(results);
  auto* const out = reinterpret_cast<float*>(clocks + 2);
  const auto run = [&](auto kernel, int rows_by_columns, int deep, int warps) {
    cuda::launch(kernel, dim3(blocks), block_threads, stream, clocks, out);
    return 2.0 * rows_by_columns * deep * blocks * (block_threads / (32.0 * warps));
  };
  constexpr int fragment = 16 * 8;
  switch (kind) {
    case Matrix::tf32: return turns * products * run(kernel_of<float>, fragment, columns<float>, 1);
    case Matrix::bf16:
      return turns * products * run(kernel_of<__nv_bfloat16>, fragment, columns<__nv_bfloat16>, 1);
    case Matrix::s8:
      return turns * products * run(kernel_of<std::uint8_t>, fragment, columns<std::uint8_t>, 1);
    case Matrix::b1: return turns * products * run(kernel_of<Bits>, fragment, columns<Bits>, 1);
    case Matrix::wgmma_bf16: break;
  }
  return turns * run(multiply_wide, 64 * wide, 16, 4);
}

}  // namespace tessera::ops::probes
