// SPDX-License-Identifier: Apache-2.0
#include "ops/pairs/rows.hpp"
#include "ops/simd/lanes.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// Calls `body.template operator()<N>(k)` for whole vectors, then for ever shorter ones.
template <class S, int N = lanes<S>, class Body>
TESSERA_INLINE void for_vectors(std::int64_t begin, std::int64_t end, Body&& body) {
  for (; begin + N <= end; begin += N) body.template operator()<N>(begin);
  if constexpr (N > 1) for_vectors<S, N / 2>(begin, end, body);
}

template <class T>
TESSERA_INLINE SumOf<T> product(const T* a, const T* b, std::int64_t cols) {
  using S = SumOf<T>;
  Lanes<S, lanes<S>> whole = {};
  S rest = 0;
  for_vectors<S>(0, cols, [&]<int N>(std::int64_t k) TESSERA_INLINED {
    const auto terms = load_lanes<N>(a + k) * load_lanes<N>(b + k);
    if constexpr (N == lanes<S>) {
      whole += terms;
    } else {
      rest += horizontal_sum<S, N>(terms);
    }
  });
  return horizontal_sum<S, lanes<S>>(whole) + rest;
}

template <class T>
void dot(const T* source, const T* target, std::int64_t heads, std::int64_t head_width, T* scores) {
  if (head_width == 1) {
    return for_vectors<SumOf<T>>(0, heads, [&]<int N>(std::int64_t k) TESSERA_INLINED {
      store_lanes<N>(scores + k,
                     Lanes<SumOf<T>, N>(load_lanes<N>(source + k) * load_lanes<N>(target + k)));
    });
  }
  for (std::int64_t h = 0; h < heads; ++h) {
    store_lanes<1>(scores + h,
                   product(source + h * head_width, target + h * head_width, head_width));
  }
}

/// What the sums of a block of columns are kept in.
constexpr std::int64_t block = 64;

/// sums[j] += factors[j] * row[j].
template <class T>
TESSERA_INLINE void add_row_products(const T* row, const T* factors, std::int64_t cols,
                                     SumOf<T>* sums) {
  for_vectors<SumOf<T>>(0, cols, [&]<int N>(std::int64_t k) TESSERA_INLINED {
    store_lanes<N>(sums + k,
                   Lanes<SumOf<T>, N>(load_lanes<N>(sums + k) +
                                      load_lanes<N>(factors + k) * load_lanes<N>(row + k)));
  });
}

/// sums[j] += factor * row[j].
template <class T>
TESSERA_INLINE void add_scaled_row(const T* row, SumOf<T> factor, std::int64_t cols,
                                   SumOf<T>* sums) {
  for_vectors<SumOf<T>>(0, cols, [&]<int N>(std::int64_t k) TESSERA_INLINED {
    store_lanes<N>(sums + k, load_lanes<N>(sums + k) + factor * load_lanes<N>(row + k));
  });
}

template <class T>
void sum(const PairEnd* ends, std::int64_t count, int sides, const PairRows<T> (&others)[2],
         PairRows<T> gradient, std::int64_t heads, std::int64_t cols, T* y) {
  using S = SumOf<T>;
  const bool multiplies = others[0].data != nullptr || others[1].data != nullptr;
  for (std::int64_t first = 0; first < cols; first += block) {
    const std::int64_t width = cols - first < block ? cols - first : block;
    S sums[block] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      const PairEnd& end = ends[i];
      if ((sides >> end.is_target & 1) == 0) continue;
      const T* const slopes = gradient.data + end.pair * gradient.stride;
      if (!multiplies) {
        add_scaled_row(slopes + first, S{1}, width, sums);
        continue;
      }
      const PairRows<T>& other = others[end.is_target];
      const T* const row = other.data + end.other * other.stride + first;
      if (heads == 1) {
        add_scaled_row(row, load_lanes<1>(slopes), width, sums);
        continue;
      }
      if (heads == cols) {
        add_row_products(row, slopes + first, width, sums);
        continue;
      }
      const std::int64_t head_width = cols / heads;
      for (std::int64_t j = 0; j < width; ++j) {
        sums[j] += load_lanes<1>(slopes + (first + j) / head_width) * load_lanes<1>(row + j);
      }
    }
    for_vectors<S>(0, width, [&]<int N>(std::int64_t k) TESSERA_INLINED {
      store_lanes<N>(y + first + k, load_lanes<N>(sums + k));
    });
  }
}

template <class T>
constexpr PairFunctions<T> functions_of = {dot<T>, sum<T>};

}  // namespace

const ByStorage<PairFunctions>& pairs_table() {
  static constexpr ByStorage<PairFunctions> table = {functions_of<double>, functions_of<float>,
                                                     functions_of<Bfloat16>};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
