// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/attention/fused.hpp"
#include "ops/attention/slices.hpp"
#include "ops/simd/lanes.hpp"

/// How a row of `heads` x `width` features is cut into slices.
namespace tessera::ops::TESSERA_ISA {

template <class T, int N, int Heads, int Vectors, bool Narrow>
inline constexpr fused::SliceFunctions<T> slice_functions = {
    SliceLoops<T, N, Heads, Vectors, Narrow>::dot,
    SliceLoops<T, N, Heads, Vectors, Narrow>::additive,
    SliceLoops<T, N, Heads, Vectors, Narrow>::weighted_sum,
    SliceLoops<T, N, Heads, Vectors, Narrow>::additive_backward};

/// The largest power of two that is at most `value`, but at most `limit`.
TESSERA_INLINE int power_of_two_within(std::int64_t value, int limit) {
  int power = limit;
  while (power > value) power /= 2;
  return power;
}

/// Widest slices: full vectors may come several to a head, narrower ones come alone. Doubles check
/// gradients, where no time counts: few instances serve them.
template <class T, int N>
inline constexpr int max_slice_vectors = N != lanes<SumOf<T>>        ? 1
                                         : std::is_same_v<T, double> ? 2
                                                                     : 8;
template <class T>
inline constexpr int max_slice_heads = std::is_same_v<T, double> ? 1 : 8;

template <class T, int N, bool Narrow>
const fused::SliceFunctions<T>* find_slice(int heads, int vectors) {
  const fused::SliceFunctions<T>* found = nullptr;
  unrolled<4>([&](auto log_heads) {
    unrolled<4>([&](auto log_vectors) {
      constexpr int slice_heads = 1 << log_heads.value;
      constexpr int slice_vectors = 1 << log_vectors.value;
      constexpr int max_vectors = Narrow ? 1 : max_slice_vectors<T, N>;
      if constexpr (slice_vectors <= max_vectors && slice_heads <= max_slice_heads<T> &&
                    slice_heads * slice_vectors <= accumulator_registers) {
        if (heads == slice_heads && vectors == slice_vectors) {
          found = &slice_functions<T, N, slice_heads, slice_vectors, Narrow>;
        }
      }
    });
  });
  return found;
}

/// Cuts rows into slices.
template <class T>
struct SliceMaker {
  fused::SlicePlace place;
  void (*add_to)(const fused::Slice<T>& slice, void* list);
  void* list;

  /// Features [first, first + vectors * N) of every head.
  template <int N, bool Narrow = false>
  void add(std::int64_t first, int vectors) {
    place.feature = first;
    place.adds = first > 0;
    for (place.head = 0; place.head < place.heads;) {
      const int heads = power_of_two_within(
          place.heads - place.head,
          power_of_two_within(accumulator_registers / vectors, max_slice_heads<T>));
      if (Narrow && place.head + heads == place.heads) place.set_back = N - place.width;
      add_to({find_slice<T, N, Narrow>(heads, vectors), place}, list);
      place.head += heads;
    }
  }

  /// Heads narrower than N features.
  template <int N>
  void cover_narrow() {
    if constexpr (N > 2) {
      if (place.width > N / 2) return add<N, true>(0, 1);
      cover_narrow<N / 2>();
    }
  }

  /// All features from `first` on.
  template <int N>
  void cover(std::int64_t first) {
    while (place.width - first >= N) {
      const int vectors = power_of_two_within((place.width - first) / N, max_slice_vectors<T, N>);
      add<N>(first, vectors);
      first += vectors * N;
    }
    if constexpr (N > 1) cover<N / 2>(first);
  }
};

/// True where each head is taken by one vector that is not quite filled. A row has to have at least
/// as many features as the vector.
template <class T>
bool is_narrow(std::int64_t heads, std::int64_t width) {
  const bool fills_one = (width & (width - 1)) == 0;
  return heads > 1 && width < lanes<SumOf<T>> && !fills_one;
}

/// True when every slice will have whole heads, and a multiple of n of them, n being the lanes of
/// the first slice.
template <class T>
bool can_sum_lanes(std::int64_t heads, std::int64_t width, std::int64_t n) {
  constexpr int full = lanes<SumOf<T>>;
  if (n == 0 || (width % n != 0 && !is_narrow<T>(heads, width))) return false;
  const std::int64_t vectors = (width + n - 1) / n;
  const bool one_slice = vectors == 1 || (n == full && vectors <= max_slice_vectors<T, full> &&
                                          (vectors & (vectors - 1)) == 0);
  if (!one_slice) return false;
  const std::int64_t slice_heads =
      power_of_two_within(accumulator_registers / vectors, max_slice_heads<T>);
  return slice_heads % n == 0 && heads % n == 0;
}

template <class T>
void make_slices(std::int64_t heads, std::int64_t width,
                 void (*add_to)(const fused::Slice<T>& slice, void* list), void* list) {
  constexpr int full = lanes<SumOf<T>>;
  SliceMaker<T> maker{{}, add_to, list};
  maker.place.heads = heads;
  maker.place.width = width;
  const bool narrow = is_narrow<T>(heads, width);
  maker.place.partial_lanes = power_of_two_within(width, full) * (narrow ? 2 : 1);
  maker.place.sums_lanes = can_sum_lanes<T>(heads, width, maker.place.partial_lanes);
  if (narrow) {
    maker.template cover_narrow<full>();
  } else {
    maker.template cover<full>(0);
  }
}

}  // namespace tessera::ops::TESSERA_ISA
