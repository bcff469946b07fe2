// SPDX-License-Identifier: Apache-2.0
#include "tessera/sample/neighbours.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/requirements.hpp"
#include "sample/candidates.hpp"
#include "sample/hops.hpp"
#include "sample/placed.hpp"

namespace tessera::sample {
namespace {

/// The edges of one row, by their sources, as graphs have them; equal sources by position.
struct RowEdge {
  VertexId source;
  EdgeOffset position;
  friend auto operator<=>(const RowEdge&, const RowEdge&) = default;
};

/// Puts the edges of every row in order.
void sort_rows(const Hops& hops, Buffer<VertexId>& sources, Buffer<EdgeOffset>& positions,
               const Candidates& candidates) {
  const std::int64_t rows = std::ssize(hops.offsets) - 1;
  parallel_ranges(rows, 256, [&](std::int64_t first, std::int64_t last) {
    std::vector<RowEdge> row;
    for (std::int64_t r = first; r < last; ++r) {
      const auto begin = static_cast<std::size_t>(hops.offsets[static_cast<std::size_t>(r)]);
      const auto end = static_cast<std::size_t>(hops.offsets[static_cast<std::size_t>(r) + 1]);
      row.clear();
      for (std::size_t k = begin; k < end; ++k) {
        row.push_back({hops.sources[k], candidates.position(hops.candidates[k])});
      }
      std::sort(row.begin(), row.end());
      auto k = static_cast<EdgeOffset>(begin);
      for (const RowEdge& edge : row) {
        sources[k] = edge.source;
        positions[k++] = edge.position;
      }
    }
  });
}

/// The first `size` elements of an array.
template <class T>
SharedArray<T> prefix(const SharedArray<T>& array, std::int64_t size) {
  return {std::make_shared<SharedArray<T>>(array), array.data(), size};
}

}  // namespace

struct NeighbourSampler::State {
  Graph graph;
  on_gpu::PlacedGraph placed;
  HopOptions options;
  std::vector<std::int64_t> vertex_times;
  Place place;

  /// Whether edges of a sample may be equal.
  bool repeats() const {
    return (options.replace && !options.induced) || graph.has_repeated_edges();
  }

  NeighbourSample sample_of(Hops&& hops) const {
    const EdgeOffset edges = hops.offsets.back();
    Buffer<VertexId> sorted_sources(edges);
    Buffer<EdgeOffset> positions(edges);
    sort_rows(hops, sorted_sources, positions, placed.candidates);
    Buffer<float> drawn_values(graph.has_values() ? edges : 0);
    parallel_for(drawn_values.size(), even_grain(edges),
                 [&](EdgeOffset k) { drawn_values[k] = graph.values()[positions[k]]; });
    const SharedArray<VertexId> sources(std::move(sorted_sources));
    const SharedArray<float> values(std::move(drawn_values));
    const SharedArray<EdgeOffset> offsets(std::move(hops.offsets));
    NeighbourSample sample{std::move(hops.vertices),       std::move(hops.trees),
                           std::move(hops.vertices_until), std::move(hops.edges_until),
                           std::move(positions),           {}};
    for (std::size_t hop = options.fan_outs.size(); hop > 0; --hop) {
      const std::int64_t cols =
          options.induced ? sample.vertices.size() : sample.vertices_until[hop];
      const std::int64_t rows = options.induced ? cols : sample.vertices_until[hop - 1];
      const EdgeOffset count = options.induced ? edges : sample.edges_until[hop];
      Graph layer(static_cast<VertexId>(rows), static_cast<VertexId>(cols),
                  prefix(offsets, rows + 1), prefix(sources, count),
                  prefix(values, values.empty() ? 0 : count));
      sample.layers.push_back(repeats() ? layer.with_repeated_edges() : std::move(layer));
    }
    return sample;
  }
};

NeighbourSampler::NeighbourSampler(const Graph& graph, const NeighbourOptions& options) {
  detail::require_square(graph, "neighbours");
  detail::require_no_scales(graph, "neighbours");
  HopOptions hops{options.fan_outs, options.replace,
                  options.disjoint, options.time_strategy == TimeStrategy::latest,
                  options.induced,  options.seed};
  const EdgeKnowledge knowledge{options.edge_weights, options.edge_times, options.vertex_times};
  const Place place = options.place();
  const bool on_cpu = place.device.kind == DeviceKind::cpu;
  if (!on_cpu && options.induced) {
    throw Error(ErrorCode::unsupported, "induced samples on a GPU", "neighbours",
                "draw them on the CPU");
  }
  on_gpu::PlacedGraph placed;
  if (on_cpu) {
    placed.candidates = candidates_of(graph.row_offsets(), graph.col_indices(), knowledge);
  } else {
    placed = on_gpu::placed_graph(graph, knowledge, options.edge_memory, place);
  }
  check_hops(hops, placed.candidates);
  state_ = std::make_unique<const State>(
      State{graph,
            std::move(placed),
            std::move(hops),
            {options.vertex_times.begin(), options.vertex_times.end()},
            place});
}

NeighbourSampler::~NeighbourSampler() = default;
NeighbourSampler::NeighbourSampler(NeighbourSampler&&) noexcept = default;
NeighbourSampler& NeighbourSampler::operator=(NeighbourSampler&&) noexcept = default;

NeighbourSample NeighbourSampler::draw(std::span<const VertexId> seeds, std::uint64_t step,
                                       std::span<const std::int64_t> seed_times) const {
  const State& state = *state_;
  std::vector<std::int64_t> own_times;
  if (seed_times.empty() && !state.vertex_times.empty()) {
    for (const VertexId seed : seeds) {
      const bool is_there = seed >= 0 && seed < state.graph.num_rows();  // if not, drawing says so
      own_times.push_back(is_there ? state.vertex_times[static_cast<std::size_t>(seed)] : 0);
    }
    seed_times = own_times;
  }
  const Candidates& candidates = state.placed.candidates;
  if (state.place.device.kind == DeviceKind::cpu) {
    return state.sample_of(draw_hops(candidates, state.options, seeds, step, seed_times));
  }
  seed_times = checked_times(candidates, seeds, seed_times);
  return on_gpu::sample_of(
      on_gpu::draw_hops(candidates, state.options, seeds, step, seed_times, true, state.place),
      state.placed, state.options.fan_outs.size(), state.repeats(), state.place);
}

}  // namespace tessera::sample
