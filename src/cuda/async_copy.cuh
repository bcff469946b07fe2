// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Copies from global to shared memory that no thread waits for until it says so.
namespace tessera::cuda {

__device__ inline std::uint32_t shared_address(const void* memory) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
}

/// 16 bytes, past the L1 cache.
__device__ inline void copy_16_async(std::uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

/// 8 bytes, on a boundary of as many.
__device__ inline void copy_8_async(std::uint32_t shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared), "l"(global) : "memory");
}

/// Writes 16 zero bytes in the order of the copies.
__device__ inline void zero_16_async(std::uint32_t shared, const void* any_global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, 0;" ::"r"(shared), "l"(any_global)
               : "memory");
}

/// Closes this thread's group of copies; it may be empty.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most `pending` of this thread's latest groups are under way.
template <int pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Asks for a line of 128 bytes to come into the L2 cache.
__device__ inline void expect_in_l2(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

}  // namespace tessera::cuda
