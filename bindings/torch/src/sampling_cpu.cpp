// SPDX-License-Identifier: Apache-2.0
// Drawing neighbours, and what is known about a graph's edges.
#include <algorithm>
#include <string>
#include <utility>

#include "sampling.hpp"
#include "structure.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::torch_ops {
namespace {

constexpr const char* where = "neighbours";

/// Of values of the caller's edges or vertices, so many, in a type.
std::optional<Tensor> checked(const std::optional<Tensor>& values, std::int64_t count,
                              ScalarType type, const char* what) {
  if (!values) return std::nullopt;
  if (values->dim() != 1 || values->size(0) != count) {
    throw Error(ErrorCode::invalid_argument,
                std::string(what) + " of " + std::to_string(values->numel()) + " numbers for " +
                    std::to_string(count),
                where, "give one number for each");
  }
  return torch::stable::contiguous(in_type(*values, type));
}

/// What can be drawn from a graph: offsets of targets, sources, numbers of the caller's edges,
/// times, weights and running weights; the last three are empty where there are none.
std::vector<Tensor> neighbour_candidates(Tensor index, std::optional<Tensor> offsets,
                                         std::int64_t targets, std::int64_t sources,
                                         std::int64_t layout, std::int64_t loops,
                                         std::optional<Tensor> edge_weight,
                                         std::optional<Tensor> edge_time,
                                         std::optional<Tensor> vertex_time) {
  Structure structure({index, offsets, targets, sources, layout, loops});
  if (targets != sources) {
    throw Error(ErrorCode::invalid_argument,
                "the graph is rectangular (" + std::to_string(targets) + " targets x " +
                    std::to_string(sources) + " sources)",
                where, "use a graph whose targets and sources are the same vertices");
  }
  const std::int64_t edges = structure.caller_edges();
  const auto in_rows = [&](const std::optional<Tensor>& values) -> std::optional<Tensor> {
    return values ? std::optional(structure.in_rows(*values)) : std::nullopt;
  };
  const auto weights = in_rows(checked(edge_weight, edges, ScalarType::Float, "weights"));
  const auto times = in_rows(checked(edge_time, edges, ScalarType::Long, "times"));
  const auto of_vertices = checked(vertex_time, targets, ScalarType::Long, "times");
  const Graph graph = structure.graph(Norm::none, 1);
  const sample::Candidates candidates = sample::candidates_of(
      graph.row_offsets(), graph.col_indices(),
      {span_of<float>(weights), span_of<std::int64_t>(times), span_of<std::int64_t>(of_vertices)});
  Tensor edge_numbers = structure.in_rows(counting(index, edges));
  if (!candidates.positions.empty()) {
    edge_numbers = selected(edge_numbers, numbers(index, candidates.positions));
  }
  const auto size = candidates.sources.size();
  return {numbers(index, candidates.offsets),
          tensor_of<VertexId>(index, candidates.sources.data(), size, ScalarType::Int),
          edge_numbers,
          numbers(index, candidates.times),
          tensor_of<float>(index, candidates.weights.data(), candidates.weights.size(),
                           ScalarType::Float),
          tensor_of<double>(index, candidates.running_weights.data(),
                            candidates.running_weights.size(), ScalarType::Double)};
}

/// Vertices by number, source and target of each edge by number, numbers of the caller's edges, the
/// tree of each vertex (empty unless disjoint), and how many vertices and edges there are until the
/// end of each hop.
std::vector<Tensor> draw_neighbours(std::vector<Tensor> known, Tensor seeds,
                                    std::optional<Tensor> seed_times, Tensor fan_outs, bool replace,
                                    bool disjoint, bool latest, bool induced, std::int64_t seed,
                                    std::int64_t step) {
  const sample::Candidates candidates = known_candidates(known);
  const auto wanted = shared<std::int64_t>(fan_outs).span();
  const sample::HopOptions options{
      {wanted.begin(), wanted.end()},  replace, disjoint, latest, induced,
      static_cast<std::uint64_t>(seed)};
  check_hops(options, candidates);
  const sample::Hops hops =
      draw_hops(candidates, options, checked_seeds(seeds, candidates),
                static_cast<std::uint64_t>(step), span_of<std::int64_t>(seed_times));

  const auto edges = static_cast<std::int64_t>(hops.candidates.size());
  Tensor targets = empty_beside(seeds, edges, ScalarType::Long);
  Tensor edge_numbers = empty_beside(seeds, edges, ScalarType::Long);
  auto* const target = static_cast<std::int64_t*>(targets.mutable_data_ptr());
  auto* const number = static_cast<std::int64_t*>(edge_numbers.mutable_data_ptr());
  const auto* const numbers_of = edge_numbers_of(known);
  parallel_for(std::ssize(hops.offsets) - 1, 1024, [&](std::int64_t row) {
    const auto begin = hops.offsets[static_cast<std::size_t>(row)];
    const auto end = hops.offsets[static_cast<std::size_t>(row) + 1];
    std::fill(target + begin, target + end, row);
    for (EdgeOffset k = begin; k < end; ++k) {
      number[k] = numbers_of[hops.candidates[static_cast<std::size_t>(k)]];
    }
  });
  return {numbers(seeds, hops.vertices),
          numbers(seeds, hops.sources),
          targets,
          edge_numbers,
          numbers(seeds, hops.trees),
          numbers(seeds, hops.vertices_until),
          numbers(seeds, hops.edges_until)};
}

}  // namespace

void register_sampling(torch::stable::detail::StableLibrary& library) {
  library.impl("neighbour_candidates", TORCH_BOX(&Guarded<&neighbour_candidates>::run));
  library.impl("draw_neighbours", TORCH_BOX(&Guarded<&draw_neighbours>::run));
}

}  // namespace tessera::torch_ops
