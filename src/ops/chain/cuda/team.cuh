// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/cluster.cuh"
#include "ops/chain/cuda/steps.cuh"

/// How the blocks of a chain tell each other what they found: `publish`, `meet`, `published`. Every
/// warp publishes the same sums of its block, one for each lane. Sums of one meeting may be read
/// until the next but one, so that blocks meet once for each.
namespace tessera::ops {

/// The blocks of one cluster, by shared memory.
class ClusterTeam {
 public:
  static constexpr int most_blocks = most_cluster_chain_blocks;
  struct Memory {
    double sums[2][most_cluster_chain_blocks][chain_sums];
  };

  __device__ ClusterTeam(const cuda::Workspace&, bool exchanges, Memory& memory)
      : memory_(memory), has_begun_(!exchanges) {
    if (exchanges) cuda::arrive_in_cluster();
  }

  __device__ void publish(double own) {
    begin();
    side_ ^= 1;
    const int sum = static_cast<int>(threadIdx.x) % chain_sums;
#pragma unroll 1
    for (unsigned block = threadIdx.x / chain_sums; block < gridDim.x;
         block += chain_threads / chain_sums) {
      cuda::store_in_cluster(&memory_.sums[side_][blockIdx.x][sum], static_cast<int>(block), own);
    }
  }
  __device__ void meet() {
    begin();
    cuda::arrive_in_cluster();
    cuda::wait_for_cluster();
  }
  __device__ double published(int block, int sum) const { return memory_.sums[side_][block][sum]; }
  __device__ void end() {}

 private:
  /// Nothing may be written to a block that has not begun.
  __device__ void begin() {
    if (!has_begun_) cuda::wait_for_cluster();
    has_begun_ = true;
  }

  Memory& memory_;
  bool has_begun_;
  int side_ = 0;
};

/// Blocks that all run at once, by global memory: behind the sums that steps leave.
class GridTeam {
 public:
  static constexpr int most_blocks = most_grid_chain_blocks;
  struct Memory {};

  __device__ GridTeam(const cuda::Workspace& workspace, bool, Memory&)
      : counter_(workspace.counters),
        sums_(workspace.partials + most_left_sums * most_grid_chain_blocks) {}

  __device__ void publish(double own) {
    side_ ^= 1;
    if (threadIdx.x < chain_sums) __stcg(place(blockIdx.x, threadIdx.x), own);
  }
  __device__ void meet() {
    __syncthreads();
    meetings_ += 1;
    if (threadIdx.x == 0) {
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter_) : "memory");
      while (arrived() < meetings_ * gridDim.x) {
      }
    }
    __syncthreads();
  }
  __device__ double published(int block, int sum) const { return __ldcg(place(block, sum)); }
  /// The counter is 0 again when all blocks are past their last meeting.
  __device__ void end() {
    if (meetings_ == 0 || threadIdx.x != 0) return;
    if (atomicAdd(counter_, 1u) == (meetings_ + 1) * gridDim.x - 1) *counter_ = 0;
  }

 private:
  __device__ double* place(unsigned block, unsigned sum) const {
    return sums_ + (side_ * most_grid_chain_blocks + block) * chain_sums + sum;
  }
  __device__ unsigned arrived() const {
    unsigned count = 0;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter_) : "memory");
    return count;
  }

  unsigned* counter_;  ///< 0 between launches
  double* sums_;
  unsigned side_ = 0;
  unsigned meetings_ = 0;
};
static_assert((most_left_sums + 2 * chain_sums) * most_grid_chain_blocks <=
              cuda::workspace_partials);

}  // namespace tessera::ops
