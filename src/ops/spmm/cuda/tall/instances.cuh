// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/precision.cuh"
#include "ops/spmm/cuda/tall/instances.hpp"
#include "ops/spmm/cuda/tall/kernel.cuh"
#include "ops/spmm/cuda/tall/shift_loader.cuh"

namespace tessera::ops {

/// How rows of X come into shared memory, for a key and a width of features.
template <class T, int width, TallKey key>
struct TallLoader {
  static constexpr int groups = key.height / 64;
  /// With three planes there are sums of a stage beside those of all stages: wide rows are taken in
  /// parts, which leaves registers for both.
  static constexpr int own_width = key.planes == 3 && width == 128 ? 64 : width;

  using Copy = std::type_identity<
      CopyLoader<T, width, key.scaled, groups, key.aligned, key.valued, key.quads>>;
  using Split = std::type_identity<
      SplitLoader<own_width, key.planes, groups, key.aligned, key.valued, key.quads>>;
  using Shift = std::type_identity<ShiftLoader<T, width, key.scaled>>;
  using Plain = typename std::conditional_t<key.shifted, Shift,
                                            std::conditional_t<sizeof(T) == 2, Copy, Split>>::type;
  using Multiplied = typename std::conditional_t<key.warps, std::type_identity<OnWarps<Plain>>,
                                                 std::type_identity<Plain>>::type;
  using Type =
      typename std::conditional_t<key.epilogue, std::type_identity<WithEpilogue<Multiplied>>,
                                  std::type_identity<Multiplied>>::type;
};

template <TallKey key>
std::span<const TallFunction> TallKernels<key>::all() {
  using T = cuda::Stored<key.precision>;
  constexpr std::size_t widths = tall_widths.size() - (key.shifted ? 1 : 0);
  static constexpr auto functions = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{make_tall_function<typename TallLoader<T, tall_widths[i], key>::Type>()...};
  }
  (std::make_index_sequence<widths>{});
  return functions;
}

}  // namespace tessera::ops
