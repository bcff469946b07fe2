// SPDX-License-Identifier: Apache-2.0
#include "train/batch.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/transform.hpp"

#include "train/features.hpp"
#include "train/random_use.hpp"

namespace tessera::train {
namespace {

std::size_t index_of(std::int64_t i) { return static_cast<std::size_t>(i); }

Partition clusters_of(const Problem& problem, const TrainOptions& options) {
  if (options.partition) {
    options.partition->validate(problem.graph.num_rows());
    return *options.partition;
  }
  PartitionOptions how;
  how.parts = static_cast<std::int32_t>(options.parts);
  how.method = options.partition_method;
  how.seed = options.seed;
  how.progress = options.progress;
  return partition(problem.graph, how);
}

/// The vertices of each training graph.
std::vector<std::vector<VertexId>> members_of_graphs(const Problem& problem,
                                                     std::span<const std::int64_t> graphs) {
  std::vector<std::int64_t> place(index_of(problem.num_items), -1);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    place[index_of(graphs[i])] = static_cast<std::int64_t>(i);
  }
  std::vector<std::vector<VertexId>> members(graphs.size());
  for (VertexId v = 0; v < problem.graph.num_rows(); ++v) {
    const std::int64_t group = place[index_of(problem.graph_ids[v])];
    if (group >= 0) members[index_of(group)].push_back(v);
  }
  return members;
}

MultiLabels rows_of(const MultiLabels& targets, std::span<const VertexId> vertices) {
  if (targets == nullptr) return nullptr;
  return std::get<DenseFeatures>(take_rows(targets, vertices));
}

}  // namespace

nn::Context Batch::context(bool training, std::uint64_t seed, std::int64_t step) {
  nn::Context context;
  context.graph = &graph;
  context.pooling = pooling ? &*pooling : nullptr;
  context.training = training;
  context.seed = seed;
  context.step = static_cast<std::uint32_t>(step);
  return context;
}

ops::LossTargets Batch::targets_of(std::span<const std::int64_t> items, std::int64_t outputs,
                                   const Place& place) const {
  return targets != nullptr ? ops::LossTargets::binary(*targets, items, place)
                            : ops::LossTargets::classes(labels, items, outputs, place);
}

ops::EvaluationTargets Batch::evaluation_targets(const Split& split, std::int64_t outputs,
                                                 const Place& place) const {
  const ops::EvaluatedRows rows{split.train, split.validation, split.test};
  return targets != nullptr ? ops::EvaluationTargets::binary(*targets, rows, place)
                            : ops::EvaluationTargets::classes(labels, rows, outputs, place);
}

Batch full_batch(const Problem& problem, const Split& split, const FeatureForm& form) {
  Batch batch{nn::Topology(problem.graph, form.placement.place(), form.plans),
              {},
              nn::InputFeatures(problem.features, form.placement, form.densify, form.plans),
              problem.labels,
              problem.targets,
              split.train};
  if (problem.graph_task) {
    batch.pooling.emplace(nn::pooling_graph(problem.graph_ids, problem.num_items),
                          form.placement.place(), form.plans);
  }
  return batch;
}

BatchSource::BatchSource(const Problem& problem, const Split& split, const TrainOptions& options,
                         const FeatureForm& form, std::uint64_t seed)
    : problem_(problem), form_(form), seed_(seed), full_(full_batch(problem, split, form)) {
  if (options.batching == Batching::full) return;
  if (options.batching == Batching::graphs) {
    groups_ = members_of_graphs(problem, split.train);
    group_items_ = split.train;
    groups_per_batch_ = options.graphs_per_batch;
  } else {
    groups_ = members(clusters_of(problem, options));
    in_training_.resize(index_of(problem.num_items), false);
    for (const std::int64_t vertex : split.train) in_training_[index_of(vertex)] = true;
    groups_per_batch_ = options.parts_per_batch;
    if (groups_per_batch_ == 1) kept_.resize(groups_.size());
  }
  groups_per_batch_ = std::clamp<std::int64_t>(groups_per_batch_, 1, std::ssize(groups_) + 1);
  order_.resize(groups_.size());
}

std::int64_t BatchSource::batches_per_epoch() const {
  if (is_full()) return 1;
  return (std::ssize(groups_) + groups_per_batch_ - 1) / groups_per_batch_;
}

void BatchSource::start_epoch(std::int64_t epoch) {
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  shuffle(order_, Random(seed_, shuffle_batches, static_cast<std::uint32_t>(epoch)));
}

Batch& BatchSource::batch(std::int64_t i) {
  if (is_full()) return full_;
  const std::int64_t begin = i * groups_per_batch_;
  const std::int64_t end = std::min(begin + groups_per_batch_, std::ssize(order_));
  const std::span<const std::int64_t> groups(order_.data() + begin,
                                             static_cast<std::size_t>(end - begin));
  std::unique_ptr<Batch>& slot = kept_.empty() ? current_ : kept_[index_of(groups.front())];
  if (kept_.empty() || slot == nullptr) slot = std::make_unique<Batch>(make_batch(groups));
  return *slot;
}

Batch BatchSource::make_batch(std::span<const std::int64_t> groups) const {
  std::vector<VertexId> vertices;
  std::vector<std::int32_t> graph_ids;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<VertexId>& group = groups_[index_of(groups[g])];
    vertices.insert(vertices.end(), group.begin(), group.end());
    graph_ids.resize(vertices.size(), static_cast<std::int32_t>(g));
  }
  Batch batch{nn::Topology(induced_subgraph(problem_.graph, vertices), form_.placement.place(),
                           form_.plans),
              {},
              nn::InputFeatures(take_rows(problem_.features, vertices), form_.placement,
                                form_.densify, form_.plans),
              {},
              {},
              {}};
  if (problem_.graph_task) {
    batch.pooling.emplace(nn::pooling_graph(graph_ids, std::ssize(groups)), form_.placement.place(),
                          form_.plans);
    for (const std::int64_t group : groups) {
      batch.train_items.push_back(std::ssize(batch.labels));
      batch.labels.push_back(problem_.labels[index_of(group_items_[index_of(group)])]);
    }
    return batch;
  }
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    if (!problem_.labels.empty()) batch.labels.push_back(problem_.labels[index_of(vertices[i])]);
    if (in_training_[index_of(vertices[i])]) {
      batch.train_items.push_back(static_cast<std::int64_t>(i));
    }
  }
  batch.targets = rows_of(problem_.targets, vertices);
  return batch;
}

}  // namespace tessera::train
