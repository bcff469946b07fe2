// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/edge_scales.hpp"

#include "cuda/launch.cuh"
#include "cuda/search.cuh"

namespace tessera::ops {
namespace {

constexpr unsigned block_threads = 256;

__device__ std::int64_t row_of(const cuda::Offsets& offsets, VertexId num_rows, EdgeOffset edge) {
  if (offsets.narrow == nullptr) return cuda::row_of_edge(offsets.wide, num_rows, edge);
  return cuda::lower_bound(offsets.narrow, 0, std::int64_t{num_rows} + 1,
                           static_cast<std::int32_t>(edge + 1)) -
         1;
}

__global__ void spread_scales(const cuda::Offsets offsets, const VertexId* indices,
                              VertexId num_rows, EdgeOffset num_edges, const float* scales,
                              bool forward, float* of_edges) {
  const EdgeOffset edge = cuda::thread_number();
  if (edge >= num_edges) return;
  of_edges[edge] = scales[forward ? indices[edge] : row_of(offsets, num_rows, edge)];
}

}  // namespace

Buffer<float> edge_scales(const cuda::DeviceRows& rows, const SharedArray<float>& column_scales,
                          bool forward, const Place& place) {
  if (column_scales.empty()) return {};
  Buffer<float> scales(rows.num_edges, place);
  cuda::launch(spread_scales, dim3(cuda::num_blocks(rows.num_edges, block_threads)), block_threads,
               place.stream, rows.offsets(), rows.indices.data(), rows.num_rows, rows.num_edges,
               column_scales.data(), forward, scales.data());
  return scales;
}

}  // namespace tessera::ops
