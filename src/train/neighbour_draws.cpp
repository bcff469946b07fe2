// SPDX-License-Identifier: Apache-2.0
#include "train/neighbour_draws.hpp"

#include <algorithm>
#include <utility>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/nn/model.hpp"

#include "graph/loops.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t rows_per_task = 512;

/// Where a row has an edge from the vertex of its own number; absent: -1.
EdgeOffset loop_of(const Graph& graph, VertexId row) {
  const auto sources = graph.neighbours(row);
  const auto found = std::lower_bound(sources.begin(), sources.end(), row);
  if (found == sources.end() || *found != row) return -1;
  return graph.row_offsets()[row] + (found - sources.begin());
}

bool has_loops(const Graph& graph) {
  return parallel_reduce(
      graph.num_rows(), 4096, false,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          if (loop_of(graph, static_cast<VertexId>(row)) >= 0) return true;
        }
        return false;
      },
      [](bool a, bool b) { return a || b; });
}

/// Layers that add self loops draw none; those that leave weights aside have none.
Graph drawn_from(const Graph& graph, DrawnEdges edges) {
  if (edges != DrawnEdges::normalised) {
    return edges == DrawnEdges::counted ? graph.with_values({}) : graph;
  }
  return has_loops(graph) ? without_self_loops(graph) : graph;
}

/// D^-1/2 of the whole with self loops.
SharedArray<float> scale_of(const Graph& graph, DrawnEdges edges) {
  return edges == DrawnEdges::normalised ? gcn_normalised(graph).row_scale() : SharedArray<float>();
}

SharedArray<float> loop_weights_of(const Graph& graph, DrawnEdges edges) {
  if (edges != DrawnEdges::normalised || !graph.has_values() || !has_loops(graph)) return {};
  Buffer<float> weights(graph.num_rows());
  parallel_for(graph.num_rows(), even_grain(graph.num_rows()), [&](std::int64_t row) {
    const EdgeOffset loop = loop_of(graph, static_cast<VertexId>(row));
    weights[row] = loop < 0 ? 1.0f : graph.values()[loop];
  });
  return weights;
}

bool draws_all(const sample::NeighbourOptions& options) {
  return std::all_of(options.fan_outs.begin(), options.fan_outs.end(),
                     [](std::int64_t fan_out) { return fan_out == -1; });
}

/// `values[vertices[0]], values[vertices[1]], …`, so many.
SharedArray<float> taken(const SharedArray<float>& values, std::span<const VertexId> vertices,
                         std::int64_t count) {
  Buffer<float> result(count);
  parallel_for(count, 16 * rows_per_task,
               [&](std::int64_t i) { result[i] = values[vertices[static_cast<std::size_t>(i)]]; });
  return result;
}

}  // namespace

DrawnEdges drawn_edges_of(const nn::Layer& model) {
  const auto* const known = dynamic_cast<const nn::Model*>(&model);
  if (known == nullptr) return DrawnEdges::plain;
  switch (known->config().kind) {
    case nn::ModelKind::gcn:
    case nn::ModelKind::sgc: return DrawnEdges::normalised;
    case nn::ModelKind::gin: return DrawnEdges::counted;
    default: return DrawnEdges::plain;
  }
}

NeighbourDraws::NeighbourDraws(const Graph& graph, const sample::NeighbourOptions& options,
                               DrawnEdges edges)
    : graph_(drawn_from(graph, edges)),
      edges_(edges),
      draws_all_(draws_all(options)),
      scale_(scale_of(graph, edges)),
      loop_weights_(loop_weights_of(graph, edges)),
      sampler_(graph_, options) {}

NeighbourDraws::Layers NeighbourDraws::draw(std::span<const VertexId> seeds,
                                            std::uint64_t step) const {
  sample::NeighbourSample sample = sampler_.draw(seeds, step);
  const SharedArray<VertexId>& vertices = sample.vertices.here();
  if (edges_ != DrawnEdges::plain) {
    for (Graph& layer : sample.layers) {
      layer =
          edges_ == DrawnEdges::counted ? counted(layer, vertices) : normalised(layer, vertices);
    }
  }
  return {{vertices.begin(), vertices.end()}, std::move(sample.layers)};
}

float NeighbourDraws::share_of(VertexId vertex, EdgeOffset drawn) const {
  if (drawn == 0) return 1;
  return static_cast<float>(static_cast<double>(graph_.degree(vertex)) /
                            static_cast<double>(drawn));
}

Graph NeighbourDraws::counted(const Graph& drawn, std::span<const VertexId> vertices) const {
  if (draws_all_) return drawn;
  Buffer<float> scale(drawn.num_rows());
  parallel_for(drawn.num_rows(), rows_per_task, [&](std::int64_t i) {
    const auto row = static_cast<VertexId>(i);
    scale[i] = share_of(vertices[static_cast<std::size_t>(i)], drawn.degree(row));
  });
  return drawn.with_scales(std::move(scale), {});
}

/// The loops stand for themselves alone, so that what the others stand for goes into values.
Graph NeighbourDraws::normalised(const Graph& drawn, std::span<const VertexId> vertices) const {
  Graph looped = tessera::detail::with_first_loops(drawn);
  if (!draws_all_ || !loop_weights_.empty()) {
    Buffer<float> values(looped.num_edges());
    parallel_for(looped.num_rows(), rows_per_task, [&](std::int64_t i) {
      const auto row = static_cast<VertexId>(i);
      const VertexId vertex = vertices[static_cast<std::size_t>(i)];
      const float share = share_of(vertex, drawn.degree(row));
      for (EdgeOffset k = looped.row_offsets()[i]; k < looped.row_offsets()[i + 1]; ++k) {
        if (looped.col_indices()[k] == row) {
          values[k] = loop_weights_.empty() ? 1.0f : loop_weights_[vertex];
        } else {
          values[k] = share * (looped.has_values() ? looped.values()[k] : 1.0f);
        }
      }
    });
    looped = looped.with_values(SharedArray<float>(std::move(values)));
  }
  return looped.with_scales(taken(scale_, vertices, looped.num_rows()),
                            taken(scale_, vertices, looped.num_cols()));
}

}  // namespace tessera::train
