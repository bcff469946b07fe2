// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "ops/windows/launch.hpp"

/// What a block works on, stage by stage, brought into shared memory long before it is needed.
namespace tessera::ops {

/// Columns, bits and scales of one stage of `rows` rows of X, for a block of so many threads; with
/// values, where each thread's begin; of quads (tiles/quad_tiles.hpp), indices and entries.
template <int rows, int threads, bool with_scales, bool valued, bool quads>
struct StageRecord {
  static constexpr int max_steps = rows / 16;
  static constexpr int max_tiles = rows < 64 ? 1 : rows / 64;
  static constexpr int scales_at = rows * 4;
  static constexpr int words_at = scales_at + (with_scales ? rows * 4 : 0);
  /// 48 for 32 threads where columns stand in quads: 32 of indices, 16 of entries.
  static constexpr int words_per_tile = quads ? threads / 32 * 48 : threads;
  static constexpr int word_bytes = max_tiles * words_per_tile * 4;
  static constexpr int starts_at = words_at + word_bytes;
  static constexpr int bytes = starts_at + (valued ? word_bytes : 0);

  char* memory;

  __device__ const VertexId* columns() const { return reinterpret_cast<const VertexId*>(memory); }
  __device__ const std::uint32_t* scales() const {
    return reinterpret_cast<const std::uint32_t*>(memory + scales_at);
  }
  /// This thread's bits of one of the stage's tiles.
  __device__ std::uint32_t word(int tile) const {
    return reinterpret_cast<const std::uint32_t*>(memory + words_at)[tile * threads + threadIdx.x];
  }
  /// Which columns of the quads the entries of a tile are of. The lanes 4 g and 4 g + 1 have the
  /// tile's first 32 columns, the others the second; with `second` it is the other way round.
  __device__ std::uint32_t indices(int tile, bool second) const {
    const int lane = static_cast<int>(threadIdx.x) % 32 ^ (second ? 2 : 0);
    return quad_words(tile)[lane];
  }
  /// Which entries there are: bit 4 * step + i of the low half says it of the first one of register
  /// i, the same bit of the high half of the second.
  __device__ std::uint32_t entries(int tile) const {
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint32_t word = quad_words(tile)[32 + lane / 2];
    return __byte_perm(word, 0, lane % 2 == 0 ? 0x4140 : 0x4342);
  }
  /// Where this thread's values begin (tiles::ValueLayout::starts).
  __device__ std::uint32_t starts() const {
    return reinterpret_cast<const std::uint32_t*>(memory + starts_at)[threadIdx.x];
  }

 private:
  __device__ const std::uint32_t* quad_words(int tile) const {
    return reinterpret_cast<const std::uint32_t*>(memory + words_at) + tile * words_per_tile +
           threadIdx.x / 32 * 48;
  }
};

/// The stages of a block come through a ring. What is asked for in turn k, stage k + 6, may be read
/// from turn k + 2 on.
template <int threads, bool valued = false>
class StageRing {
 public:
  static constexpr int stages_ahead = 6;
  static constexpr int ring_stages = 8;
  static constexpr int stage_bytes =
      static_cast<int>(sizeof(tiles::Stage) + (valued ? sizeof(tiles::StageValues) : 0));
  static constexpr int bytes = ring_stages * stage_bytes;

  __device__ StageRing(const TallLaunch& launch, char* memory)
      : launch_(launch),
        memory_(memory),
        first_(__ldg(launch.work.worker_offsets + blockIdx.x)),
        last_(__ldg(launch.work.worker_offsets + blockIdx.x + 1) - 1) {}

  /// Brings the first stages.
  __device__ void start() const {
    if (static_cast<int>(threadIdx.x) < stages_ahead) ask(static_cast<int>(threadIdx.x));
    wait_for_all();
  }
  /// By a warp that has little else to ask for.
  __device__ void advance(int turn) const {
    if (threadIdx.x == threads - 1) ask(turn + stages_ahead);
  }

  __device__ tiles::Stage stage(int turn) const { return read<tiles::Stage>(place(turn)); }
  __device__ tiles::StageValues values(int turn) const {
    return read<tiles::StageValues>(place(turn) + sizeof(tiles::Stage));
  }

 protected:
  __device__ static void wait_for_all() {
    cuda::commit_copies();
    cuda::wait_for_copies<0>();
    __syncthreads();
  }

  const TallLaunch& launch_;
  char* memory_;

 private:
  __device__ char* place(int turn) const { return memory_ + turn % ring_stages * stage_bytes; }
  template <class Read>
  __device__ static Read read(const char* from) {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
    Read read;
    memcpy(&read, &raw, sizeof(read));
    return read;
  }

