// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/simd/isa.hpp"

namespace tessera::ops {

/// One row and the weight of its group: column i of x meets the `width` numbers at i * width of the
/// weight, and those of y at i / height * width.
struct GroupedShape {
  std::int64_t in = 0;
  std::int64_t height = 0;  ///< of a block
  std::int64_t width = 0;
};

template <class T>
struct GroupedFunctions {
  /// y = x W.
  void (*product)(const GroupedShape& shape, const T* x, const T* weight, T* y);
  /// grad_x = grad_y W^T.
  void (*turned)(const GroupedShape& shape, const T* grad_y, const T* weight, T* grad_x);
  /// Adds the products of columns [begin, end) of x with grad_y to `sums`, which begin with those
  /// of column `begin`.
  void (*add_outer)(const GroupedShape& shape, const T* x, const T* grad_y, std::int64_t begin,
                    std::int64_t end, SumOf<T>* sums);
};

}  // namespace tessera::ops

TESSERA_SIMD_TABLE(ByStorage<GroupedFunctions>, grouped)
