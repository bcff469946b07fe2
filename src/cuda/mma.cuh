// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace tessera::cuda {

/// Adds the product of 16 rows and 8 columns: of 16 numbers each in 16 bits, of 8 in fp32, of which
/// the last 13 bits do not count (tf32). Every GPU from Ampere on has it.
///
/// With g = lane / 4 and q = lane % 4, a[0] and a[2] are of row g, a[1] and a[3] of row g + 8, both
/// b of column g; a[0], a[1] and b[0] meet each other, and so do a[2], a[3] and b[1]. The sums are
/// those of row g and columns 2q and 2q + 1, then those of row g + 8.
template <class T>
__device__ void multiply_16x8(float (&sums)[4], const std::uint32_t (&a)[4],
                              const std::uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else if constexpr (std::is_same_v<T, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    static_assert(std::is_same_v<T, float>);
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

/// The same with 32 columns of A of which every row has at most two in four, in sparse tensor
/// cores. a[i] are the two entries of a row and four columns: with g and q as above, a[0] and a[1]
/// of the columns from 4 q on of rows g and g + 8, a[2] and a[3] of those 16 further on. b[i] are
/// of the rows 2 q + 8 i and the next of B. `indices` are two bits for each entry, rising; lane 4 g
/// holds those of the rows g (low half) and g + 8 and the first 16 columns, lane 4 g + 1 of the
/// others.
template <class T>
__device__ void multiply_sparse_16x8(float (&sums)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[4], std::uint32_t indices) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    asm("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),
          "r"(indices));
  } else {
    static_assert(std::is_same_v<T, __half>);
    asm("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),
          "r"(indices));
  }
}

}  // namespace tessera::cuda
