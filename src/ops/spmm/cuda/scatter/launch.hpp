// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/dense/cuda/epilogue.hpp"
#include "tessera/graph/coo.hpp"

namespace tessera::ops {

/// Everything a launch needs; passed to the GPU by value. Results are rows of Y: targets, or
/// sources in a backward pass.
struct ScatterLaunch {
  struct Work {
    int lanes = 32;         ///< that take one edge together: a power of two
    bool finishes = false;  ///< whether sums go through `finish_rows` to Y
  };

  struct Matrix {
    const VertexId* rows = nullptr;
    const VertexId* cols = nullptr;
    EdgeOffset num_edges = 0;
    std::int64_t num_results = 0;
    bool transposed = false;              ///< a backward pass: from rows to columns
    const float* graph_values = nullptr;  ///< one of the two, or none
    const void* stored_values = nullptr;  ///< of the run, stored as features are
    std::int64_t value_stride = 1;
    const float* row_numbers = nullptr;      ///< null: 1
    const float* col_numbers = nullptr;      ///< null: 1
    const float* loops = nullptr;            ///< null: none
    const std::uint32_t* degrees = nullptr;  ///< of rows, for a mean; null: a sum
  };

  struct Features {
    const void* x = nullptr;
    std::int64_t x_stride = 0;  ///< in elements, as all that follow
    float* sums = nullptr;
    std::int64_t sums_stride = 0;
    void* y = nullptr;
    std::int64_t y_stride = 0;
    std::int64_t count = 0;
  };

  Work work;
  Matrix matrix;
  Features features;
  EpilogueLaunch epilogue;
};

using ScatterFunction = void (*)(const ScatterLaunch& launch, Stream stream);

/// The gradient of edge values: dot products in the order of the edges.
struct EdgeDotsLaunch {
  ScatterLaunch::Matrix matrix;
  int lanes = 32;  ///< that take one edge together: a power of two
  const void* grad_y = nullptr;
  std::int64_t grad_y_stride = 0;
  const void* x = nullptr;
  std::int64_t x_stride = 0;
  std::int64_t features = 0;
  void* result = nullptr;
  std::int64_t result_stride = 0;
};

using EdgeDotsFunction = void (*)(const EdgeDotsLaunch& launch, Stream stream);

/// Values that a run brings in the order of the edges, on their way to rows.
struct MovedValuesLaunch {
  ScatterLaunch::Matrix matrix;
  const EdgeOffset* edge_ids = nullptr;
  void* moved = nullptr;  ///< stored as features are
  EdgeOffset num_moved = 0;
  float loop_weight = 1;  ///< of those that no edge is moved to
};

using MovedValuesFunction = void (*)(const MovedValuesLaunch& launch, Stream stream);

/// What sets kernels apart. With `aligned` every row of X, and of the sums, lies on 16-byte
/// boundaries and fills them.
struct ScatterKey {
  Precision precision = Precision::fp32;
  WeightFunction function = WeightFunction::product;
  bool aligned = true;

  friend constexpr bool operator==(const ScatterKey&, const ScatterKey&) = default;
};

struct ScatterFunctions {
  ScatterFunction scatter = nullptr;
  EdgeDotsFunction dots = nullptr;
  MovedValuesFunction move_values = nullptr;
};

template <ScatterKey key>
struct ScatterKernels {
  static ScatterFunctions get();
};

}  // namespace tessera::ops
