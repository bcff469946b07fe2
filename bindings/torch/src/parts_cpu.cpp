// SPDX-License-Identifier: Apache-2.0
// Parts of a graph for several processes, on the CPU.
#include <algorithm>

#include "operators.hpp"
#include "structure.hpp"
#include "tessera/graph/partition.hpp"

namespace tessera::torch_ops {
namespace {

/// The part of each vertex.
Tensor vertex_parts(Tensor index, std::optional<Tensor> offsets, std::int64_t targets,
                    std::int64_t sources, std::int64_t layout, std::int64_t loops,
                    std::int64_t parts, std::int64_t seed) {
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const Partition found = partition(
      structure->graph(Norm::none, 1),
      {.parts = static_cast<std::int32_t>(parts), .seed = static_cast<std::uint64_t>(seed)});
  Tensor result = empty_beside(index, std::ssize(found.assignment), ScalarType::Long);
  std::copy(found.assignment.begin(), found.assignment.end(),
            static_cast<std::int64_t*>(result.mutable_data_ptr()));
  return result;
}

}  // namespace
}  // namespace tessera::torch_ops

STABLE_TORCH_LIBRARY_IMPL(tessera, CPU, library) {
  using namespace tessera::torch_ops;
  library.impl("vertex_parts", TORCH_BOX(&Guarded<&vertex_parts>::run));
}
