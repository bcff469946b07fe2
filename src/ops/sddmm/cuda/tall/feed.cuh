// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "ops/sddmm/cuda/tall/shape.cuh"

namespace tessera::ops {

/// The tiles of a block, in a ring in shared memory, and where in them a reader stands.
template <class Shape>
class TileFeed {
 public:
  using Tile = typename Shape::Tile;

  struct Place {
    unsigned number = 0;  ///< of the tile among the block's
    int phase = 0;
  };

  __device__ TileFeed(const TallDotsLaunch& launch, char* memory)
      : launch_(launch),
        ring_(reinterpret_cast<Tile*>(memory)),
        chunks_((launch.width + Shape::chunk_elements - 1) / Shape::chunk_elements),
        num_tiles_(num_own(launch)) {}

  __device__ const Tile& tile(unsigned number) const { return ring_[number % Shape::tile_ring]; }

  __device__ bool exists(unsigned number) const { return number < num_tiles_; }

  /// Asks for the block's next tile.
  __device__ void put() {
    constexpr int units = static_cast<int>(sizeof(Tile)) / 16;
    static_assert(units <= Shape::threads);
    const auto unit = static_cast<int>(threadIdx.x);
    if (exists(num_put_) && unit < units) {
      const char* const from = reinterpret_cast<const char*>(launch_.tiles) +
                               index_of(num_put_) * static_cast<int>(sizeof(Tile));
      cuda::copy_16_async(cuda::shared_address(ring_ + num_put_ % Shape::tile_ring) +
                              static_cast<std::uint32_t>(unit) * 16,
                          from + unit * 16);
    }
    ++num_put_;
  }
  __device__ unsigned num_put() const { return num_put_; }

  __device__ SlotContent part(Place place) const {
    if constexpr (Shape::holds) {
      const int targets = starts(place.number) ? Shape::held * Shape::groups : 0;
      if (place.phase < targets) {
        return {true, place.phase % Shape::groups,
                Shape::held == 1 ? 0 : place.phase / Shape::groups, false};
      }
      const int chunk = Shape::held == 1 ? 0 : place.phase - targets;
      return {false, 0, chunk, chunk + 1 == Shape::held};
    } else {
      const int group = place.phase % (Shape::groups + 1);
      const int chunk = place.phase / (Shape::groups + 1);
      const bool targets = group < Shape::groups;
      return {targets, group, chunk, !targets && chunk + 1 == chunks_};
    }
  }
  __device__ static Place after(Place place, bool last) {
    return last ? Place{place.number + 1, 0} : Place{place.number, place.phase + 1};
  }

 private:
  /// Whether the rows of U have to be loaded.
  __device__ bool starts(unsigned number) const {
    const unsigned within = number & ((1u << launch_.run_shift) - 1);
    return (within == 0) | (tile(number).first_of_window != 0);
  }

  __device__ std::int64_t index_of(unsigned number) const {
    const unsigned run = number >> launch_.run_shift;
    const unsigned within = number & ((1u << launch_.run_shift) - 1);
    return ((std::int64_t{run} * launch_.num_workers + blockIdx.x) << launch_.run_shift) + within;
  }
  /// All of its runs are whole but, for one block, the last.
  __device__ static unsigned num_own(const TallDotsLaunch& launch) {
    const int length = 1 << launch.run_shift;
    const int runs = (launch.num_tiles + length - 1) >> launch.run_shift;
    const int block = static_cast<int>(blockIdx.x);
    const int own = (runs - block + launch.num_workers - 1) / launch.num_workers;
    const bool has_last = (runs - 1) % launch.num_workers == block;
    const int missing = has_last ? runs * length - launch.num_tiles : 0;
    return static_cast<unsigned>(own * length - missing);
  }

  const TallDotsLaunch& launch_;
  Tile* ring_;
  int chunks_;
  unsigned num_tiles_;  ///< of the block
  unsigned num_put_ = 0;
};

}  // namespace tessera::ops
