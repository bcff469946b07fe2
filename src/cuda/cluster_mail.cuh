// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/bulk_copy.cuh"
#include "cuda/cluster.cuh"

/// Numbers that blocks of a cluster send into each other's shared memory, and barriers there that
/// count what has come: a block waits for the bytes that are sent to it, and for nothing else that
/// the others have written.
namespace tessera::cuda {

/// One thread makes a barrier ready before its block arrives in the cluster.
__device__ inline void open_mailbox(std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  init_barrier(shared_address(barrier), 1);
  publish_barriers();
#endif
}

/// One thread says how many bytes are sent to this block until the barrier's next phase.
__device__ inline void expect_mail(std::uint64_t* barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
  expect_bytes(shared_address(barrier), bytes);
#endif
}

/// Sends two numbers to the place that `own` is in this block, and their bytes to the barrier. The
/// other block must have begun, and must not have ended.
__device__ inline void send_mail(double2* own, std::uint64_t* barrier, int block, double2 values) {
#if __CUDA_ARCH__ >= 900
  std::uint32_t there = 0, barrier_there = 0;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(shared_address(own)), "r"(block));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(barrier_there)
               : "r"(shared_address(barrier)), "r"(block));
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f64 [%0], {%1, %2}, [%3];" ::
          "r"(there),
      "d"(values.x), "d"(values.y), "r"(barrier_there)
      : "memory");
#else
  *own = values;
#endif
}

/// Returns when the phase of this parity is over: 0 for the first, 1 for the second, and so on.
__device__ inline void wait_for_mail(std::uint64_t* barrier, unsigned parity) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred over;\n"
      "AGAIN:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra AGAIN;\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
#endif
}

}  // namespace tessera::cuda
