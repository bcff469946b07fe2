// SPDX-License-Identifier: Apache-2.0
// Drawing neighbours on a GPU, from what the CPU has found out about a graph's edges.
#include <utility>

#include "place.hpp"
#include "sample/cuda/edges.hpp"
#include "sample/placed.hpp"
#include "sampling.hpp"

namespace tessera::torch_ops {
namespace {

/// As on the CPU. Seeds, their times and fan-outs lie in this process, and the counts that come
/// last, too. What is known of edges lies on the GPU or in pinned memory.
std::vector<Tensor> draw_neighbours(std::vector<Tensor> known, Tensor seeds,
                                    std::optional<Tensor> seed_times, Tensor fan_outs, bool replace,
                                    bool disjoint, bool latest, bool induced, std::int64_t seed,
                                    std::int64_t step) {
  if (induced) {
    throw Error(ErrorCode::unsupported, "induced samples on a GPU", "neighbours",
                "draw them on the CPU");
  }
  const Tensor& beside = known.at(0);
  const DeviceScope scope(beside);
  const Place place = place_of(beside);
  const sample::Candidates candidates = known_candidates(known);
  const auto wanted = shared<std::int64_t>(fan_outs).span();
  const sample::HopOptions options{
      {wanted.begin(), wanted.end()},  replace, disjoint, latest, induced,
      static_cast<std::uint64_t>(seed)};
  check_hops(options, candidates);
  const std::vector<VertexId> vertices = checked_seeds(seeds, candidates);
  const auto times = checked_times(candidates, vertices, span_of<std::int64_t>(seed_times));
  const sample::on_gpu::PlacedHops hops = sample::on_gpu::draw_hops(
      candidates, options, vertices, static_cast<std::uint64_t>(step), times, false, place);

  const auto empty = [&](std::int64_t size) {
    return empty_beside(beside, size, ScalarType::Long);
  };
  const auto data = [](Tensor& tensor) {
    return static_cast<std::int64_t*>(tensor.mutable_data_ptr());
  };
  const EdgeOffset edges = hops.num_edges();
  Tensor nodes = empty(hops.num_vertices()), trees = empty(disjoint ? hops.num_vertices() : 0);
  Tensor sources = empty(edges), targets = empty(edges), edge_numbers = empty(edges);
  sample::on_gpu::widen({hops.targets.data(), hops.sources.data(), hops.candidates.data(),
                         edge_numbers_of(known), edges},
                        hops.vertices.data(), hops.trees.data(), hops.num_vertices(),
                        {data(nodes), disjoint ? data(trees) : nullptr, data(sources),
                         data(targets), data(edge_numbers)},
                        place.stream);
  return {nodes,
          sources,
          targets,
          edge_numbers,
          trees,
          numbers(seeds, hops.vertices_until),
          numbers(seeds, hops.edges_until)};
}

}  // namespace

void register_sampling(torch::stable::detail::StableLibrary& library) {
  library.impl("draw_neighbours", TORCH_BOX(&Guarded<&draw_neighbours>::run));
}

}  // namespace tessera::torch_ops
