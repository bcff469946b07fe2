// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ops/dense/cuda/epilogue.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tiles/pieces.hpp"

namespace tessera::ops {

/// How the edges of a window stand in its words, and with it the instruction that takes them:
/// windows of 8 rows in bits (`mma`), or of 16 rows in quads of columns (`mma.sp`), with values or
/// without.
enum class ShortEncoding { bits, quads, valued_quads };

/// Everything a launch needs; passed to the GPU by value.
struct ShortLaunch {
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
    /// Eight for each lane of a step (tiles/quad_values.hpp), as `pack_values` writes them.
    const std::uint32_t* values = nullptr;
    const float* column_scales = nullptr;  ///< of fp32 features; null: 1
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
struct ShortFunction {
  int width = 0;  ///< features of a warp
  void (*launch)(const ShortLaunch& launch, Stream stream) = nullptr;
  int (*resident_warps)() = nullptr;
};

/// What sets kernels apart.
struct ShortKey {
  ShortEncoding encoding = ShortEncoding::bits;
  Precision precision = Precision::bf16;  ///< or fp16; of quads without values also fp32
  bool epilogue = false;
  /// Rows of Y lie on 16-byte boundaries and fill what lanes store; of quads alone they need not.
  bool whole_rows = true;

  friend constexpr bool operator==(const ShortKey&, const ShortKey&) = default;
};

/// Compiled in units of their own (inst/), in the order of their widths.
template <ShortKey key>
struct ShortKernels {
  static std::span<const ShortFunction> get();
};

}  // namespace tessera::ops
