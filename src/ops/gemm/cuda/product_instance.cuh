// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/gemm/cuda/product.cuh"

namespace tessera::ops {

template <int cols, class T>
void run_small_tiles(const ProductOf<T>& product, dim3 grid, Stream stream) {
  const auto of_left = [&](auto left) {
    constexpr bool left_in_row = decltype(left)::value;
    return product.right_in_row ? multiply_planes<cols, left_in_row, true, T>
                                : multiply_planes<cols, left_in_row, false, T>;
  };
  const auto kernel = product.left_in_row ? of_left(std::true_type{}) : of_left(std::false_type{});
  cuda::launch_overlapped(kernel, grid, product_threads, stream, product.launch());
}

template <int first_cols, int second_cols, class T>
void run_both(unsigned first_blocks, unsigned second_blocks, const ProductLaunchOf<T>& first,
              const ProductLaunchOf<T>& second, Stream stream) {
  cuda::launch_overlapped(multiply_both<first_cols, second_cols, T>,
                          dim3(first_blocks + second_blocks), product_threads, stream, first_blocks,
                          first, second);
}

}  // namespace tessera::ops
