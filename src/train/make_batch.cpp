// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/graph/build.hpp"
#include "tessera/graph/coo.hpp"
#include "tessera/graph/transform.hpp"

#include "core/arena_memory.hpp"
#include "graph/induced_edges.hpp"
#include "graph/select.hpp"
#include "train/batch.hpp"
#include "train/chosen_rows.hpp"
#include "train/pattern_order.hpp"
#include "train/walks.hpp"

namespace tessera::train {
namespace {

/// A copy in the place.
template <class T>
SharedArray<T> copy_in(std::span<const T> values, const Place& place) {
  Buffer<T> copy(std::ssize(values), place);
  copy_bytes(copy.data(), values.data(), values.size_bytes(), place.device, place.stream);
  return copy;
}

}  // namespace

void BatchSource::take_edges() {
  const Graph& graph = problem_.graph;
  groups_.emplace_back(static_cast<std::size_t>(graph.num_rows()));
  std::iota(groups_.front().begin(), groups_.front().end(), VertexId{0});
  Buffer<VertexId> rows(graph.num_edges());
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    std::fill(rows.begin() + graph.row_offsets()[row], rows.begin() + graph.row_offsets()[row + 1],
              row);
  }
  const Place place = form_.place();
  edges_ = {copy_in(std::span<const VertexId>(rows), place),
            copy_in(graph.col_indices().span(), place), copy_in(graph.values().span(), place)};
}

/// What a batch that is seen once is planned on: where sums may depend on timing, its edges as they
/// are.
step::Topology BatchSource::topology_of(std::span<const VertexId> vertices,
                                        const Place& place) const {
  const Graph& whole = problem_.graph;
  const bool as_edges = edges_ && form_.plans.allow_nondeterministic && !whole.has_row_scale() &&
                        !whole.has_col_scale();
  if (!as_edges) return step::Topology(graph_of(vertices, place), place, form_.plans);
  BorrowOptions options;
  options.device = place.device;
  options.memory = place.memory;
  options.stream = place.stream;
  options.row_order = RowOrder::promised;  // indices were looked at when the graph was made
  ops::PlanOptions plans = form_.plans;
  plans.epochs = 1;
  const BorrowedCoo edges = {edges_->rows.span(), edges_->cols.span(), edges_->values.span()};
  return step::Topology(borrow_coo(whole.num_rows(), whole.num_cols(), edges, options), place,
                        plans);
}

/// The graph of a batch, made in a place.
Graph BatchSource::graph_of(std::span<const VertexId> vertices, const Place& place) const {
  const Graph& graph = full_.graph.graph();
  if (!edges_) return detail::induced_in(graph, vertices, place);
  BuildOptions options;
  options.device = place.device;
  options.memory = place.memory;
  options.stream = place.stream;
  options.nonfinite = Nonfinite::allow;  // they were looked at when the graph was made
  options.duplicates = graph.has_repeated_edges() ? Duplicates::keep : Duplicates::reject;
  return from_coo(graph.num_rows(), graph.num_cols(), edges_->rows.span(), edges_->cols.span(),
                  edges_->values.span(), options)
      .with_scales(problem_.graph.row_scale(), problem_.graph.col_scale());
}

std::unique_ptr<Batch> BatchSource::make_batch(const Contents& contents, Stream stream) const {
  if (draws_) return drawn_batch(contents, stream);
  std::vector<VertexId> vertices;
  std::vector<std::int32_t> graph_ids;
  if (walk_length_ > 0) {
    vertices = walked(problem_.graph, seeds_of(contents), walk_length_,
                      random_of_walks(seed_, static_cast<std::uint64_t>(contents.step)));
  }
  for (std::size_t g = 0; g < contents.groups.size() && walk_length_ == 0; ++g) {
    const std::vector<VertexId>& group = groups_[index_of(contents.groups[g])];
    vertices.insert(vertices.end(), group.begin(), group.end());
    graph_ids.resize(vertices.size(), static_cast<std::int32_t>(g));
  }
  return cut_batch(std::move(vertices), std::move(graph_ids), contents.groups, stream);
}

/// Batches that are not kept come and go with every step, with some hundred small arrays each.
std::unique_ptr<MemoryResource> BatchSource::memory_of_batch(Place& place) const {
  if (ahead_ == 0) return nullptr;
  auto memory = std::make_unique<ArenaMemory>(place);
  place.memory = memory.get();
  return memory;
}

