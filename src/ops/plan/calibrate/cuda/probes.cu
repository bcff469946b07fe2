// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/calibrate/probes.hpp"

#include <cuda_runtime.h>

#include <cstddef>

#include "cuda/launch.cuh"

namespace tessera::ops::probes {
namespace {

constexpr unsigned block_threads = 256;
constexpr int blocks_per_processor = 8;
constexpr int turns = 64;
constexpr int in_flight = 8;  ///< loads of a thread at the same time
constexpr int chain_length = 4096;

/// Numbers that look drawn at random, others for every thread; the first bits are the best.
class Drawn {
 public:
  __device__ explicit Drawn(std::uint32_t thread) : state_(thread * 2654435769u) {
    state_ = (state_ ^ state_ >> 16) * 0x85ebca6bu;
    state_ = (state_ ^ state_ >> 13) * 0xc2b2ae35u;
  }
  __device__ std::uint32_t below(std::uint32_t end) {
    state_ = state_ * 1664525u + 1013904223u;
    return __umulhi(state_, end);
  }

 private:
  std::uint32_t state_;
};

__device__ std::uint32_t thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }

/// Teams of `lanes` take a row each, 16 bytes of each of its parts a lane.
template <int parts>
__global__ void __launch_bounds__(block_threads)
    gather_rows(const uint4* rows, std::uint32_t num_rows, unsigned lanes, uint4* sums) {
  static_assert(in_flight % parts == 0);
  const unsigned thread = thread_number();
  Drawn drawn(thread / lanes);
  uint4 sum = {};
  for (int turn = 0; turn < turns; ++turn) {
    uint4 loaded[in_flight];
#pragma unroll
    for (int i = 0; i < in_flight; i += parts) {
      const uint4* const row = rows + std::size_t{drawn.below(num_rows)} * (parts * lanes);
#pragma unroll
      for (unsigned part = 0; part < parts; ++part) {
        loaded[i + part] = __ldg(row + part * lanes + thread % lanes);
      }
    }
#pragma unroll
    for (const uint4& each : loaded) {
      sum.x ^= each.x;
      sum.y ^= each.y;
      sum.z ^= each.z;
      sum.w ^= each.w;
    }
  }
  sums[thread] = sum;
}

__global__ void load_one_by_one(const std::uint32_t* zeros, std::uint32_t count, int length,
                                std::uint32_t* result) {
  std::uint32_t state = 1;
  for (int i = 0; i < length; ++i) {
    state = state * 1664525u + 1013904223u;
    state += __ldcg(zeros + __umulhi(state, count));
  }
  *result = state;
}

__global__ void __launch_bounds__(block_threads) add_somewhere(float* sums, std::uint32_t count) {
  Drawn drawn(thread_number());
  for (int turn = 0; turn < turns; ++turn) atomicAdd(sums + drawn.below(count), 1.0f);
}

__global__ void do_nothing() {}

unsigned all_blocks(int processors) {
  return static_cast<unsigned>(processors * blocks_per_processor);
}

}  // namespace

std::int64_t bytes_of_results(int processors) {
  return std::int64_t{all_blocks(processors)} * block_threads *
         static_cast<std::int64_t>(sizeof(uint4));
}

double gather(const Room& room, int row_bytes, int processors, Stream stream) {
  constexpr unsigned unit = sizeof(uint4);
  constexpr unsigned most_lanes = 32;
  const auto units = static_cast<unsigned>(row_bytes) / unit;
  const auto num_rows = static_cast<std::uint32_t>(room.bytes / row_bytes);
  const unsigned blocks = all_blocks(processors);
  const auto start = [&](auto kernel, unsigned lanes) {
    cuda::launch(kernel, dim3(blocks), block_threads, stream,
                 static_cast<const uint4*>(room.memory), num_rows, lanes,
                 static_cast<uint4*>(room.results));
  };
  if (units <= most_lanes) {
    start(gather_rows<1>, units);
  } else {
    start(gather_rows<2>, units / 2);
  }
  return static_cast<double>(blocks) * block_threads * turns * in_flight * unit;
}

double wait_for_loads(const Room& room, Stream stream) {
  cuda::launch(load_one_by_one, dim3(1), 1, stream, static_cast<const std::uint32_t*>(room.memory),
               static_cast<std::uint32_t>(room.bytes / 4), chain_length,
               static_cast<std::uint32_t*>(room.results));
  return chain_length;
}

double add_atomically(const Room& room, int processors, Stream stream) {
  const unsigned blocks = all_blocks(processors);
  cuda::launch(add_somewhere, dim3(blocks), block_threads, stream, static_cast<float*>(room.memory),
               static_cast<std::uint32_t>(room.bytes / 4));
  return static_cast<double>(blocks) * block_threads * turns;
}

void start_nothing(Stream stream) { cuda::launch(do_nothing, dim3(1), 32, stream); }

}  // namespace tessera::ops::probes
