// SPDX-License-Identifier: Apache-2.0
#include "ops/grouped_linear/kernels.hpp"
#include "ops/simd/lanes.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// Calls `body.template operator()<N>(k)` for whole vectors, then for ever shorter ones.
template <class S, int N = lanes<S>, class Body>
TESSERA_INLINE void for_vectors(std::int64_t count, Body&& body, std::int64_t begin = 0) {
  for (; begin + N <= count; begin += N) body.template operator()<N>(begin);
  if constexpr (N > 1) for_vectors<S, N / 2>(count, body, begin);
}

template <class T>
TESSERA_INLINE SumOf<T> dot(const T* a, const T* b, std::int64_t count) {
  using S = SumOf<T>;
  Lanes<S, lanes<S>> whole = {};
  S rest = 0;
  for_vectors<S>(count, [&]<int N>(std::int64_t k) TESSERA_INLINED {
    const auto terms = load_lanes<N>(a + k) * load_lanes<N>(b + k);
    if constexpr (N == lanes<S>) {
      whole += terms;
    } else {
      rest += horizontal_sum<S, N>(terms);
    }
  });
  return horizontal_sum<S, lanes<S>>(whole) + rest;
}

/// y[j] = the sum over i of x[i] * weight[i][j], `Columns` of `width` columns at once: a number
/// that is known keeps the sums in registers.
template <int Columns, class T>
TESSERA_INLINE void block_columns(const T* x, const T* weight, std::int64_t height,
                                  std::int64_t width, T* y) {
  using S = SumOf<T>;
  Lanes<S, Columns> sums = {};
  for (std::int64_t i = 0; i < height; ++i) {
    sums += load_lanes<1>(x + i) * load_lanes<Columns>(weight + i * width);
  }
  store_lanes<Columns>(y, sums);
}

template <class T>
void product(const GroupedShape& shape, const T* x, const T* weight, T* y) {
  const auto [in, height, width] = shape;
  for (std::int64_t i = 0; i < in; i += height, y += width) {
    const T* const block = weight + i * width;
    if (width == 1) {
      store_lanes<1>(y, dot(x + i, block, height));
      continue;
    }
    for_vectors<SumOf<T>>(width, [&]<int N>(std::int64_t k) TESSERA_INLINED {
      block_columns<N>(x + i, block + k, height, width, y + k);
    });
  }
}

template <class T>
void turned(const GroupedShape& shape, const T* grad_y, const T* weight, T* grad_x) {
  const auto [in, height, width] = shape;
  if (width == 1) {
    for (std::int64_t begin = 0; begin < in; begin += height, ++grad_y) {
      const SumOf<T> factor = load_lanes<1>(grad_y);
      for_vectors<SumOf<T>>(height, [&]<int N>(std::int64_t k) TESSERA_INLINED {
        store_lanes<N>(grad_x + begin + k,
                       Lanes<SumOf<T>, N>(factor * load_lanes<N>(weight + begin + k)));
      });
    }
    return;
  }
  for (std::int64_t begin = 0; begin < in; begin += height, grad_y += width) {
    for (std::int64_t i = begin; i < begin + height; ++i) {
      store_lanes<1>(grad_x + i, dot(grad_y, weight + i * width, width));
    }
  }
}

template <class T>
void add_outer(const GroupedShape& shape, const T* x, const T* grad_y, std::int64_t begin,
               std::int64_t end, SumOf<T>* sums) {
  const auto [in, height, width] = shape;
  using S = SumOf<T>;
  if (width == 1 && height == in) {
    const S factor = load_lanes<1>(grad_y);
    for_vectors<S>(end - begin, [&]<int N>(std::int64_t k) TESSERA_INLINED {
      store_lanes<N>(sums + k,
                     Lanes<S, N>(load_lanes<N>(sums + k) + factor * load_lanes<N>(x + begin + k)));
    });
    return;
  }
  std::int64_t left = height - begin % height;
  const T* slopes = grad_y + begin / height * width;
  for (std::int64_t i = begin; i < end; ++i, sums += width) {
    const S factor = load_lanes<1>(x + i);
    for_vectors<S>(width, [&]<int N>(std::int64_t k) TESSERA_INLINED {
      store_lanes<N>(sums + k,
                     Lanes<S, N>(load_lanes<N>(sums + k) + factor * load_lanes<N>(slopes + k)));
    });
    if (--left > 0) continue;
    left = height;
    slopes += width;
  }
}

template <class T>
constexpr GroupedFunctions<T> functions_of = {product<T>, turned<T>, add_outer<T>};

}  // namespace

const ByStorage<GroupedFunctions>& grouped_table() {
  static constexpr ByStorage<GroupedFunctions> table = {functions_of<double>, functions_of<float>,
                                                        functions_of<Bfloat16>};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
