// SPDX-License-Identifier: Apache-2.0
#include "sample/candidates.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/requirements.hpp"

namespace tessera::sample {
namespace {

constexpr const char* where = "neighbours";

void require_size(std::size_t size, std::int64_t expected, const char* name, const char* of) {
  if (size == 0 || static_cast<std::int64_t>(size) == expected) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} {} for {} {}", size, name, expected, of),
              where, fmt::format("give one for each of the {}", of));
}

void require_weights(std::span<const float> weights) {
  detail::require_finite(weights, "edge_weights", where, "give every edge a weight from 0 on");
  const auto odd = std::find_if(weights.begin(), weights.end(), [](float w) { return w < 0; });
  if (odd == weights.end()) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("edge_weights[{}] is {}", odd - weights.begin(), *odd), where,
              "give every edge a weight from 0 on");
}

void check(const SharedArray<EdgeOffset>& offsets, const SharedArray<VertexId>& sources,
           const EdgeKnowledge& knowledge) {
  require_size(knowledge.edge_weights.size(), sources.size(), "edge weights", "edges");
  require_size(knowledge.edge_times.size(), sources.size(), "edge times", "edges");
  require_size(knowledge.vertex_times.size(), offsets.size() - 1, "vertex times", "vertices");
  if (!knowledge.edge_times.empty() && !knowledge.vertex_times.empty()) {
    throw Error(ErrorCode::invalid_argument, "both edges and vertices have times", where,
                "give the times of one of them");
  }
  require_weights(knowledge.edge_weights);
}

/// Makes the arrays anew, target by target.
class Arranger {
 public:
  Arranger(const SharedArray<EdgeOffset>& offsets, const SharedArray<VertexId>& sources,
           const EdgeKnowledge& knowledge)
      : old_offsets_(offsets), old_sources_(sources), knowledge_(knowledge) {}

  Candidates arranged() {
    const std::int64_t vertices = old_offsets_.size() - 1;
    Buffer<EdgeOffset> offsets(vertices + 1);
    parallel_for(vertices, even_grain(vertices), [&](std::int64_t v) {
      EdgeOffset count = 0;
      for (EdgeOffset k = old_offsets_[v]; k < old_offsets_[v + 1]; ++k) count += weight(k) > 0;
      offsets[v] = count;
    });
    offsets[vertices] = 0;
    const EdgeOffset edges = exclusive_scan(offsets.span());
    const bool timed = !knowledge_.edge_times.empty() || !knowledge_.vertex_times.empty();
    const bool weighted = !knowledge_.edge_weights.empty();
    Buffer<VertexId> sources(edges);
    Buffer<EdgeOffset> positions(edges);
    Buffer<std::int64_t> times(timed ? edges : 0);
    Buffer<float> weights(weighted ? edges : 0);
    Buffer<double> running(weighted ? edges : 0);
    parallel_for(vertices, even_grain(vertices, 256), [&](std::int64_t v) {
      EdgeOffset end = offsets[v];
      for (EdgeOffset k = old_offsets_[v]; k < old_offsets_[v + 1]; ++k) {
        if (weight(k) > 0) positions[end++] = k;
      }
      if (timed) {
        std::stable_sort(positions.data() + offsets[v], positions.data() + end,
                         [&](EdgeOffset a, EdgeOffset b) { return time(a) < time(b); });
      }
      double sum = 0;
      for (EdgeOffset k = offsets[v]; k < end; ++k) {
        sources[k] = old_sources_[positions[k]];
        if (timed) times[k] = time(positions[k]);
        if (!weighted) continue;
        weights[k] = weight(positions[k]);
        running[k] = sum += weights[k];
      }
    });
    return {std::move(offsets), std::move(sources), std::move(positions),
            std::move(times),   std::move(weights), std::move(running)};
  }

 private:
  float weight(EdgeOffset edge) const {
    return knowledge_.edge_weights.empty()
               ? 1
               : knowledge_.edge_weights[static_cast<std::size_t>(edge)];
  }
  std::int64_t time(EdgeOffset edge) const {
    return knowledge_.edge_times.empty()
               ? knowledge_.vertex_times[static_cast<std::size_t>(old_sources_[edge])]
               : knowledge_.edge_times[static_cast<std::size_t>(edge)];
  }

  const SharedArray<EdgeOffset>& old_offsets_;
  const SharedArray<VertexId>& old_sources_;
  EdgeKnowledge knowledge_;
};

}  // namespace

Candidates candidates_of(const SharedArray<EdgeOffset>& offsets,
                         const SharedArray<VertexId>& sources, const EdgeKnowledge& knowledge) {
  check(offsets, sources, knowledge);
  if (!knowledge.is_any()) return {offsets, sources, {}, {}, {}, {}};
  return Arranger(offsets, sources, knowledge).arranged();
}

}  // namespace tessera::sample