std::unique_ptr<Batch> BatchSource::cut_batch(std::vector<VertexId> vertices,
                                              std::vector<std::int32_t> graph_ids,
                                              std::span<const std::int64_t> groups,
                                              Stream stream) const {
  const Permutation order = order_within(vertices);
  if (order.size() > 0) {
    const std::span<const VertexId> new_to_old = order.new_to_old();
    vertices = taken(std::span<const VertexId>(vertices), new_to_old);
    if (!graph_ids.empty()) {
      graph_ids = taken(std::span<const std::int32_t>(graph_ids), new_to_old);
    }
  }
  Place place = form_.place();
  place.stream = stream;
  std::unique_ptr<MemoryResource> memory = memory_of_batch(place);
  auto batch = std::make_unique<Batch>(Batch{std::move(memory),
                                             topology_of(vertices, place),
                                             {},
                                             full_.features.of_vertices(vertices, place.stream),
                                             {},
                                             {},
                                             {},
                                             {}});
  if (problem_.edge_features != nullptr) {
    batch->graph.take_edge_features(
        full_.graph, tessera::detail::induced_edges(problem_.graph, vertices), place.stream);
  }
  if (problem_.graph_task) {
    batch->pooling.emplace(in_place(step::pooling_graph(graph_ids, std::ssize(groups)), place),
                           place, form_.plans);
    for (const std::int64_t group : groups) {
      batch->train_items.push_back(std::ssize(batch->labels));
      batch->labels.push_back(problem_.labels[index_of(group_items_[index_of(group)])]);
    }
    batch->numbers = numbers_of_graphs(groups);
  } else {
    add_vertices(vertices, *batch);
  }
  batch->train_targets = batch->targets_of(batch->train_items, problem_.outputs, place, loss_);
  batch->made = std::make_unique<const MadeMark>(place);
  batch->uses = std::make_unique<StreamUses>(place);
  return batch;
}

std::vector<VertexId> BatchSource::seeds_of(const Contents& contents) const {
  std::vector<VertexId> seeds;
  for (const std::int64_t group : contents.groups) seeds.push_back(seeds_[index_of(group)]);
  return seeds;
}

/// Labels are known of the vertices that are trained on alone, which come first.
std::unique_ptr<Batch> BatchSource::drawn_batch(const Contents& contents, Stream stream) const {
  const std::vector<VertexId> seeds = seeds_of(contents);
  const NeighbourDraws::Layers drawn =
      draws_->draw(seeds, static_cast<std::uint64_t>(contents.step));
  Place place = form_.place();
  place.stream = stream;
  std::unique_ptr<MemoryResource> memory = memory_of_batch(place);
  auto batch = std::make_unique<Batch>(Batch{std::move(memory),
                                             step::Topology(Graph(), place, form_.plans),
                                             {},
                                             full_.features.of_vertices(drawn.vertices, stream),
                                             {},
                                             {},
                                             {},
                                             {}});
  for (const Graph& layer : drawn.graphs) batch->layers.emplace_back(layer, place, form_.plans);
  if (!problem_.labels.empty()) {
    batch->labels = taken(std::span<const std::int64_t>(problem_.labels), seeds);
  }
  batch->targets = rows_of(problem_.targets, seeds);
  batch->numbers = rows_of(problem_.numbers.matrix, seeds);
  batch->train_items.resize(seeds.size());
  std::iota(batch->train_items.begin(), batch->train_items.end(), std::int64_t{0});
  batch->train_targets = batch->targets_of(batch->train_items, problem_.outputs, place, loss_);
  batch->made = std::make_unique<const MadeMark>(place);
  batch->uses = std::make_unique<StreamUses>(place);
  return batch;
}

/// The order in which a batch takes these vertices; empty: this one.
Permutation BatchSource::order_within(std::span<const VertexId> vertices) const {
  if (pattern_.kind == PatternChoice::Kind::off) return {};
  return find_pattern_order(induced_subgraph(problem_.graph, vertices), pattern_, products_, seed_)
      .order;
}

void BatchSource::add_vertices(std::span<const VertexId> vertices, Batch& batch) const {
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    if (!problem_.labels.empty()) batch.labels.push_back(problem_.labels[index_of(vertices[i])]);
    if (in_training_[index_of(vertices[i])]) {
      batch.train_items.push_back(static_cast<std::int64_t>(i));
    }
  }
  batch.targets = rows_of(problem_.targets, vertices);
  batch.numbers = rows_of(problem_.numbers.matrix, vertices);
}

DenseFeatures BatchSource::numbers_of_graphs(std::span<const std::int64_t> groups) const {
  std::vector<VertexId> rows;
  for (const std::int64_t group : groups) {
    rows.push_back(static_cast<VertexId>(group_items_[index_of(group)]));
  }
  return rows_of(problem_.numbers.matrix, rows);
}

void BatchSource::plan(Batch& batch, const Wanted& wanted) {
  batch.graph.plan(wanted.graph);
  for (std::size_t i = 0; i < batch.layers.size(); ++i) batch.layers[i].plan(wanted.layers[i]);
  if (batch.pooling) batch.pooling->plan(wanted.pooling);
  if (step::Topology* const features = batch.features.sparse()) features->plan(wanted.features);
}

}  // namespace tessera::train
