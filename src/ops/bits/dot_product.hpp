// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Dot products of four bytes at once, which some CPUs have: those of Arm with FEAT_DotProd, those
/// of x86 with AVX-VNNI or AVX512-VNNI. Functions that use them are compiled for these CPUs alone,
/// and `has_dot_product` says whether this CPU is one. Everything is static: see ops/simd/isa.hpp.
///
/// Instructions of x86 multiply unsigned bytes by signed ones. There the right factor is `shifted`
/// down by `dot_shift`, and the sum of the left factors times that is to be added again.
#if defined(__aarch64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define TESSERA_DOT_PRODUCT __attribute__((target("arch=armv8.2-a+dotprod")))
#include <arm_neon.h>
#include <sys/auxv.h>
#elif defined(__AVX512F__)
#define TESSERA_DOT_PRODUCT __attribute__((target("avx512vnni")))
#elif defined(__AVX2__)
#define TESSERA_DOT_PRODUCT __attribute__((target("avxvnni")))
#endif

#if defined(__AVX512F__) || defined(__AVX2__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#ifdef TESSERA_DOT_PRODUCT
namespace tessera::ops::TESSERA_ISA {
namespace {

#if defined(__aarch64__)
constexpr int dot_shift = 0;
constexpr int dot_bytes = 16;  ///< of a vector
#elif defined(__AVX512F__)
constexpr int dot_shift = 128;
constexpr int dot_bytes = 64;
#else
constexpr int dot_shift = 128;
constexpr int dot_bytes = 32;
#endif

/// Four bytes in each lane, or the sum of four products.
typedef std::int32_t DotVector __attribute__((vector_size(dot_bytes)));

/// The one instruction that each has.
TESSERA_DOT_PRODUCT inline DotVector add_dots(DotVector sums, DotVector a, DotVector shifted_b) {
#if defined(__aarch64__)
  return (DotVector)vdotq_u32((uint32x4_t)sums, (uint8x16_t)a, (uint8x16_t)shifted_b);
#elif defined(__AVX512F__)
  return (DotVector)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)a, (__m512i)shifted_b);
#else
  return (DotVector)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)a, (__m256i)shifted_b);
#endif
}

inline bool has_dot_product() {
#if defined(__aarch64__)
  constexpr unsigned long flag = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & flag) != 0;
#else
  unsigned a = 0, b = 0, c = 0, d = 0;
#if defined(__AVX512F__)
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 11 & 1u) != 0;
#else
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1u) != 0;
#endif
#endif
}

TESSERA_DOT_PRODUCT inline DotVector load_bytes(const std::uint8_t* from) {
  DotVector bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return bytes;
}
TESSERA_DOT_PRODUCT inline DotVector all_of(std::uint32_t four) {
  return DotVector{} + static_cast<std::int32_t>(four);
}
TESSERA_DOT_PRODUCT inline DotVector shifted(DotVector bytes) {
  return dot_shift == 0 ? bytes : bytes ^ all_of(0x80808080u);
}
TESSERA_DOT_PRODUCT inline void store_dots(std::int32_t* to, DotVector sums, std::int32_t more) {
  sums += more;
  __builtin_memcpy(to, &sums, sizeof sums);
}

/// Each of the sums is below 2^31 in size; where bytes are shifted, all of them together may not
/// be.
TESSERA_DOT_PRODUCT inline std::int64_t total(DotVector sums) {
#if defined(__aarch64__)
  return vaddvq_u32((uint32x4_t)sums);
#else
  std::int64_t all = 0;
  for (int i = 0; i < dot_bytes / 4; ++i) all += sums[i];
  return all;
#endif
}

}  // namespace
}  // namespace tessera::ops::TESSERA_ISA
#endif