  /// Beyond the end the last stage again, which is empty.
  __device__ void ask(int turn) const {
    const int index = first_ + turn < last_ ? first_ + turn : last_;
    const std::uint32_t to = cuda::shared_address(place(turn));
    cuda::copy_16_async(to, launch_.work.stages + index);
    if constexpr (valued) {
      cuda::copy_16_async(to + static_cast<std::uint32_t>(sizeof(tiles::Stage)),
                          launch_.matrix.stage_values + index);
    }
  }

  int first_;
  int last_;
};

/// Stages with their records: in the turn of stage k the block asks for the record of stage k + 4.
template <int rows, int threads, bool with_scales, bool valued, bool quads = false>
class StageFeed : public StageRing<threads, valued> {
  using Ring = StageRing<threads, valued>;

 public:
  using Record = StageRecord<rows, threads, with_scales, valued, quads>;
  static constexpr int records_ahead = 4;
  static constexpr int ring_records = records_ahead + 1;
  static constexpr int bytes = Ring::bytes + ring_records * Record::bytes;

  using Ring::Ring;

  /// Brings the first stages, then their records.
  __device__ void start() const {
    Ring::start();
    for (int turn = 0; turn < records_ahead; ++turn) ask_record(turn);
    Ring::wait_for_all();
  }
  __device__ void advance(int turn) const {
    ask_record(turn + records_ahead);
    Ring::advance(turn);
  }

  __device__ Record record(int turn) const {
    return {memory_ + Ring::bytes + turn % ring_records * Record::bytes};
  }

 private:
  using Ring::launch_;
  using Ring::memory_;

  /// 16 bytes by each thread: columns first, then words, then where values begin.
  __device__ void ask_record(int turn) const {
    constexpr int column_units = rows / 4;
    constexpr int tile_units = Record::words_per_tile / 4;
    constexpr int word_units = Record::max_tiles * tile_units;
    static_assert(column_units + (valued ? 2 : 1) * word_units <= threads);
    const tiles::Stage of = this->stage(turn);
    const std::uint32_t to = cuda::shared_address(record(turn).memory);
    const int unit = static_cast<int>(threadIdx.x);
    const int word_unit = unit - column_units;
    if (unit < column_units) {
      if (unit / 4 < of.num_steps) {
        const std::int64_t from = std::int64_t{of.first_step} * 16 + unit * 4;
        const auto at = static_cast<std::uint32_t>(unit * 16);
        cuda::copy_16_async(to + at, launch_.matrix.columns + from);
        if (with_scales && launch_.matrix.scales != nullptr) {
          cuda::copy_16_async(to + Record::scales_at + at, launch_.matrix.scales + from);
        }
      }
    } else if (word_unit < word_units) {
      if (word_unit / tile_units * 4 < of.num_steps) {
        const std::int64_t from =
            std::int64_t{of.first_tile} * Record::words_per_tile + word_unit * 4;
        cuda::copy_16_async(to + Record::words_at + static_cast<std::uint32_t>(word_unit * 16),
                            launch_.matrix.words + from);
      }
    } else if (valued && word_unit < 2 * word_units && of.num_steps > 0) {
      const int start_unit = word_unit - word_units;
      const std::int64_t from = std::int64_t{of.first_tile} * threads + start_unit * 4;
      cuda::copy_16_async(to + Record::starts_at + static_cast<std::uint32_t>(start_unit * 16),
                          launch_.matrix.starts + from);
    }
  }
};

/// Values of a stage's edges, in shared memory as they follow each other in global memory. A place
/// has room for the stage with most of them.
template <int threads>
class ValueRing {
 public:
  static constexpr int places = 3;
  /// Bytes for stages of up to so many units.
  static constexpr int bytes(int units) { return places * units * 16; }

  __device__ ValueRing(const TallLaunch& launch, char* memory)
      : values_(reinterpret_cast<const uint4*>(launch.matrix.values)),
        units_(reinterpret_cast<uint4*>(memory)),
        place_units_(launch.matrix.stage_units) {}

  /// Asks for the values of the stage of that turn.
  __device__ void ask(int turn, const tiles::StageValues& stage) const {
    const uint4* const from = values_ + stage.first_unit;
    const std::uint32_t to = cuda::shared_address(units_ + turn % places * place_units_);
    for (int i = static_cast<int>(threadIdx.x); i < stage.num_units; i += threads) {
      cuda::copy_16_async(to + static_cast<std::uint32_t>(i * 16), from + i);
    }
  }
  __device__ const std::uint32_t* place(int turn) const {
    return reinterpret_cast<const std::uint32_t*>(units_ + turn % places * place_units_);
  }

 private:
  const uint4* values_;
  uint4* units_;
  int place_units_;
};

}  // namespace tessera::ops
