// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/async_copy.cuh"

/// Copies of bytes and of whole boxes from global to shared memory, which Hopper's copy engine
/// makes by itself, and the barriers in shared memory that tell of them. One thread asks. Addresses
/// are those of shared memory. Compile callers where `TESSERA_HAS_WGMMA` is defined
/// (cuda/wgmma.cuh).
namespace tessera::cuda {

/// A barrier whose phase ends after so many arrivals, and when all announced bytes have come.
__device__ inline void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Makes new barriers known to the copy engine.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Arrives, and announces that many bytes.
__device__ inline void expect_bytes(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ inline void arrive_at(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
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

/// So many bytes, a multiple of 16, between boundaries of as many.
__device__ inline void copy_bytes(std::uint32_t to, const void* from, int bytes,
                                  std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

/// Has a map brought that a copy needs soon.
__device__ inline void fetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// The box of `map` from these numbers on.
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap& map, int x, int y, int z,
                                std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

}  // namespace tessera::cuda
