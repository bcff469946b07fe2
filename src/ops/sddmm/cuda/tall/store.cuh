// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/vectors.cuh"
#include "ops/sddmm/cuda/tall/feed.cuh"

namespace tessera::ops {

/// From the products of a tile to its edges. A warp puts its 16 rows of products side by side in
/// shared memory and picks those that the codes name, 32 neighbouring edges at once.
template <class Shape>
class EdgeStore {
 public:
  using T = typename Shape::T;
  using Tile = typename Shape::Tile;
  using Raw = typename cuda::RawVector<sizeof(T)>::Type;
  static constexpr int blocks_ahead = 4;

  __device__ EdgeStore(const TallDotsLaunch& launch, char* results)
      : launch_(launch),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32),
        results_(results + warp_ * Shape::results_bytes),
        edge_bytes_(launch.edges_stride * static_cast<int>(sizeof(T))),
        edges_(static_cast<char*>(launch.edges) + blockIdx.y * sizeof(T)) {}

  /// Asks for the first codes of a tile whose products come next.
  __device__ void fetch(const Tile& tile) {
    codes_ =
        launch_.codes + std::int64_t{tile.first_blocks[warp_]} * tiles::code_block_words + lane_;
    const int count = tile.counts[warp_];
#pragma unroll
    for (int i = 0; i < blocks_ahead; ++i) {
      if (i * tiles::code_block_edges < count)
        ahead_[i] = __ldcs(codes_ + i * tiles::code_block_words);
    }
  }

  __device__ void store(const Tile& tile, const float (&products)[32]) {
    lay_out(products);
    __syncwarp();
    const int count = tile.counts[warp_];
    const Target target{cuda::shared_address(tile.shifts + warp_ * tiles::strip_rows),
                        edges_ + tile.first_edge * edge_bytes_};
#pragma unroll
    for (int i = 0; i < blocks_ahead; ++i) {
      if (i * tiles::code_block_edges < count)
        pick(tile, target, ahead_[i], i * tiles::code_block_edges, count);
    }
#pragma unroll 2
    for (int i = blocks_ahead; i * tiles::code_block_edges < count; ++i) {
      pick(tile, target, __ldcs(codes_ + i * tiles::code_block_words), i * tiles::code_block_edges,
           count);
    }
  }

 private:
  /// Where the results of a tile go.
  struct Target {
    std::uint32_t shifts;  ///< of the strip, an address in shared memory
    char* window;          ///< its first edge

    __device__ Target(std::uint32_t shifts, char* window) : shifts(shifts), window(window) {
      // Computed once: the compiler would put the parts together again for every edge.
      asm volatile("" : "+r"(this->shifts), "+l"(this->window));
    }
  };

  __device__ void lay_out(const float (&products)[32]) const {
    const std::uint32_t base = cuda::shared_address(results_);
    if constexpr (sizeof(T) == 2) {
      const std::uint32_t address =
          base + static_cast<std::uint32_t>((lane_ / 8 % 2 * 8 + lane_ % 8) * Shape::result_pitch +
                                            lane_ / 16 * 16);
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        std::uint32_t blocks[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int at = (j + i / 2) * 4 + i % 2 * 2;
          const T pair[2] = {cuda::narrow<T>(products[at]), cuda::narrow<T>(products[at + 1])};
          memcpy(&blocks[i], pair, sizeof(pair));
        }
        cuda::store_blocks(address + static_cast<std::uint32_t>(j * 16), blocks);
      }
    } else {
      char* const own = results_ + lane_ / 4 * Shape::result_pitch + lane_ % 4 * 8;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        *reinterpret_cast<float2*>(own + j * 32) =
            make_float2(products[4 * j], products[4 * j + 1]);
        *reinterpret_cast<float2*>(own + 8 * Shape::result_pitch + j * 32) =
            make_float2(products[4 * j + 2], products[4 * j + 3]);
      }
    }
  }

  /// The codes beyond the last are 0, so that only the stores have to know how many there are.
  __device__ void pick(const Tile& tile, const Target& target, std::uint32_t word, int first,
                       int count) const {
    constexpr int size = static_cast<int>(sizeof(T));
    static_assert(Shape::result_pitch == tiles::tile_columns * size + 16);
    const std::uint32_t results = cuda::shared_address(results_);
    Raw values[2];
    std::uint32_t places[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t code = half == 0 ? word & 0xffffu : word >> 16;
      const std::uint32_t row = code / tiles::tile_columns;
      values[half] = load_shared<Raw>(results + code * size + row * 16);
      places[half] = load_shared<std::uint32_t>(target.shifts + row * 4);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int number = first + half * 32 + lane_;
      if (number >= count) continue;
      if constexpr (Shape::splits) {
        // Infinity times what tf32 leaves out is not infinity.
        if (!isfinite(__uint_as_float(values[half]))) {
          const auto code = static_cast<int>(half == 0 ? word & 0xffffu : word >> 16);
          values[half] =
              __float_as_uint(again(tile, code / tiles::tile_columns, code % tiles::tile_columns));
        }
      }
      const std::uint32_t place = static_cast<std::uint32_t>(number) + places[half];
      char* const to =
          target.window + std::uint64_t{place} * static_cast<std::uint32_t>(edge_bytes_);
      store_global(to, values[half]);
    }
  }

  template <class Value>
  __device__ static void store_global(char* to, Value value) {
    if constexpr (sizeof(Value) == 2) {
      asm volatile("st.global.u16 [%0], %1;" ::"l"(to), "h"(value) : "memory");
    } else {
      asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
    }
  }

  template <class Value>
  __device__ static Value load_shared(std::uint32_t address) {
    Value value;
    if constexpr (sizeof(Value) == 2) {
      asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(address) : "memory");
    } else {
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    }
    return value;
  }

  __device__ float again(const Tile& tile, int row, int column) const {
    const std::int64_t target = tile.first_row + warp_ * tiles::strip_rows + row;
    const std::int64_t source = tile.columns[column];
    const std::int64_t first = std::int64_t{blockIdx.y} * launch_.width;
    const auto* const u = static_cast<const float*>(launch_.u) + target * launch_.u_stride + first;
    const auto* const v = static_cast<const float*>(launch_.v) + source * launch_.v_stride + first;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < launch_.width; ++k) sum = fmaf(u[k], v[k], sum);
    return sum;
  }

  const TallDotsLaunch& launch_;
  int warp_;
  int lane_;
  char* results_;
  int edge_bytes_;  ///< from one edge's results to the next
  char* edges_;
  const std::uint32_t* codes_ = nullptr;
  std::uint32_t ahead_[blocks_ahead] = {};
};

}  // namespace tessera::ops
