// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/precision.cuh"
#include "ops/spmm/cuda/tall/policy.hpp"
#include "ops/windows/kernel.cuh"

namespace tessera::ops {

/// How rows of X come into shared memory, for a key and a width of features.
template <class T, int width, TallKey key>
struct TallLoader {
  static constexpr int groups = key.height / 64;
  /// With three planes there are sums of a stage beside those of all stages: wide rows are taken in
  /// parts, which leaves registers for both.
  static constexpr int own_width = key.strict && width == 128 ? 64 : width;

  using Copy = std::type_identity<
      CopyLoader<T, width, key.scaled, groups, key.aligned, key.valued, key.quads>>;
  using Split = std::type_identity<
      SplitLoader<own_width, key.planes(), groups, key.aligned, key.valued, key.quads>>;
  using Plain = typename std::conditional_t<sizeof(T) == 2, Copy, Split>::type;
  using Multiplied = typename std::conditional_t<key.warps, std::type_identity<OnWarps<Plain>>,
                                                 std::type_identity<Plain>>::type;
  using Type =
      typename std::conditional_t<key.epilogue, std::type_identity<WithEpilogue<Multiplied>>,
                                  std::type_identity<Multiplied>>::type;
};

template <TallKey key>
std::span<const TallFunction> TallKernels<key>::get() {
  using T = cuda::Stored<key.precision>;
  static constexpr std::array<TallFunction, tall_widths.size()> functions = {
      make_tall_function<typename TallLoader<T, 32, key>::Type>(),
      make_tall_function<typename TallLoader<T, 64, key>::Type>(),
      make_tall_function<typename TallLoader<T, 128, key>::Type>()};
  return functions;
}

}  // namespace tessera::ops
