// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/fragments.cuh"

/// Rows of features that come straight from memory to the registers in which matrix instructions
/// want them, in one of two ways.
///
/// Products of rows with rows: in what order features are added does not matter, so that a lane
/// takes 16 bytes of a row at once, and of the window's own row those that meet them. Sums of
/// weighted rows: a lane takes 16 bytes of four rows and pairs them up.
namespace tessera::ops {

/// What a lane 4 g + q has to do with of a step: columns g and g + 8, whose rows meet those of the
/// window; 2q, 2q + 1 and those 8 further on, whose rows are weighted.
struct StepColumns {
  VertexId met[2] = {};
  VertexId weighted[4] = {};

  __device__ void load(const VertexId* columns) {
    met[0] = __ldg(columns + WarpLane::group());
    met[1] = __ldg(columns + WarpLane::group() + 8);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int2 pair = __ldg(reinterpret_cast<const int2*>(columns) + WarpLane::quarter() + 4 * i);
      weighted[2 * i] = pair.x;
      weighted[2 * i + 1] = pair.y;
    }
  }
};

/// The same where registers are too few to have them a step ahead: a lane has one column, and they
/// exchange them.
struct ExchangedColumns : LaneColumn {
  __device__ operator StepColumns() const {
    StepColumns columns;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      columns.met[i] = __shfl_sync(~0u, column, WarpLane::group() + 8 * i);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      columns.weighted[i] = __shfl_sync(~0u, column, 2 * WarpLane::quarter() + i % 2 + i / 2 * 8);
    }
    return columns;
  }
};

__device__ inline uint4 load_unit(const FeatureRows& rows, VertexId row, int feature) {
  return __ldg(reinterpret_cast<const uint4*>(rows.at(row) + feature * 2));
}

/// The rows of the window itself as operands of products with gathered rows: those of each lane lie
/// in shared memory for itself, since registers are scarcer.
template <int width>
class OwnRows {
 public:
  static constexpr int chunks = width / 32;
  static constexpr int bytes = 16 * width * 2;

  __device__ OwnRows(char* memory, const void* matrix, std::int64_t stride)
      : memory_(memory + WarpLane::number() * 16),
        rows_(matrix, stride, width, WarpLane::quarter() * 8) {}

  /// Asks for the rows of a window, zeros for those that it does not have. `turn` is which of
  /// several places they go to.
  __device__ void start(const tiles::Piece& piece, int turn) const {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      const bool exists = place < piece.num_rows && piece.num_steps > 0;
      const char* const from = rows_.at(piece.first_row + (exists ? place : 0));
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const std::uint32_t to = cuda::shared_address(at(chunk, row, turn));
        if (exists) {
          cuda::copy_16_async(to, from + chunk * 64);
        } else {
          cuda::zero_16_async(to, from);
        }
      }
    }
  }

  __device__ uint4 load(int chunk, int row, int turn) const {
    return *reinterpret_cast<const uint4*>(at(chunk, row, turn));
  }
  /// Four features of any row, which another lane may have asked for: half a unit of eight.
  __device__ uint2 load_half(int row, int unit, int half, int turn) const {
    const int lane = row % 8 * 4 + unit % 4;
    return *reinterpret_cast<const uint2*>(at(unit / 4, row / 8, turn) +
                                           (lane - WarpLane::number()) * 16 + half * 8);
  }

 private:
  __device__ char* at(int chunk, int row, int turn) const {
    return memory_ + turn * bytes + (2 * chunk + row) * 512;
  }

  char* memory_;
  FeatureRows rows_;
};

/// Pieces in shared memory, of a window and the next: who keeps them in registers spills them, and
/// who loads them again when a window is done waits.
class HeldPieces {
 public:
  static constexpr int bytes = 2 * static_cast<int>(sizeof(tiles::Piece));

  __device__ explicit HeldPieces(char* memory) : memory_(memory) {}

  __device__ void start(const tiles::Piece* piece, int turn) const {
    constexpr int units = static_cast<int>(sizeof(tiles::Piece)) / 16;
    const int unit = WarpLane::number();
    if (unit >= units) return;
    cuda::copy_16_async(cuda::shared_address(memory_) + (turn * units + unit) * 16u,
                        reinterpret_cast<const char*>(piece) + unit * 16);
  }
  /// When the copies have come and lanes have met: best where nothing else is on its way, as who
  /// lets lanes meet waits for that, too.
  __device__ tiles::Piece load(int turn) const {
    return reinterpret_cast<const tiles::Piece*>(memory_)[turn];
  }

 private:
  char* memory_;
};

/// Gathered rows as operands of products with rows of the window.
template <class T, int width>
class MetRows {
 public:
  static constexpr int chunks = width / 32;

  __device__ MetRows(const void* matrix, std::int64_t stride)
      : rows_(matrix, stride, width, WarpLane::quarter() * 8) {}

  /// 64 features of the rows of a step.
  __device__ void load(const StepColumns& columns, int part) {
#pragma unroll
    for (int block = 0; block < 2; ++block) {
#pragma unroll
      for (int chunk = 2 * part; chunk < 2 * part + 2; ++chunk) {
        held_[block][chunk] = load_unit(rows_, columns.met[block], chunk * 32);
      }
    }
  }
  __device__ void load(const StepColumns& columns) {
#pragma unroll
    for (int part = 0; part < width / 64; ++part) load(columns, part);
  }

  __device__ void multiply(const OwnRows<width>& own, int turn, StepCells& cells) const {
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const uint4 rows[2] = {held_[0][chunk], held_[1][chunk]};
      cells.add_products<T>(own.load(chunk, 0, turn), own.load(chunk, 1, turn), rows);
    }
  }

 private:
  FeatureRows rows_;
  uint4 held_[2][chunks];  ///< of columns g and g + 8
};

/// 64 features of gathered rows, to be weighted.
struct WeightedRows {
  uint4 held[4];  ///< of columns 2q, 2q + 1, 2q + 8, 2q + 9

  __device__ void load(const FeatureRows& rows, const StepColumns& columns, int chunk) {
#pragma unroll
    for (int i = 0; i < 4; ++i) held[i] = load_unit(rows, columns.weighted[i], chunk * 64);
  }
};

}  // namespace tessera::ops
