// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/nn/context.hpp"
#include "tessera/nn/input.hpp"
#include "tessera/nn/topology.hpp"
#include "tessera/ops/evaluation.hpp"
#include "tessera/ops/loss.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::train {

/// What one pass sees: a graph, its features, and what is known of its items.
struct Batch {
  nn::Topology graph;
  std::optional<nn::Topology> pooling;
  nn::InputFeatures features;
  std::vector<std::int64_t> labels;                    ///< one per item of the batch
  MultiLabels targets;                                 ///< or these
  std::vector<std::int64_t> train_items;               ///< numbers within the batch
  std::optional<ops::LossTargets> train_targets = {};  ///< of these, once they are needed
  bool planned = false;  ///< whether the model was prepared for a step on it

  /// What the loss over some items of the batch wants, in the place of its features.
  ops::LossTargets targets_of(std::span<const std::int64_t> items, std::int64_t outputs,
                              const Place& place) const;

  /// What is known of the items of a split of the batch.
  ops::EvaluationTargets evaluation_targets(const Split& split, std::int64_t outputs,
                                            const Place& place) const;

  nn::Context context(bool training, std::uint64_t seed, std::int64_t step);
};

/// How features are stored for a model, and how plans are made.
struct FeatureForm {
  nn::Placement placement;
  bool densify = false;
  ops::PlanOptions plans = {};
};

Batch full_batch(const Problem& problem, const Split& split, const FeatureForm& form);

/// Hands out the batches of every epoch, in a random order that belongs to the seed and the epoch.
class BatchSource {
 public:
  /// `problem` must outlive it.
  BatchSource(const Problem& problem, const Split& split, const TrainOptions& options,
              const FeatureForm& form, std::uint64_t seed);

  /// Everything: what evaluation sees.
  Batch& full() { return full_; }

  std::int64_t batches_per_epoch() const;
  /// True if every step sees the same batch.
  bool is_full() const { return groups_.empty(); }
  /// Fixes the order of an epoch's batches.
  void start_epoch(std::int64_t epoch);
  /// The i-th batch of the epoch; stays valid until the next call.
  Batch& batch(std::int64_t i);

 private:
  Batch make_batch(std::span<const std::int64_t> groups) const;

  const Problem& problem_;
  FeatureForm form_;
  std::uint64_t seed_;
  Batch full_;
  std::vector<std::vector<VertexId>> groups_;  ///< vertices of each cluster or training graph
  std::vector<std::int64_t> group_items_;      ///< the graph that a group is; empty for clusters
  std::vector<bool> in_training_;              ///< of each vertex; clusters
  std::int64_t groups_per_batch_ = 1;
  std::vector<std::int64_t> order_;
  std::vector<std::unique_ptr<Batch>> kept_;  ///< batches of one group each never change
  std::unique_ptr<Batch> current_;
};

}  // namespace tessera::train
