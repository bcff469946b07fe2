// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/async_copy.cuh"

/// Copies of whole boxes from global to shared memory, which Hopper's copy engine makes by itself,
/// and the barriers in shared memory that tell of them. One thread asks; a box may go to several
/// blocks of a cluster at once. Addresses are those of shared memory, the same in every block.
/// Compile callers where `TESSERA_HAS_WGMMA` is defined (cuda/wgmma.cuh).
namespace tessera::cuda {

/// A barrier whose phase ends after so many arrivals, and when all announced bytes have come.
__device__ inline void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Makes new barriers known to the copy engine and to the other blocks of the cluster.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Announces to the cluster that this block's barriers are published. Nothing else that was written
/// becomes known, for which a thread would wait (`arrive_in_cluster`).
__device__ inline void arrive_with_barriers() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

/// Arrives, and announces that many bytes.
__device__ inline void expect_bytes(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Arrives at the barrier of a block of the cluster.
__device__ inline void arrive_at(std::uint32_t barrier, int block) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(block)
      : "memory");
}

/// Returns when the phase of this parity is over: 0 for the first, 1 for the second, and so on.
__device__ inline void wait_for_barrier(std::uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred over;\n"
      "AGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@over bra DONE;\n"
      "bra AGAIN;\n"
      "DONE:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// Has a map brought that a copy needs soon.
__device__ inline void fetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// The box of `map` from these numbers on, to one place in all blocks whose bits are set in
/// `blocks`. Each of them is told at its own barrier.
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap& map, int x, int y, int z,
                                std::uint32_t barrier, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(blocks)
      : "memory");
}

/// The same to this block alone.
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap& map, int x, int y, int z,
                                std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

}  // namespace tessera::cuda
