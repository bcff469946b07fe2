// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "ops/spmm/cuda/tall/stages.cuh"

namespace tessera::ops {

/// Stages and records as `StageFeed` brings them, of patterns alone and of any number of rows. What
/// a turn needs is counted from the stage whose turn it is, and places in the ring of records are
/// not divided out again in every turn.
template <int rows, int threads>
class ByteFeed {
 public:
  using Record = StageRecord<rows, threads, false, false, false>;
  static constexpr int records_ahead = 4;
  static constexpr int stages_ahead = 6;
  static constexpr int ring_records = records_ahead + 1;
  static constexpr int ring_stages = 8;
  static constexpr int bytes =
      ring_stages * static_cast<int>(sizeof(tiles::Stage)) + ring_records * Record::bytes;
  static_assert(sizeof(tiles::Stage) == 16);

  __device__ ByteFeed(const TallLaunch& launch, char* memory)
      : matrix_(launch.matrix),
        stages_(launch.work.stages),
        memory_(memory),
        next_(__ldg(launch.work.worker_offsets + blockIdx.x)),
        last_(__ldg(launch.work.worker_offsets + blockIdx.x + 1) - 1) {}

  /// Asks for the first stages; they must be there before `start_records`.
  __device__ void start_stages() const {
    if (static_cast<int>(threadIdx.x) < stages_ahead) ask_stage(static_cast<int>(threadIdx.x));
  }
  __device__ void start_records() const {
    for (int ahead = 0; ahead < records_ahead; ++ahead) ask_record(ahead);
  }
  /// Asks for what comes into the places that were left in the turn before.
  __device__ void ask() const {
    ask_record(records_ahead);
    // By a warp that has little else to ask for.
    if (threadIdx.x == threads - 1) ask_stage(stages_ahead);
  }
  /// The next stage's turn.
  __device__ void advance() {
    ++next_;
    stage_ = (stage_ + 1) % ring_stages;
    record_ = record_ + 1 < ring_records ? record_ + 1 : 0;
  }

  __device__ tiles::Stage stage(int ahead) const {
    const uint4 raw = *reinterpret_cast<const uint4*>(stage_place(ahead));
    tiles::Stage stage;
    memcpy(&stage, &raw, sizeof(stage));
    return stage;
  }
  __device__ Record record(int ahead) const {
    const int place =
        record_ + ahead < ring_records ? record_ + ahead : record_ + ahead - ring_records;
    return {memory_ + ring_stages * static_cast<int>(sizeof(tiles::Stage)) + place * Record::bytes};
  }

 private:
  __device__ char* stage_place(int ahead) const {
    return memory_ + (stage_ + ahead) % ring_stages * static_cast<int>(sizeof(tiles::Stage));
  }

  /// Beyond the end the last stage again, which is empty.
  __device__ void ask_stage(int ahead) const {
    const int index = next_ + ahead < last_ ? next_ + ahead : last_;
    cuda::copy_16_async(cuda::shared_address(stage_place(ahead)), stages_ + index);
  }

  /// 16 bytes by each thread, once or several times: columns first, then words.
  __device__ void ask_record(int ahead) const {
    constexpr int column_units = rows / 4;
    constexpr int tile_units = threads / 4;
    constexpr int units = column_units + Record::max_tiles * tile_units;
    static_assert(Record::words_at == column_units * 16);
    const tiles::Stage of = stage(ahead);
    const std::uint32_t to = cuda::shared_address(record(ahead).memory);
    const VertexId* const columns = matrix_.columns + std::int64_t{of.first_step} * 16;
    const std::uint32_t* const words = matrix_.words + std::int64_t{of.first_tile} * threads;
#pragma unroll
    for (int first = 0; first < units; first += threads) {
      const int unit = first + static_cast<int>(threadIdx.x);
      const int word_unit = unit - column_units;
      const bool of_columns = unit < column_units;
      const int steps_before = of_columns ? unit / 4 : word_unit / tile_units * 4;
      if (unit >= units || steps_before >= of.num_steps) continue;
      const void* const from = of_columns ? static_cast<const void*>(columns + unit * 4)
                                          : static_cast<const void*>(words + word_unit * 4);
      cuda::copy_16_async(to + static_cast<std::uint32_t>(unit * 16), from);
    }
  }

  const TallLaunch::Matrix& matrix_;
  const tiles::Stage* stages_;
  char* memory_;
  int next_;  ///< stage whose turn it is, among those of all blocks
  int last_;
  int stage_ = 0;  ///< where that stage and its record lie in their rings
  int record_ = 0;
};

}  // namespace tessera::ops
