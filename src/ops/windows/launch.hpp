// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/rows.hpp"
#include "ops/dense/cuda/epilogue.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tiles/stages.hpp"

namespace tessera::ops {

/// Everything a launch needs; passed to the GPU by value.
struct TallLaunch {
  struct Work {
    const tiles::Stage* stages = nullptr;
    const std::int32_t* worker_offsets = nullptr;  ///< a block's stages
    std::int32_t num_workers = 0;

    /// Sums of pieces, as the threads of a block hold them. A slot's window counts the pieces that
    /// have arrived, for each width of features, at its first slot.
    float* slots = nullptr;
    unsigned* arrivals = nullptr;
    const tiles::CutWindow* slot_windows = nullptr;
    std::int32_t num_slots = 0;
    /// Sums of the stretches of a piece before the last, a slot for each block.
    float* stretch_sums = nullptr;
    const VertexId* row_map = nullptr;  ///< which row each row of a window is; null: itself
    /// The next launch is the rest of the same run, or the last one was the beginning of it
    /// (cuda/overlapped_pair.cuh).
    bool leads = false;
    bool follows = false;
  };

  struct Matrix {
    const VertexId* columns = nullptr;
    const std::uint32_t* words = nullptr;
    /// One for each of `columns`; null: 1. fp32 features are multiplied by a float. 16-bit features
    /// are multiplied in the matrix unit by two 16-bit numbers that add up to it, the high one in
    /// the low half.
    const std::uint32_t* scales = nullptr;
    /// Where edges have values, with scales included (tiles/tile_values.hpp): where each thread's
    /// begin, one for each of `words`, where each stage's are, and the values themselves.
    const std::uint32_t* starts = nullptr;
    const tiles::StageValues* stage_values = nullptr;
    const std::uint32_t* values = nullptr;
    std::int32_t stage_units = 0;  ///< the most that a stage has
    /// Of the edges that are not in windows: rows without any have no sums in `epilogue.rest`.
    cuda::Offsets rest_offsets;
  };

  struct Features {
    const void* x = nullptr;
    std::int64_t x_stride = 0;  ///< in elements, as all that follow
    void* y = nullptr;
    std::int64_t y_stride = 0;
    std::int64_t count = 0;
    /// Of them, those of this launch and of each of its blocks (panels.hpp).
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t panel_features = 0;

    /// Where a panel begins.
    constexpr std::int64_t panel(unsigned number) const { return begin + number * panel_features; }
  };

  Work work;
  Matrix matrix;
  Features features;
  EpilogueLaunch epilogue;
};

/// One kernel: what it computes at once, how to run it, and how many blocks of it a GPU holds.
struct TallFunction {
  int width = 0;      ///< features of a block
  int max_steps = 0;  ///< of a stage
  void (*launch)(const TallLaunch& launch, Stream stream) = nullptr;
  /// Where stages have up to so many units of values.
  int (*resident_blocks)(std::int32_t stage_units) = nullptr;
};

}  // namespace tessera::ops
