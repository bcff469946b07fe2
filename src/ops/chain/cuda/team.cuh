// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/cluster_mail.cuh"
#include "ops/chain/cuda/steps.cuh"

/// How the blocks of a chain tell each other what they found. `exchange` tells all blocks two sums
/// of each column; every thread has those of its column, the same in all that have it. `told` gives
/// those of another block, until the next exchange but one, so that blocks meet once for each.
/// `meet` is for what blocks left in global memory.
namespace tessera::ops {

/// The blocks of one cluster, by shared memory.
class ClusterTeam {
 public:
  static constexpr int most_blocks = most_cluster_chain_blocks;
  struct Memory {
    double2 sums[2][most_cluster_chain_blocks][chain_width];
    std::uint64_t barriers[2];
  };

  __device__ ClusterTeam(const cuda::Workspace&, bool exchanges, Memory& memory)
      : memory_(memory), has_begun_(!exchanges) {
    if (!exchanges) return;
    if (threadIdx.x == 0) {
      cuda::open_mailbox(&memory.barriers[0]);
      cuda::open_mailbox(&memory.barriers[1]);
    }
    cuda::arrive_in_cluster_with_nothing();
  }

  __device__ void exchange(double2 own) {
    reach_others();
    const unsigned side = exchanges_ % 2, parity = exchanges_ / 2 % 2;
    exchanges_ += 1;
    sums_ = memory_.sums[side];
    if (gridDim.x == 1) {  // no other block
      if (threadIdx.x < chain_width) sums_[0][threadIdx.x] = own;
      __syncthreads();
      return;
    }
    std::uint64_t* const barrier = &memory_.barriers[side];
    if (threadIdx.x == 0) {
      cuda::expect_mail(barrier, static_cast<int>(gridDim.x * sizeof(memory_.sums[0][0])));
    }
    const unsigned to = threadIdx.x / chain_width;
    if (to < gridDim.x) {
      cuda::send_mail(&sums_[blockIdx.x][threadIdx.x % chain_width], barrier, static_cast<int>(to),
                      own);
    }
    cuda::wait_for_mail(barrier, parity);
  }
  __device__ double2 told(int block, int col) const { return sums_[block][col]; }

  __device__ void meet() {
    reach_others();
    cuda::arrive_in_cluster();
    cuda::wait_for_cluster();
  }
  __device__ void end() {}

 private:
  /// Nothing may be sent to a block that has not begun.
  __device__ void reach_others() {
    if (!has_begun_) cuda::wait_for_cluster();
    has_begun_ = true;
  }

  Memory& memory_;
  double2 (*sums_)[chain_width] = nullptr;
  bool has_begun_;
  unsigned exchanges_ = 0;
};
static_assert(most_cluster_chain_blocks * chain_width == chain_threads);

/// Blocks that all run at once, by global memory: behind the sums that steps leave.
class GridTeam {
 public:
  static constexpr int most_blocks = most_grid_chain_blocks;
  struct Memory {};

  __device__ GridTeam(const cuda::Workspace& workspace, bool, Memory&)
      : counter_(workspace.counters),
        sums_(reinterpret_cast<double2*>(workspace.partials +
                                         most_left_sums * most_grid_chain_blocks)) {}

  __device__ void exchange(double2 own) {
    side_ ^= 1;
    if (threadIdx.x < chain_width) {
      __stcg(place(static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x)), own);
    }
    meet();
  }
  __device__ double2 told(int block, int col) const { return __ldcg(place(block, col)); }

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
  /// The counter is 0 again when all blocks are past their last meeting.
  __device__ void end() {
    if (meetings_ == 0 || threadIdx.x != 0) return;
    if (atomicAdd(counter_, 1u) == (meetings_ + 1) * gridDim.x - 1) *counter_ = 0;
  }

 private:
  __device__ double2* place(int block, int col) const {
    return sums_ + (side_ * most_grid_chain_blocks + block) * chain_width + col;
  }
  __device__ unsigned arrived() const {
    unsigned count = 0;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter_) : "memory");
    return count;
  }

  unsigned* counter_;  ///< 0 between launches
  double2* sums_;
  int side_ = 0;
  unsigned meetings_ = 0;
};
static_assert((most_left_sums + 2 * chain_sums) * most_grid_chain_blocks <=
              cuda::workspace_partials);

}  // namespace tessera::ops
