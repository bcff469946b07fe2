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

namespace tessera::ops::TESSERA_ISA {
namespace {

inline bool has_dot_product() {
  constexpr unsigned long flag = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & flag) != 0;
}

constexpr int dot_shift = 0;
constexpr int dot_bytes = 16;  ///< of a vector
using DotBytes = uint8x16_t;
using DotSums = uint32x4_t;

TESSERA_DOT_PRODUCT inline DotSums no_dots() { return vdupq_n_u32(0); }
TESSERA_DOT_PRODUCT inline DotBytes load_bytes(const std::uint8_t* from) { return vld1q_u8(from); }
TESSERA_DOT_PRODUCT inline DotBytes all_of(std::uint32_t four) {
  return vreinterpretq_u8_u32(vdupq_n_u32(four));
}
TESSERA_DOT_PRODUCT inline DotBytes shifted(DotBytes bytes) { return bytes; }
TESSERA_DOT_PRODUCT inline DotSums add_dots(DotSums sums, DotBytes a, DotBytes shifted_b) {
  return vdotq_u32(sums, a, shifted_b);
}
TESSERA_DOT_PRODUCT inline std::int64_t total(DotSums sums) { return vaddvq_u32(sums); }
TESSERA_DOT_PRODUCT inline void store_dots(std::int32_t* to, DotSums sums, std::int32_t) {
  vst1q_s32(to, vreinterpretq_s32_u32(sums));
}

}  // namespace
}  // namespace tessera::ops::TESSERA_ISA

#elif defined(__AVX512F__) || defined(__AVX2__)

#include <cpuid.h>
#include <immintrin.h>

namespace tessera::ops::TESSERA_ISA {
namespace {

constexpr int dot_shift = 128;

#if defined(__AVX512F__)
#define TESSERA_DOT_PRODUCT __attribute__((target("avx512vnni")))

inline bool has_dot_product() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 11 & 1u) != 0;
}

constexpr int dot_bytes = 64;
using DotBytes = __m512i;
using DotSums = __m512i;

TESSERA_DOT_PRODUCT inline DotSums no_dots() { return _mm512_setzero_si512(); }
TESSERA_DOT_PRODUCT inline DotBytes load_bytes(const std::uint8_t* from) {
  return _mm512_loadu_si512(from);
}
TESSERA_DOT_PRODUCT inline DotBytes all_of(std::uint32_t four) {
  return _mm512_set1_epi32(static_cast<int>(four));
}
TESSERA_DOT_PRODUCT inline DotBytes shifted(DotBytes bytes) {
  return _mm512_xor_si512(bytes, all_of(0x80808080u));
}
TESSERA_DOT_PRODUCT inline DotSums add_dots(DotSums sums, DotBytes a, DotBytes shifted_b) {
  return _mm512_dpbusd_epi32(sums, a, shifted_b);
}
TESSERA_DOT_PRODUCT inline void store_dots(std::int32_t* to, DotSums sums, std::int32_t more) {
  _mm512_storeu_si512(to, _mm512_add_epi32(sums, _mm512_set1_epi32(more)));
}
#else
#define TESSERA_DOT_PRODUCT __attribute__((target("avxvnni")))

inline bool has_dot_product() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1u) != 0;
}

constexpr int dot_bytes = 32;
using DotBytes = __m256i;
using DotSums = __m256i;

TESSERA_DOT_PRODUCT inline DotSums no_dots() { return _mm256_setzero_si256(); }
TESSERA_DOT_PRODUCT inline DotBytes load_bytes(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
TESSERA_DOT_PRODUCT inline DotBytes all_of(std::uint32_t four) {
  return _mm256_set1_epi32(static_cast<int>(four));
}
TESSERA_DOT_PRODUCT inline DotBytes shifted(DotBytes bytes) {
  return _mm256_xor_si256(bytes, all_of(0x80808080u));
}
TESSERA_DOT_PRODUCT inline DotSums add_dots(DotSums sums, DotBytes a, DotBytes shifted_b) {
  return _mm256_dpbusd_avx_epi32(sums, a, shifted_b);
}
TESSERA_DOT_PRODUCT inline void store_dots(std::int32_t* to, DotSums sums, std::int32_t more) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_add_epi32(sums, _mm256_set1_epi32(more)));
}
#endif

/// Each of the sums is below 2^31 in size, all of them together may not be.
TESSERA_DOT_PRODUCT inline std::int64_t total(DotSums sums) {
  std::int32_t numbers[dot_bytes / 4];
  store_dots(numbers, sums, 0);
  std::int64_t all = 0;
  for (const std::int32_t number : numbers) all += number;
  return all;
}

}  // namespace
}  // namespace tessera::ops::TESSERA_ISA
#endif
