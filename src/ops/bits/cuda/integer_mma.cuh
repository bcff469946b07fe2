// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/wgmma.cuh"

/// Matrix instructions on integers. The fragments of bits are those of bytes: 32 bytes of a row are
/// a step, 256 bits or 32 numbers.
namespace tessera::ops {

/// sums[16][8] += popcount(a[16][256] & b[8][256]). Lanes hold their parts as for bytes: with
/// g = lane / 4 and q = lane % 4, a[0] is word q of row g, a[1] of row g + 8, a[2] and a[3] word
/// 4 + q of the same rows; b[0] and b[1] are words q and 4 + q of column g.
__device__ inline void count_16x8(std::int32_t (&sums)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// sums[16][8] += a[16][32] b[8][32] of unsigned bytes, in the fragments of `count_16x8`.
__device__ inline void multiply_16x8(std::int32_t (&sums)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#define TESSERA_INTEGERS_8(d, i)                                                      \
  "+r"(d[i]), "+r"(d[(i) + 1]), "+r"(d[(i) + 2]), "+r"(d[(i) + 3]), "+r"(d[(i) + 4]), \
      "+r"(d[(i) + 5]), "+r"(d[(i) + 6]), "+r"(d[(i) + 7])
#define TESSERA_INTEGERS_16(d, i) TESSERA_INTEGERS_8(d, i), TESSERA_INTEGERS_8(d, (i) + 8)
#define TESSERA_INTEGERS_32(d, i) TESSERA_INTEGERS_16(d, i), TESSERA_INTEGERS_16(d, (i) + 16)
#define TESSERA_INTEGERS_64(d, i) TESSERA_INTEGERS_32(d, i), TESSERA_INTEGERS_32(d, (i) + 32)

#define TESSERA_COUNT(width, count, a_place, b_place, keep_place)              \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " keep_place                  \
               ", 0;\n"                                                        \
               "wgmma.mma_async.sync.aligned.m64n" width                       \
               "k256.s32.b1.b1.and.popc "                                      \
               "{" TESSERA_PLACES_##count "}, " a_place ", " b_place ", p;\n}" \
               : TESSERA_INTEGERS_##count(d, 0)                                \
               : "l"(a), "l"(b), "r"(keep))

/// d[64][2 * count] += popcount(a[64][256] & b[2 * count][256]), both described in shared memory.
/// Without `keep` what was in `d` is forgotten.
template <int count>
__device__ inline void wgmma_count(std::int32_t (&d)[count], std::uint64_t a, std::uint64_t b,
                                   int keep) {
  static_assert(count == 16 || count == 32 || count == 64);
  if constexpr (count == 16) TESSERA_COUNT("32", 16, "%16", "%17", "%18");
  if constexpr (count == 32) TESSERA_COUNT("64", 32, "%32", "%33", "%34");
  if constexpr (count == 64) TESSERA_COUNT("128", 64, "%64", "%65", "%66");
}
#undef TESSERA_COUNT

#define TESSERA_HELD(width, types, count, operands)                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" width types " {" TESSERA_PLACES_##count \
               "}, " operands ", 1;"                                                       \
               : TESSERA_INTEGERS_##count(d, 0)                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

/// The same with `a` in registers, in the fragments of `count_16x8`, 16 rows for each warp.
template <int count>
__device__ inline void wgmma_count(std::int32_t (&d)[count], const std::uint32_t (&a)[4],
                                   std::uint64_t b) {
  static_assert(count == 64);
  TESSERA_HELD("128", "k256.s32.b1.b1.and.popc", 64, "{%64, %65, %66, %67}, %68");
}

/// d[64][2 * count] += a[64][32] b[2 * count][32] of unsigned bytes, `a` in registers.
template <int count>
__device__ inline void wgmma_bytes(std::int32_t (&d)[count], const std::uint32_t (&a)[4],
                                   std::uint64_t b) {
  static_assert(count == 16 || count == 32 || count == 64);
  if constexpr (count == 16) TESSERA_HELD("32", "k32.s32.u8.u8", 16, "{%16, %17, %18, %19}, %20");
  if constexpr (count == 32) TESSERA_HELD("64", "k32.s32.u8.u8", 32, "{%32, %33, %34, %35}, %36");
  if constexpr (count == 64) TESSERA_HELD("128", "k32.s32.u8.u8", 64, "{%64, %65, %66, %67}, %68");
}
#undef TESSERA_HELD

/// Waits until at most `pending` of the latest committed groups are in flight.
template <int pending>
__device__ inline void wgmma_wait_for() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// Keeps the compiler from moving uses of the sums across this point.
template <int count>
__device__ inline void keep_in_place(std::int32_t (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(sums[i])::"memory");
}

}  // namespace tessera::ops
