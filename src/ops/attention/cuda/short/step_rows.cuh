// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "ops/attention/cuda/short/step_walk.cuh"

/// Rows of 16-bit features on their way to the matrix instructions of one warp, in its own part of
/// shared memory.
namespace tessera::ops {

struct WarpLane {
  __device__ static int number() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int group() { return number() / 4; }
  __device__ static int quarter() { return number() % 4; }
};

/// The rows of a matrix, from `first` of the head blockIdx.y on.
class FeatureRows {
 public:
  __device__ FeatureRows(const void* matrix, std::int64_t stride, int width, int first)
      : data_(static_cast<const char*>(matrix) + (std::int64_t{blockIdx.y} * width + first) * 2),
        row_bytes_(static_cast<std::uint32_t>(stride * 2)) {}

  __device__ const char* at(VertexId row) const {
    return data_ + static_cast<std::uint64_t>(static_cast<std::uint32_t>(row)) * row_bytes_;
  }

 private:
  const char* data_;
  std::uint32_t row_bytes_;
};

/// 16 rows of a head. The 16-byte units of a row are exchanged by its number, so that neither of
/// the two ways to read them makes banks collide: by rows g and units 4 i + q, where rows meet
/// others, and by rows 2q and 2q + 1 and units 8 i + g, where they are weighted.
template <int width>
struct StepRows {
  static constexpr int units = width / 8;
  static constexpr int bytes = 16 * width * 2;

  __device__ static std::uint32_t offset(int row, int unit) {
    const int exchanged = (row & 6) ^ (row & 1) * 4;
    return static_cast<std::uint32_t>((row * units + (unit ^ exchanged)) * 16);
  }
  __device__ static uint4 load(const char* rows, int row, int unit) {
    return *reinterpret_cast<const uint4*>(rows + offset(row, unit));
  }

  /// Asks for the rows of `matrix` of a step's columns; their units fall to this lane in turn.
  __device__ static void start(std::uint32_t to, const FeatureRows& matrix, VertexId column) {
    constexpr int at_once = 32 / units;
    const int unit = WarpLane::number() % units;
#pragma unroll
    for (int i = 0; i < 16 / at_once; ++i) {
      const int row = i * at_once + WarpLane::number() / units;
      const VertexId vertex = __shfl_sync(~0u, column, row);
      copy(to + offset(row, unit), matrix.at(vertex) + unit * 16);
    }
  }
  /// The same of neighbouring rows, of which only `num_rows` exist; the others are 0.
  __device__ static void start(std::uint32_t to, const FeatureRows& matrix, VertexId first_row,
                               int num_rows) {
    constexpr int at_once = 32 / units;
    const int unit = WarpLane::number() % units;
#pragma unroll
    for (int i = 0; i < 16 / at_once; ++i) {
      const int row = i * at_once + WarpLane::number() / units;
      const char* const from = matrix.at(first_row + (row < num_rows ? row : 0)) + unit * 16;
      if (row < num_rows) {
        copy(to + offset(row, unit), from);
      } else {
        cuda::zero_16_async(to + offset(row, unit), from);
      }
    }
  }

 private:
  /// Through the L1 cache: neighbouring windows use the same rows.
  __device__ static void copy(std::uint32_t to, const char* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  }
};

/// A ring of steps: while one is computed, `stages` - 1 are on their way. `Fill::start(memory,
/// step)` asks for what belongs to one.
template <int slot_bytes, int stages>
class StepRing {
 public:
  static constexpr int bytes = slot_bytes * stages;

  __device__ StepRing(const TallAttentionLaunch& launch, std::int32_t begin, std::int32_t end,
                      char* memory)
      : walk_(launch, begin, end), memory_(memory) {}

  template <class Fill>
  __device__ void begin(const Fill& fill) {
#pragma unroll
    for (int i = 0; i < stages; ++i) {
      exists_ = walk_.advance(ahead_);
      refill(fill, i);
    }
    exists_ = walk_.advance(ahead_);
  }

  /// Waits for the next step: its memory and bits. Of a window's first step the window's own rows,
  /// which were asked for before the latest step, have come, too.
  __device__ const char* wait(bool first) const {
    if (stages > 2 && !first) {
      cuda::wait_for_copies<stages - 1>();
    } else {
      cuda::wait_for_copies<1>();
    }
    __syncwarp();
    return slot();
  }
  __device__ std::uint32_t bits() const { return bits_[0]; }

  /// When the step has been computed: another takes its place.
  template <class Fill>
  __device__ void next(const Fill& fill) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i + 1 < stages; ++i) bits_[i] = bits_[i + 1];
    refill(fill, stages - 1);
    exists_ = walk_.advance(ahead_);
  }

 private:
  __device__ char* slot() const { return memory_ + turn_ * slot_bytes; }

  template <class Fill>
  __device__ void refill(const Fill& fill, int place) {
    if (exists_) fill.start(slot(), ahead_.column);
    cuda::commit_copies();
    bits_[place] = ahead_.bits;
    turn_ = turn_ + 1 == stages ? 0 : turn_ + 1;
  }

  StepWalk<LaneColumn> walk_;
  char* memory_;
  int turn_ = 0;  ///< whose slot is the next to be computed, and then the next to be filled
  StepWalk<LaneColumn>::Step ahead_;
  bool exists_ = false;
  std::uint32_t bits_[stages];
};

}  // namespace tessera::ops
