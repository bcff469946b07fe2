// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/side_stream.hpp"
#include "core/stream_uses.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/nn/input.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/ops/evaluation.hpp"
#include "tessera/ops/loss.hpp"
#include "tessera/step/context.hpp"
#include "tessera/step/topology.hpp"
#include "tessera/train/problem.hpp"
#include "train/class_weights.hpp"
#include "train/neighbour_draws.hpp"
#include "train/pattern_order.hpp"

namespace tessera::train {

/// One batch that is planned takes longer than a step on it, so several are made while a step is
/// computed, each by a thread of its own.
inline constexpr int most_batches_ahead = 4;
/// How many of these a training makes, of so many batches per epoch: no more than one epoch has,
/// which together are as large as everything, and none that no step will see.
std::int64_t batches_ahead(const TrainOptions& options, std::int64_t per_epoch);

/// Whether batches are samples of a graph, whose sizes are not known before they are drawn.
bool draws_samples(const TrainOptions& options);
/// Whether threads make them. On a CPU samples alone, which wait for memory and leave its cores to
/// the step.
bool makes_ahead(const TrainOptions& options);
/// Whether steps see batches that nobody keeps.
bool makes_batches_anew(const TrainOptions& options);
/// Whether sparse features may and should be stored as rows of numbers, where batches are made
/// ahead: a batch takes rows without a wait and plans nothing for them, which is worth more than
/// what short rows cost.
bool takes_whole_rows(const Problem& problem, const TrainOptions& options);

/// What one pass sees: a graph, its features, and what is known of its items.
struct Batch {
  /// What its graphs, plans and targets are made of, so that it comes first. Null: of the place's.
  std::unique_ptr<MemoryResource> memory;
  step::Topology graph;
  std::optional<step::Topology> pooling;
  nn::InputFeatures features;
  std::vector<std::int64_t> labels;                    ///< one per item of the batch
  MultiLabels targets;                                 ///< or these
  DenseFeatures numbers;                               ///< or these
  std::vector<std::int64_t> train_items;               ///< numbers within the batch
  std::optional<ops::LossTargets> train_targets = {};  ///< of these, once they are needed
  std::vector<step::Topology> layers = {};  ///< in place of the graph: one for each layer
  bool planned = false;                     ///< whether the model was prepared for a step on it
  std::int64_t number = 0;                  ///< among all of an epoch: where its loss goes
  Recording recorded_step = {};

  /// What the loss over some items of the batch wants, in the place of its features.
  ops::LossTargets targets_of(std::span<const std::int64_t> items, std::int64_t outputs,
                              const Place& place, const TrainLoss& loss) const;

  /// What is known of the items of a split of the batch.
  ops::EvaluationTargets evaluation_targets(const Split& split, std::int64_t outputs,
                                            const Place& place, const TrainLoss& loss) const;

  step::Context context(bool training, std::uint64_t seed, std::int64_t step);

  /// Where the stream stood that it was made on, and those that use it. Null: it was made on the
  /// only stream there is. The second is the last member: see there.
  std::vector<step::Topology*> layer_list = {};  ///< of the layers, for contexts
  std::unique_ptr<const MadeMark> made = {};
  std::unique_ptr<StreamUses> uses = {};
};

/// How features are stored for a model, and how plans are made.
struct FeatureForm {
  step::Placement placement;
  bool densify = false;
  ops::PlanOptions plans = {};
  /// Of graphs, plans and targets, where that is not the memory of features.
  MemoryResource* plan_memory = nullptr;
  /// Of a batch of neighbours.
  DrawnEdges drawn = DrawnEdges::plain;
  std::int64_t num_graphs = 1;

  Place place() const;
};
FeatureForm feature_form(const Problem& problem, const TrainOptions& options,
                         const nn::Layer& model);

/// Hands out the batches of every epoch, in a random order that belongs to the seed and the epoch.
/// Batches are cut out of the graph and the features where these lie, on a stream of their own.
class BatchSource {
 public:
  /// `problem` must outlive it; `split` is in the numbers of full batches. `works_ahead`: threads
  /// make and plan the next batches while the last is in use, unless batches are kept.
  BatchSource(const Problem& problem, const Split& split, const TrainOptions& options,
              const FeatureForm& form, std::uint64_t seed, bool works_ahead, TrainLoss loss = {});
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  /// Everything: what evaluation sees.
  Batch& full() { return full_; }
  const TrainLoss& loss() const { return loss_; }

  std::int64_t batches_per_epoch() const;
  /// True if every step sees the same batch, which nobody makes again.
  bool is_full() const { return num_groups_ == 0; }
  /// True if batches stay as they are and are handed out again.
  bool keeps() const { return !kept_.empty(); }
  /// Those that were made so far; `keeps()`.
  std::span<const std::unique_ptr<Batch>> kept() const { return kept_; }

