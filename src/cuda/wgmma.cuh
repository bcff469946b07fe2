// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

/// Hopper's matrix instruction for a group of four warps: D[64][width] += A[64][16] B[16][width],
/// A in registers, B in shared memory, sums in fp32. Exists for sm_90a only: files that use it
/// compile its callers where `TESSERA_HAS_WGMMA` is defined.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TESSERA_HAS_WGMMA
#endif

namespace tessera::cuda {

/// Describes B in shared memory where a row holds 64 neighbouring 16-bit features of one k (128
/// bytes, 16-byte units exchanged by the row's number modulo 8), and 8 rows fill 1024 bytes.
/// `block_bytes` is the distance from 64 features to the next 64. The address must be a multiple of
/// 1024.
__device__ inline std::uint64_t wgmma_descriptor(std::uint32_t address, std::uint32_t block_bytes) {
  constexpr std::uint64_t swizzle_128_bytes = std::uint64_t{1} << 62;
  constexpr std::uint64_t eight_rows = 1024 >> 4;
  return swizzle_128_bytes | eight_rows << 32 | std::uint64_t{block_bytes >> 4} << 16 |
         std::uint64_t{address >> 4};
}

/// What a descriptor advances by for each step of 16 rows.
inline constexpr std::uint64_t wgmma_step = 16 * 128 >> 4;

/// Before the first product after registers of A or D were written.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits for all committed products.
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
/// Makes writes of ordinary instructions to shared memory visible to the matrix unit, where there
/// is one that reads it.
__device__ inline void fence_shared_for_wgmma() {
#ifdef TESSERA_HAS_WGMMA
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// Keeps the compiler from moving uses of the operands across this point.
template <int count>
__device__ inline void keep_in_place(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
template <int count>
__device__ inline void keep_in_place(std::uint32_t (&fragment)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(fragment[i])::"memory");
}

// The places of an instruction's operands and its sums, eight at a time.
#define TESSERA_SUMS_8(d, i)                                                          \
  "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), \
      "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define TESSERA_SUMS_16(d, i) TESSERA_SUMS_8(d, i), TESSERA_SUMS_8(d, (i) + 8)
#define TESSERA_SUMS_32(d, i) TESSERA_SUMS_16(d, i), TESSERA_SUMS_16(d, (i) + 16)
#define TESSERA_SUMS_64(d, i) TESSERA_SUMS_32(d, i), TESSERA_SUMS_32(d, (i) + 32)
#define TESSERA_PLACES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define TESSERA_PLACES_32 \
  TESSERA_PLACES_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TESSERA_PLACES_64                                                            \
  TESSERA_PLACES_32                                                                  \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/// `operands` are the places of A and B, which come after the sums.
#define TESSERA_WGMMA(width, element, count, operands)                                  \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" width "k16.f32." element "." element \
               " {" TESSERA_PLACES_##count "}, " operands ", 1, 1, 1, 1;"               \
               : TESSERA_SUMS_##count(d, 0)                                             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

template <class T, int count>
__device__ inline void wgmma(float (&d)[count], const std::uint32_t (&a)[4], std::uint64_t b) {
  constexpr bool is_bf16 = std::is_same_v<T, __nv_bfloat16>;
  static_assert(is_bf16 || std::is_same_v<T, __half>);
  static_assert(count == 16 || count == 32 || count == 64);
  if constexpr (count == 16) {
    if constexpr (is_bf16) TESSERA_WGMMA("32", "bf16", 16, "{%16, %17, %18, %19}, %20");
    if constexpr (!is_bf16) TESSERA_WGMMA("32", "f16", 16, "{%16, %17, %18, %19}, %20");
  } else if constexpr (count == 32) {
    if constexpr (is_bf16) TESSERA_WGMMA("64", "bf16", 32, "{%32, %33, %34, %35}, %36");
    if constexpr (!is_bf16) TESSERA_WGMMA("64", "f16", 32, "{%32, %33, %34, %35}, %36");
  } else {
    if constexpr (is_bf16) TESSERA_WGMMA("128", "bf16", 64, "{%64, %65, %66, %67}, %68");
    if constexpr (!is_bf16) TESSERA_WGMMA("128", "f16", 64, "{%64, %65, %66, %67}, %68");
  }
}
#undef TESSERA_WGMMA

#define TESSERA_WGMMA_SPARSE(width, element, count, operands)                              \
  asm volatile("wgmma.mma_async.sp.sync.aligned.m64n" width "k32.f32." element "." element \
               " {" TESSERA_PLACES_##count "}, " operands ", 1, 1, 1, 1;"                  \
               : TESSERA_SUMS_##count(d, 0)                                                \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(indices), "n"(selector))

/// The same for sparse tensor cores: D[64][width] += A[64][32] B[32][width], where A has at most
/// two entries in every four columns of a row, stored side by side, and `indices` says which
/// columns they are of. The two lanes 2 * `selector` and the next of every four have the indices
/// (tiles/quad_fragment.hpp).
template <class T, int selector, int count>
__device__ inline void wgmma_sparse(float (&d)[count], const std::uint32_t (&a)[4], std::uint64_t b,
                                    std::uint32_t indices) {
  constexpr bool is_bf16 = std::is_same_v<T, __nv_bfloat16>;
  static_assert(is_bf16 || std::is_same_v<T, __half>);
  static_assert(selector == 0 || selector == 1);
  static_assert(count == 16 || count == 32 || count == 64);
  if constexpr (count == 16) {
    if constexpr (is_bf16)
      TESSERA_WGMMA_SPARSE("32", "bf16", 16, "{%16, %17, %18, %19}, %20, %21, %22");
    if constexpr (!is_bf16)
      TESSERA_WGMMA_SPARSE("32", "f16", 16, "{%16, %17, %18, %19}, %20, %21, %22");
  } else if constexpr (count == 32) {
    if constexpr (is_bf16)
      TESSERA_WGMMA_SPARSE("64", "bf16", 32, "{%32, %33, %34, %35}, %36, %37, %38");
    if constexpr (!is_bf16)
      TESSERA_WGMMA_SPARSE("64", "f16", 32, "{%32, %33, %34, %35}, %36, %37, %38");
  } else {
    if constexpr (is_bf16)
      TESSERA_WGMMA_SPARSE("128", "bf16", 64, "{%64, %65, %66, %67}, %68, %69, %70");
    if constexpr (!is_bf16)
      TESSERA_WGMMA_SPARSE("128", "f16", 64, "{%64, %65, %66, %67}, %68, %69, %70");
  }
}
#undef TESSERA_WGMMA_SPARSE

}  // namespace tessera::cuda
