// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/dtype.hpp"

#ifndef TESSERA_ISA
#error "this header is for *_simd.cpp files, which are compiled once per instruction set"
#endif

/// Short vectors by the compiler's own extension: the same source becomes NEON, AVX2 or AVX-512.
namespace tessera::ops::TESSERA_ISA {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

template <class T>
inline constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

typedef float FloatVector __attribute__((vector_size(vector_bytes)));
typedef double DoubleVector __attribute__((vector_size(vector_bytes)));

/// The vector that sums elements stored as T: fp32 for 16-bit storage.
template <class T>
struct Arithmetic {
  using Scalar = float;
  using Vector = FloatVector;
};
template <>
struct Arithmetic<double> {
  using Scalar = double;
  using Vector = DoubleVector;
};

static inline __attribute__((always_inline)) FloatVector load(const float* from) {
  FloatVector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
static inline __attribute__((always_inline)) DoubleVector load(const double* from) {
  DoubleVector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
static inline __attribute__((always_inline)) FloatVector load(const Bfloat16* from) {
  typedef std::uint16_t Half __attribute__((vector_size(vector_bytes / 2)));
  typedef std::uint32_t Whole __attribute__((vector_size(vector_bytes)));
  Half half;
  __builtin_memcpy(&half, from, sizeof half);
  const Whole whole = __builtin_convertvector(half, Whole) << 16;
  FloatVector value;
  __builtin_memcpy(&value, &whole, sizeof value);
  return value;
}

static inline __attribute__((always_inline)) void store(float* to, FloatVector value) {
  __builtin_memcpy(to, &value, sizeof value);
}
static inline __attribute__((always_inline)) void store(double* to, DoubleVector value) {
  __builtin_memcpy(to, &value, sizeof value);
}
/// Rounds to nearest, ties to even; not-a-number stays so.
static inline __attribute__((always_inline)) void store(Bfloat16* to, FloatVector value) {
  typedef std::uint16_t Half __attribute__((vector_size(vector_bytes / 2)));
  typedef std::uint32_t Whole __attribute__((vector_size(vector_bytes)));
  Whole bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  const Whole rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const Whole quiet = (bits >> 16) | 0x40u;
  const Whole is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  const Half half = __builtin_convertvector((is_nan & quiet) | (~is_nan & rounded), Half);
  __builtin_memcpy(to, &half, sizeof half);
}

}  // namespace tessera::ops::TESSERA_ISA