  /// Fixes the order of an epoch's batches.
  void start_epoch(std::int64_t epoch);
  /// The i-th batch of the epoch, which is safe to use on the stream; stays valid until the next
  /// call.
  Batch& batch(std::int64_t i, Stream stream);
  /// Plans were made for a batch: the next ones are planned alike before they are handed out.
  void learn_plans(Batch& batch);
  /// The number of the batch with the most vertices that training will see, and its epoch.
  struct BatchNumber {
    std::int64_t epoch = 0, number = 0;
  };
  BatchNumber largest() const;
  /// Until all batches that were begun are made.
  void wait() const;
  /// Batches that were begun and not handed out yet.
  std::int64_t num_ahead() const { return std::ssize(coming_); }

 private:
  /// What the layers of a model want planned of each batch.
  struct Wanted {
    step::PlanRequests graph, pooling, features;
    std::vector<step::PlanRequests> layers;
  };
  /// What a batch is made of.
  struct Contents {
    std::int64_t step = 0;  ///< how many batches of all epochs come before it
    std::vector<std::int64_t> groups;

    friend bool operator==(const Contents&, const Contents&) = default;
  };
  /// A batch that is being made.
  struct Coming {
    Contents contents;
    std::future<std::unique_ptr<Batch>> batch;
  };

  /// The edges of a graph that is processed in every step, in no order that matters.
  struct Edges {
    SharedArray<VertexId> rows, cols;
    SharedArray<float> values;
  };

  void take_edges();
  Graph graph_of(std::span<const VertexId> vertices, const Place& place) const;
  step::Topology topology_of(std::span<const VertexId> vertices, const Place& place) const;
  std::vector<std::int64_t> order_of(std::int64_t epoch) const;
  std::vector<std::int64_t> groups_of(const std::vector<std::int64_t>& order, std::int64_t i) const;
  Contents contents_of(std::int64_t epoch, std::int64_t i) const;
  std::unique_ptr<Batch> make_batch(const Contents& contents, Stream stream) const;
  std::unique_ptr<Batch> cut_batch(std::vector<VertexId> vertices,
                                   std::vector<std::int32_t> graph_ids,
                                   std::span<const std::int64_t> groups, Stream stream) const;
  std::vector<VertexId> seeds_of(const Contents& contents) const;
  std::unique_ptr<Batch> drawn_batch(const Contents& contents, Stream stream) const;
  std::unique_ptr<MemoryResource> memory_of_batch(Place& place) const;
  Permutation order_within(std::span<const VertexId> vertices) const;
  void add_vertices(std::span<const VertexId> vertices, Batch& batch) const;
  DenseFeatures numbers_of_graphs(std::span<const std::int64_t> groups) const;
  static void plan(Batch& batch, const Wanted& wanted);
  std::unique_ptr<Batch> take(const Contents& contents);
  void make_ahead(std::int64_t i, std::unique_ptr<Batch> former);
  std::int64_t wanted_ahead(std::int64_t i) const;

  const Problem& problem_;
  FeatureForm form_;
  std::uint64_t seed_;
  TrainLoss loss_;
  PatternChoice pattern_;      ///< that the vertices of each batch are to fit
  ExpectedProducts products_;  ///< with each batch
  /// Where batches are made. So many that one which is needed no more was made on another: the
  /// stream of such a one waits for the step that used it.
  std::vector<std::unique_ptr<SideStream>> making_;
  Batch full_;
  std::optional<Edges> edges_;                 ///< where they are processed in every step
  std::vector<std::vector<VertexId>> groups_;  ///< vertices of each cluster or training graph
  std::optional<NeighbourDraws> draws_;
  std::int64_t walk_length_ = 0;  ///< of walks; 0: there are none
  std::vector<VertexId> seeds_;   ///< each is a group, where neighbours are drawn, or walks
  std::int64_t num_groups_ = 0;
  std::vector<std::int64_t> group_items_;  ///< the graph that a group is; empty for clusters
  std::vector<bool> in_training_;          ///< of each vertex; clusters
  std::int64_t groups_per_batch_ = 1;
  std::int64_t epoch_ = 0;
  std::vector<std::int64_t> order_;
  std::int64_t epochs_;     ///< of the training
  std::int64_t ahead_ = 0;  ///< batches that are made so at most
  std::shared_ptr<const Wanted> wanted_;
  std::vector<std::unique_ptr<Batch>> kept_;  ///< batches of one group each never change
  std::unique_ptr<Batch> current_;
  std::deque<Coming> coming_;  ///< the next batches, in order
  std::size_t num_begun_ = 0;
};

}  // namespace tessera::train
