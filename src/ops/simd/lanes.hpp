// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/core/dtype.hpp"

#include "ops/simd/isa.hpp"

#ifndef TESSERA_ISA
#error "this header is for *_simd.cpp files, which are compiled once per instruction set"
#endif

/// Short vectors by the compiler's own extension: the same source becomes NEON, AVX2 or AVX-512.
/// They have a chosen number of lanes, 1 included: kernels take the widest that fits a row, so a
/// narrow or odd width needs no masks and never reads past its end.
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

/// Of lambdas and members, and of functions.
#define TESSERA_INLINED __attribute__((always_inline))
#define TESSERA_INLINE static inline TESSERA_INLINED

template <class Scalar, int N>
struct LanesOf {
  typedef Scalar type __attribute__((vector_size(N * sizeof(Scalar))));
};
template <class Scalar>
struct LanesOf<Scalar, 1> {
  using type = Scalar;
};

template <class Scalar, int N>
using Lanes = typename LanesOf<Scalar, N>::type;

/// Integers as wide as a sum, so that a comparison's mask selects among them too.
template <class Scalar>
using IndexOf = std::conditional_t<sizeof(Scalar) == 8, std::int64_t, std::int32_t>;

/// Vector registers that accumulators may take, leaving some for loads and weights.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int accumulator_registers = 16;
#else
inline constexpr int accumulator_registers = 8;
#endif

/// Calls body(0), body(1), … with compile-time numbers: arrays indexed by them stay in registers.
template <int Count, class Body>
TESSERA_INLINE void unrolled(Body&& body) {
  [&]<int... I>(std::integer_sequence<int, I...>) TESSERA_INLINED {
    (body(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, Count>{});
}

/// N elements at `from`, widened to what they are summed in.
template <int N, class T>
TESSERA_INLINE Lanes<SumOf<T>, N> load_lanes(const T* from) {
  Lanes<SumOf<T>, N> value;
  if constexpr (!std::is_same_v<T, Bfloat16>) {
    __builtin_memcpy(&value, from, sizeof value);
  } else if constexpr (N == 1) {
    const std::uint32_t bits = static_cast<std::uint32_t>(from->bits) << 16;
    __builtin_memcpy(&value, &bits, sizeof value);
  } else {
    Lanes<std::uint16_t, N> half;
    __builtin_memcpy(&half, from, sizeof half);
    const auto whole = __builtin_convertvector(half, Lanes<std::uint32_t, N>) << 16;
    __builtin_memcpy(&value, &whole, sizeof value);
  }
  return value;
}

/// Stores N elements; bf16 rounds to nearest, ties to even, and not-a-number stays so.
template <int N, class T>
TESSERA_INLINE void store_lanes(T* to, Lanes<SumOf<T>, N> value) {
  if constexpr (!std::is_same_v<T, Bfloat16>) {
    __builtin_memcpy(to, &value, sizeof value);
  } else {
    Lanes<std::uint32_t, N> bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    const Lanes<std::uint32_t, N> rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    const Lanes<std::uint32_t, N> quiet = (bits >> 16) | 0x40u;
    const auto is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
    const Lanes<std::uint32_t, N> chosen = is_nan ? quiet : rounded;
    if constexpr (N == 1) {
      to->bits = static_cast<std::uint16_t>(chosen);
    } else {
      const auto half = __builtin_convertvector(chosen, Lanes<std::uint16_t, N>);
      __builtin_memcpy(to, &half, sizeof half);
    }
  }
}

/// The lower (upper) half of a vector's lanes.
template <int N, class Vector>
TESSERA_INLINE auto lower_half(Vector value) {
  return [&]<int... I>(std::integer_sequence<int, I...>) TESSERA_INLINED {
    return __builtin_shufflevector(value, value, I...);
  }
  (std::make_integer_sequence<int, N / 2>{});
}
template <int N, class Vector>
TESSERA_INLINE auto upper_half(Vector value) {
  return [&]<int... I>(std::integer_sequence<int, I...>) TESSERA_INLINED {
    return __builtin_shufflevector(value, value, (I + N / 2)...);
  }
  (std::make_integer_sequence<int, N / 2>{});
}

template <class Scalar, int N>
TESSERA_INLINE Scalar horizontal_sum(Lanes<Scalar, N> value) {
  if constexpr (N == 1) {
    return value;
  } else if constexpr (N == 2) {
    return value[0] + value[1];
  } else {
    return horizontal_sum<Scalar, N / 2>(lower_half<N>(value) + upper_half<N>(value));
  }
}

/// The horizontal sums of four vectors, written to `sums[0 … 3]`. Cheaper than one by one.
template <class Scalar, int N>
TESSERA_INLINE void four_horizontal_sums(const Lanes<Scalar, N> (&values)[4], Scalar* sums) {
  if constexpr (N > 4) {
    const Lanes<Scalar, N / 2> halves[4] = {lower_half<N>(values[0]) + upper_half<N>(values[0]),
                                            lower_half<N>(values[1]) + upper_half<N>(values[1]),
                                            lower_half<N>(values[2]) + upper_half<N>(values[2]),
                                            lower_half<N>(values[3]) + upper_half<N>(values[3])};
    four_horizontal_sums<Scalar, N / 2>(halves, sums);
  } else if constexpr (N == 4) {
    const auto pairs = [](const auto& a, const auto& b) TESSERA_INLINED {
      return __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
    };
    const Lanes<Scalar, 4> result = pairs(pairs(values[0], values[1]), pairs(values[2], values[3]));
    __builtin_memcpy(sums, &result, sizeof result);
  } else {
    unrolled<4>([&](auto i) TESSERA_INLINED {
      sums[i.value] = horizontal_sum<Scalar, N>(values[i.value]);
    });
  }
}

/// `a` in lanes where a comparison holds, else `b`. Written with bits: from `mask ? a : b`
/// compilers make a longer sequence that orders not-a-number as well.
template <class Scalar, int N, class Mask>
TESSERA_INLINE Lanes<Scalar, N> select_where(Mask mask, Lanes<Scalar, N> a, Lanes<Scalar, N> b) {
  if constexpr (N == 1) {
    return mask ? a : b;
  } else {
    Mask a_bits, b_bits;
    __builtin_memcpy(&a_bits, &a, sizeof a_bits);
    __builtin_memcpy(&b_bits, &b, sizeof b_bits);
    const Mask chosen = (mask & a_bits) | (~mask & b_bits);
    Lanes<Scalar, N> result;
    __builtin_memcpy(&result, &chosen, sizeof result);
    return result;
  }
}

}  // namespace tessera::ops::TESSERA_ISA
