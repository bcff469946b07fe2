// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/cluster_mail.cuh"
#include "ops/chain/cuda/steps.cuh"

/// How the blocks of a chain tell each other what they found. `exchange` tells all blocks two sums
/// of each column; every thread has those of its column, the same in all that have it. `ask` and
/// `told` give those of another block: all that a thread wants is on its way before it waits for
/// the first. They may be asked for until the next exchange but one, so that blocks meet once for
/// each. `meet` is for what blocks left in global memory.
namespace tessera::ops {

/// The blocks of one cluster, by shared memory.
class ClusterTeam {
 public:
  static constexpr int most_blocks = most_cluster_chain_blocks;
  struct Memory {
    double2 sums[2][most_cluster_chain_blocks][chain_width];
    std::uint64_t barriers[2];
  };

  __device__ ClusterTeam(bool exchanges, Memory& memory) : memory_(memory), has_begun_(!exchanges) {
    if (!exchanges) return;
    if (threadIdx.x == 0) {
      cuda::open_mailbox(&memory.barriers[0]);
      cuda::open_mailbox(&memory.barriers[1]);
    }
    cuda::arrive_in_cluster_with_nothing();
  }
  /// When what was computed before may be read.
  __device__ void begin(const cuda::Workspace&, GridMeetings*) {}

  __device__ void exchange(double2 own) {
    reach_others();
    const unsigned side = exchanges_ % 2, parity = exchanges_ / 2 % 2;
    exchanges_ += 1;
    sums_ = memory_.sums[side];
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
  __device__ double2 ask(int block, int col) const { return sums_[block][col]; }
  __device__ double2 told(double2 asked, int, int) const { return asked; }

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

/// Blocks that all run at once, by global memory.
class GridTeam {
 public:
  static constexpr int most_blocks = most_grid_chain_blocks;
  struct Memory {};

  __device__ GridTeam(bool, Memory&) {}
  __device__ void begin(const cuda::Workspace& workspace, GridMeetings* meetings) {
    counter_ = workspace.counters;
    meetings_ = meetings;
    exchanges_ = __ldcg(&meetings->count);
  }

  __device__ void exchange(double2 own) {
    exchanges_ += 1;
    if (threadIdx.x < chain_width) {
      const ColumnSums sums = {bits_of(own.x), (bits_of(own.y) & ~mark_bits) | mark()};
      asm volatile(
          "{\n.reg .b128 both;\n"
          "mov.b128 both, {%1, %2};\n"
          "st.relaxed.gpu.global.b128 [%0], both;\n}" ::"l"(
              place(static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x))),
          "l"(sums.first), "l"(sums.second)
          : "memory");
    }
  }
  __device__ ColumnSums ask(int block, int col) const {
    ColumnSums sums;
    asm volatile(
        "{\n.reg .b128 both;\n"
        "ld.relaxed.gpu.global.b128 both, [%2];\n"
        "mov.b128 {%0, %1}, both;\n}"
        : "=l"(sums.first), "=l"(sums.second)
        : "l"(place(block, col))
        : "memory");
    return sums;
  }
  __device__ double2 told(ColumnSums asked, int block, int col) const {
    while ((asked.second & mark_bits) != mark()) asked = ask(block, col);
    return {__longlong_as_double(static_cast<long long>(asked.first)),
            __longlong_as_double(static_cast<long long>(asked.second & ~mark_bits))};
  }

  __device__ void meet() {
    __syncthreads();
    met_ += 1;
    if (threadIdx.x == 0) {
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter_) : "memory");
      while (arrived() < met_ * gridDim.x) {
      }
    }
    __syncthreads();
  }
  /// When all blocks are past their last meeting the counter is 0 again, and the exchanges of the
  /// next launch go on counting.
  __device__ void end() {
    if (threadIdx.x != 0) return;
    if (atomicAdd(counter_, 1u) != (met_ + 1) * gridDim.x - 1) return;
    *counter_ = 0;
    meetings_->count = exchanges_;
  }

 private:
  /// The digits that a sum gives up for them do not count in fp32.
  static constexpr std::uint64_t mark_bits = 0xffff;

  __device__ std::uint64_t mark() const { return exchanges_ & mark_bits; }
  static __device__ std::uint64_t bits_of(double value) {
    return static_cast<std::uint64_t>(__double_as_longlong(value));
  }
  __device__ ColumnSums* place(int block, int col) const {
    return &meetings_->sums[exchanges_ % 2][block][col];
  }
  __device__ unsigned arrived() const {
    unsigned count = 0;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter_) : "memory");
    return count;
  }

  unsigned* counter_ = nullptr;  ///< 0 between launches
  GridMeetings* meetings_ = nullptr;
  unsigned exchanges_ = 0;
  unsigned met_ = 0;
};
static_assert(most_left_sums * most_grid_chain_blocks <= cuda::workspace_partials);

}  // namespace tessera::ops
