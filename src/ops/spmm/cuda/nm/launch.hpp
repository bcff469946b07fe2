// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ops/spmm/cuda/epilogue.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tiles/pieces.hpp"

namespace tessera::ops {

inline constexpr int nm_height = 16;

/// Everything a launch needs; passed to the GPU by value.
struct NmLaunch {
  struct Work {
    const tiles::Piece* pieces = nullptr;
    const std::int32_t* worker_offsets = nullptr;  ///< a warp's pieces
    std::int32_t num_workers = 0;

    /// Sums of pieces, as the lanes of a warp hold them, for each width of features.
    float* slots = nullptr;
    std::int32_t num_slots = 0;
    const tiles::CutWindow* cut_windows = nullptr;
    std::int32_t num_cut_windows = 0;
  };

  struct Matrix {
    VertexId num_rows = 0;
    const VertexId* columns = nullptr;
    const std::uint32_t* words = nullptr;
  };

  struct Features {
    const void* x = nullptr;
    std::uint32_t x_row_bytes = 0;
    void* y = nullptr;
    std::int64_t y_stride = 0;  ///< in elements
    std::int32_t count = 0;
  };

  Work work;
  Matrix matrix;
  Features features;
  EpilogueLaunch epilogue;
};

/// One kernel: what it computes at once, how to run it, and how many warps of it a GPU holds.
struct NmFunction {
  int width = 0;  ///< features of a warp
  void (*launch)(const NmLaunch& launch, Stream stream) = nullptr;
  int (*resident_warps)() = nullptr;
};

/// What sets kernels apart.
struct NmKey {
  Precision precision = Precision::bf16;  ///< or fp16
  bool epilogue = false;

  friend constexpr bool operator==(const NmKey&, const NmKey&) = default;
};

/// Features of a warp, by which a key's kernels are ordered.
inline constexpr std::array<int, 2> nm_widths = {64, 128};

/// Compiled in units of their own (inst/).
template <NmKey key>
struct NmKernels {
  static std::span<const NmFunction> all();
};

}  // namespace tessera::ops
