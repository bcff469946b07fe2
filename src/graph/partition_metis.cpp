// SPDX-License-Identifier: Apache-2.0
#include "graph/partition_methods.hpp"

#include "tessera/core/error.hpp"
#include "tessera/graph/partition.hpp"

#ifdef TESSERA_WITH_METIS

#include <metis.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include <fmt/format.h>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera {

bool built_with_metis() noexcept { return true; }

namespace detail {
namespace {

template <class T>
std::vector<idx_t> as_metis_indices(const SharedArray<T>& values) {
  // METIS wants an address even where there is nothing.
  std::vector<idx_t> indices(static_cast<std::size_t>(std::max<std::int64_t>(values.size(), 1)));
  parallel_for(values.size(), even_grain(values.size()), [&](std::int64_t i) {
    indices[static_cast<std::size_t>(i)] = static_cast<idx_t>(values[i]);
  });
  return indices;
}

void check_status(int status) {
  if (status == METIS_OK) return;
  // Where an inner partition lacks memory, the outer one calls it a plain error. With a graph and
  // options that it takes, it has no other.
  if (status == METIS_ERROR_MEMORY || status == METIS_ERROR) {
    throw Error(ErrorCode::out_of_memory, "METIS ran out of memory", "partition",
                "use the method 'multilevel'");
  }
  throw Error(ErrorCode::internal, fmt::format("METIS failed with status {}", status), "partition",
              "use the method 'multilevel'");
}

}  // namespace

Assignment partition_metis(const PartitionTask& task) {
  if (task.graph.num_edges() > std::numeric_limits<idx_t>::max()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} edges are more than this METIS can count", task.graph.num_edges()),
                "partition", "use the method 'multilevel'");
  }
  Assignment assignment(static_cast<std::size_t>(task.graph.num_rows()));
  // METIS divides by zero bisections when there is but one part.
  if (task.parts == 1) return assignment;

  report(task.progress, "partitioning with METIS");
  const Graph loop_free = without_self_loops(task.graph);
  std::vector<idx_t> offsets = as_metis_indices(loop_free.row_offsets());
  std::vector<idx_t> neighbours = as_metis_indices(loop_free.col_indices());
  std::vector<idx_t> part_of(assignment.size());
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = static_cast<idx_t>(task.seed & 0x7FFFFFFFu);
  options[METIS_OPTION_UFACTOR] =
      static_cast<idx_t>(std::clamp(std::lround(task.imbalance * 1000), 1L, 1000000L));
  idx_t vertices = loop_free.num_rows();
  idx_t constraints = 1;
  idx_t parts = task.parts;
  idx_t cut = 0;
  {
    // METIS draws from the random numbers of the C library, which are one sequence per process.
    static std::mutex one_at_a_time;
    const std::scoped_lock lock(one_at_a_time);
    check_status(METIS_PartGraphKway(&vertices, &constraints, offsets.data(), neighbours.data(),
                                     nullptr, nullptr, nullptr, &parts, nullptr, nullptr, options,
                                     &cut, part_of.data()));
  }
  std::transform(part_of.begin(), part_of.end(), assignment.begin(),
                 [](idx_t part) { return static_cast<std::int32_t>(part); });
  repair(task, assignment);
  return assignment;
}

}  // namespace detail
}  // namespace tessera

#else

namespace tessera {

bool built_with_metis() noexcept { return false; }

namespace detail {

Assignment partition_metis(const PartitionTask&) {
  throw Error(ErrorCode::backend_unavailable, "built without METIS", "partition",
              "use the method 'multilevel', or install METIS and build again");
}

}  // namespace detail
}  // namespace tessera

#endif
