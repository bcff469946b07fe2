// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/gemm/cuda/product.cuh"

namespace tessera::ops {

template <int cols>
void run_small_tiles(const Product& product, dim3 grid, const ProductLaunch& launch,
                     Stream stream) {
  const auto of_left = [&](auto left) {
    constexpr bool left_in_row = decltype(left)::value;
    return product.right.inner_in_row ? multiply_planes<cols, left_in_row, true>
                                      : multiply_planes<cols, left_in_row, false>;
  };
  const auto kernel =
      product.left.inner_in_row ? of_left(std::true_type{}) : of_left(std::false_type{});
  cuda::launch_overlapped(kernel, grid, product_threads, stream, launch);
}

}  // namespace tessera::ops
