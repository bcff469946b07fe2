// SPDX-License-Identifier: Apache-2.0
#include "cuda/symmetry.hpp"

#include <memory>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "graph/access.hpp"

namespace tessera::cuda {
namespace {

constexpr int block_threads = 256;
constexpr const char* symmetry_key = "symmetric";

/// Where edge `k` of row i, to j, has no twin in row j, says so. Of repeated edges the second has
/// to have a second twin.
__device__ bool has_twin(const Offsets& offsets, const VertexId* cols, VertexId row,
                         EdgeOffset begin, EdgeOffset k) {
  const VertexId col = cols[k];
  EdgeOffset first = k;
  while (first > begin && cols[first - 1] == col) --first;
  const EdgeOffset end = offset_at(offsets, col + 1);
  const EdgeOffset twin = lower_bound(cols, offset_at(offsets, col), end, row) + (k - first);
  return twin < end && cols[twin] == row;
}

/// A warp takes a row.
__global__ __launch_bounds__(block_threads) void find_one_way(VertexId num_rows, Offsets offsets,
                                                              const VertexId* cols,
                                                              std::int32_t* found) {
  const std::int64_t row = thread_number() / 32;
  if (row >= num_rows) return;
  const EdgeOffset begin = offset_at(offsets, row);
  const EdgeOffset end = offset_at(offsets, row + 1);
  for (EdgeOffset k = begin + threadIdx.x % 32; k < end; k += 32) {
    if (has_twin(offsets, cols, static_cast<VertexId>(row), begin, k)) continue;
    *found = 1;
    return;
  }
}

bool compare_twins(const Graph& graph, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  const auto rows = device_rows(graph, place);
  Buffer<std::int32_t> found(1, place);
  clear(found, place);
  launch(find_one_way, dim3(num_blocks(std::int64_t{rows->num_rows} * 32, block_threads)),
         block_threads, place.stream, rows->num_rows, rows->offsets(), rows->indices.data(),
         found.data());
  return to_host(found, place)[0] == 0;
}

}  // namespace

bool is_symmetric(const Graph& graph, const Place& place) {
  if (graph.num_rows() != graph.num_cols()) return false;
  return *detail::GraphAccess::kept(graph, symmetry_key,
                                    [&] { return compare_twins(graph, place); });
}

void know_symmetry(const Graph& graph, bool symmetric) {
  detail::GraphAccess::know(graph, symmetry_key, std::make_shared<const bool>(symmetric));
}

bool is_known_symmetric(const Graph& graph) {
  const auto known = detail::GraphAccess::known(graph, symmetry_key);
  return known != nullptr && *std::static_pointer_cast<const bool>(known);
}

}  // namespace tessera::cuda
