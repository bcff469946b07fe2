// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "cuda/edge_rows.hpp"
#include "ops/sddmm/cuda/edges/policy.hpp"

namespace tessera::ops {

/// An edge of an order other than CSR's.
struct OrderedEdge {
  VertexId source = 0;
  std::uint32_t position = 0;  ///< in CSR
};

/// One end of the edges: its features, and what results are multiplied by (1 if null).
struct EdgeEnd {
  const void* features = nullptr;
  std::int64_t stride = 0;  ///< in elements
  const float* scale = nullptr;
};

/// Everything a launch needs; passed to the GPU by value. Consecutive edges share their `kept` end:
/// the target in CSR's order, the source where edges are ordered by it.
struct EdgesLaunch {
  EdgeOffset num_edges = 0;
  const VertexId* indices = nullptr;
  cuda::EdgeRows edge_rows;
  const OrderedEdge* order = nullptr;  ///< null: CSR's

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

/// The kernels, compiled in units of their own (inst/): for every policy one function for each
/// precision.
using VectorFunctions = std::array<EdgesFunction, vector_policies.size()>;
using ScalarFunctions = std::array<EdgesFunction, scalar_policies.size()>;

extern const VectorFunctions edge_vectors_fp32, edge_vectors_bf16, edge_vectors_fp16;
extern const ScalarFunctions edge_scalars_fp32, edge_scalars_bf16, edge_scalars_fp16;

/// E[e][h] = U[i][h] + V[j][h].
extern const EdgesFunction edge_sums_fp32, edge_sums_bf16, edge_sums_fp16;

}  // namespace tessera::ops
