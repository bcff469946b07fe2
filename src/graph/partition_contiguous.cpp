// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "graph/partition_methods.hpp"

namespace tessera::detail {

VertexId range_begin(VertexId num_vertices, std::int32_t parts, std::int32_t part) {
  return static_cast<VertexId>(std::int64_t{num_vertices} * part / parts);
}

Assignment partition_contiguous(const PartitionTask& task) {
  const VertexId vertices = task.graph.num_rows();
  Assignment assignment(static_cast<std::size_t>(vertices));
  for (std::int32_t part = 0; part < task.parts; ++part) {
    std::fill(assignment.begin() + range_begin(vertices, task.parts, part),
              assignment.begin() + range_begin(vertices, task.parts, part + 1), part);
  }
  return assignment;
}

}  // namespace tessera::detail
