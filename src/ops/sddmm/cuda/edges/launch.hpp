// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "cuda/edge_rows.hpp"
#include "ops/sddmm/cuda/edges/policy.hpp"
#include "tessera/core/dtype.hpp"

namespace tessera::ops {

/// One end of the edges: its features, and what results are multiplied by (1 if null).
struct EdgeEnd {
  const void* features = nullptr;
  std::int64_t stride = 0;  ///< in elements
  const float* scale = nullptr;
};

/// Everything a launch needs; passed to the GPU by value. Consecutive edges share their `kept` end,
/// the target.
struct EdgesLaunch {
  EdgeOffset num_edges = 0;
  const VertexId* indices = nullptr;
  cuda::EdgeRows edge_rows;

  EdgeEnd kept;
  EdgeEnd gathered;
  void* edges = nullptr;
  std::int64_t edges_stride = 0;
  std::int64_t width = 0;  ///< features of a head
  std::int64_t heads = 1;

  int tiles_per_warp = 1;
};

/// Runs one policy on the caller's stream.
using EdgesFunction = void (*)(const EdgesLaunch& launch, Stream stream);

/// What sets kernels of dot products apart: heads on 16-byte boundaries are taken in vectors.
struct EdgesKey {
  Precision precision = Precision::fp32;
  bool vectors = true;

  friend constexpr bool operator==(const EdgesKey&, const EdgesKey&) = default;
};

/// One for each of `vector_policies` or `scalar_policies`. Compiled in units of their own (inst/).
template <EdgesKey key>
struct EdgesKernels {
  static std::span<const EdgesFunction> get();
};

/// The kernel of stream.cuh: edges in CSR's order, one head, no scales.
template <Precision precision>
struct EdgeStream {
  static EdgesFunction get();
};

/// E[e][h] = U[i][h] + V[j][h].
template <Precision precision>
struct EdgeSumsKernel {
  static EdgesFunction get();
};

}  // namespace tessera::ops
