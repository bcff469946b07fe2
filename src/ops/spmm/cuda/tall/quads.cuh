// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "cuda/wgmma.cuh"

namespace tessera::ops {

/// Adds one stage to the sums on sparse tensor cores, without waiting for it: 32 columns at once,
/// in quads of which every row uses at most two (tiles/quad_tiles.hpp).
template <class Loader>
class MultiplyQuads {
 public:
  using Record = typename Loader::Record;
  using Element = typename Loader::Element;
  static constexpr int tiles = Record::max_tiles;
  static constexpr int max_products = Record::max_steps / 2;
  static constexpr int tile_products = max_products / tiles;
  static_assert(!Loader::scaled && !Loader::valued && !Loader::by_warps);
  static_assert(tile_products == 1 || tile_products == 2);

  __device__ MultiplyQuads(Record record, int bit_shift, std::uint32_t rows) : rows_(rows) {
    constexpr std::uint32_t one = std::is_same_v<Element, __nv_bfloat16> ? 0x3f80u : 0x3c00u;
    // A stage of half a tile may be the second half.
    const bool second = tile_products == 1 && bit_shift != 0;
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      indices_[tile] = record.indices(tile, second);
      const std::uint32_t entries = record.entries(tile) >> (second ? 4 : 0);
#pragma unroll
      for (int i = 0; i < 4 * tile_products; ++i) {
        fragments_[tile * tile_products + i / 4][i % 4] = (entries >> i & 0x00010001u) * one;
      }
    }
#pragma unroll
    for (int product = 0; product < max_products; ++product) {
      cuda::keep_in_place(fragments_[product]);
    }
    cuda::keep_in_place(indices_);
  }

  __device__ void operator()(int num_steps, float (&sums)[Loader::width / 2]) const {
    if (num_steps == Record::max_steps) {
      cuda::wgmma_fence();
      add_up_to<max_products>(sums);
    } else {
      add_some<0>(num_steps / 2, sums);
    }
    cuda::wgmma_fence();
    cuda::wgmma_commit();
  }

 private:
  template <int end>
  __device__ void add_up_to(float (&sums)[Loader::width / 2]) const {
    if constexpr (end > 0) {
      add_up_to<end - 1>(sums);
      add<end - 1>(sums);
    }
  }

  /// Not all of them.
  template <int product>
  __device__ void add_some(int count, float (&sums)[Loader::width / 2]) const {
    if constexpr (product + 1 < max_products) {
      if (product < count) {
        cuda::wgmma_fence();
        add<product>(sums);
      }
      add_some<product + 1>(count, sums);
    }
  }

  template <int product>
  __device__ void add(float (&sums)[Loader::width / 2]) const {
#pragma unroll
    for (int plane = 0; plane < Loader::planes; ++plane) {
      const std::uint64_t b = cuda::wgmma_descriptor(rows_, Loader::Layout::block_bytes) +
                              std::uint64_t{2 * product} * cuda::wgmma_step +
                              plane * std::uint64_t{Loader::Layout::plane_bytes >> 4};
      cuda::wgmma_sparse<Element, product % tile_products>(sums, fragments_[product], b,
                                                           indices_[product / tile_products]);
    }
  }

  std::uint32_t rows_;  ///< of the stage, in shared memory
  std::uint32_t indices_[tiles];
  std::uint32_t fragments_[max_products][4];
};

}  // namespace tessera::ops
