// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/cuts.hpp"
#include "tessera/core/dtype.hpp"

namespace tessera::ops {

/// Everything a launch needs; passed to the GPU by value. There is no epilogue.
struct HeadsLaunch {
  struct Work {
    cuda::CutRows rows;
    int lanes = 32;          ///< that load one row of x: a power of two
    float* slots = nullptr;  ///< pieces x features
  };

  struct Matrix {
    const VertexId* indices = nullptr;
    const EdgeOffset* positions = nullptr;  ///< of edges in CSR, where a row is a column of A
    const void* values = nullptr;           ///< edges x heads, stored as features are
    std::int64_t value_stride = 0;
  };

  struct Features {
    const void* x = nullptr;
    std::int64_t x_stride = 0;  ///< in elements, as all that follow
    void* y = nullptr;
    std::int64_t y_stride = 0;
    std::int64_t count = 0;
    std::int64_t head_width = 1;
    bool of_edges = false;  ///< x has a row per edge; nothing is weighted
  };

  Work work;
  Matrix matrix;
  Features features;
};

using HeadsFunction = void (*)(const HeadsLaunch& launch, Stream stream);

/// What sets kernels apart. Every head of X and Y lies on 16-byte boundaries if `aligned`.
struct HeadsKey {
  Precision precision = Precision::fp32;
  bool aligned = true;

  friend constexpr bool operator==(const HeadsKey&, const HeadsKey&) = default;
};

template <HeadsKey key>
struct HeadsKernel {
  static HeadsFunction get();
};

}  // namespace tessera::ops
