// SPDX-License-Identifier: Apache-2.0
#include "train/batch.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/graph/transform.hpp"

#include "core/crew.hpp"
#include "core/meanwhile.hpp"
#include "graph/induced_edges.hpp"
#include "train/chosen_rows.hpp"
#include "train/edges.hpp"
#include "train/features.hpp"
#include "train/pattern_order.hpp"
#include "train/random_use.hpp"

namespace tessera::train {
namespace {

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

bool draws_on_cpu(const TrainOptions& options) {
  return draws_samples(options) && options.placement.device().kind == DeviceKind::cpu;
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

/// Which of all items are listed.
std::vector<bool> chosen_items(std::span<const std::int64_t> items, std::int64_t count) {
  std::vector<bool> chosen(index_of(count), false);
  for (const std::int64_t item : items) chosen[index_of(item)] = true;
  return chosen;
}

}  // namespace

bool draws_samples(const TrainOptions& options) {
  return options.batching == Batching::neighbours || options.batching == Batching::walks;
}

std::int64_t batches_ahead(const TrainOptions& options, std::int64_t per_epoch) {
  // Kernels that several threads time on one GPU at once would take each other's time for their
  // own.
  const bool one = options.plans.tune == ops::Tune::measured || draws_on_cpu(options);
  const std::int64_t most = one ? 1 : most_batches_ahead;
  return std::min({most, per_epoch, per_epoch * options.epochs - 1});
}

bool makes_ahead(const TrainOptions& options) {
  return draws_on_cpu(options) ? num_threads() > 1
                               : why_not_recorded(options.placement.device()).empty();
}

bool makes_batches_anew(const TrainOptions& options) {
  switch (options.batching) {
    case Batching::full: return options.process_every_step;
    case Batching::clusters: return options.parts_per_batch > 1;
    case Batching::graphs:
    case Batching::neighbours:
    case Batching::walks: return true;
  }
  return false;
}

bool takes_whole_rows(const Problem& problem, const TrainOptions& options) {
  constexpr std::int64_t short_row = 256;
  const bool cuts = options.batching != Batching::full && makes_batches_anew(options);
  return cuts && !problem.counts_entries && problem.num_features() <= short_row &&
         why_not_recorded(options.placement.device()).empty();
}

Place FeatureForm::place() const {
  Place place = placement.place();
  if (plan_memory != nullptr) place.memory = plan_memory;
  return place;
}

FeatureForm feature_form(const Problem& problem, const TrainOptions& options,
                         const nn::Layer& model) {
  FeatureForm form{options.placement, !model.accepts_sparse() || takes_whole_rows(problem, options),
                   options.plans};
  form.drawn = drawn_edges_of(model);
  form.num_graphs = model.num_graphs();
  // A graph that every step sees is used once in an epoch, others about as often.
  form.plans.epochs = options.epochs;
  return form;
}

step::Context Batch::context(bool training, std::uint64_t seed, std::int64_t step) {
  step::Context context;
  if (layers.empty()) context.graph = &graph;
  layer_list.clear();
  for (step::Topology& layer : layers) layer_list.push_back(&layer);
  context.graphs = layer_list;
  context.pooling = pooling ? &*pooling : nullptr;
  context.training = training;
  context.seed = seed;
  context.step = static_cast<std::uint32_t>(step);
  return context;
}

ops::LossTargets Batch::targets_of(std::span<const std::int64_t> items, std::int64_t outputs,
                                   const Place& place, const TrainLoss& loss) const {
  if (numbers != nullptr) return loss.numbers->loss_targets(*numbers, items, place);
  return targets != nullptr
             ? ops::LossTargets::binary(*targets, items, place, loss.options())
             : ops::LossTargets::classes(labels, items, outputs, place, loss.options());
}

ops::EvaluationTargets Batch::evaluation_targets(const Split& split, std::int64_t outputs,
                                                 const Place& place, const TrainLoss& loss) const {
  const ops::EvaluatedRows rows{split.train, split.validation, split.test};
  if (numbers != nullptr) return loss.numbers->evaluation_targets(*numbers, rows, place);
  return targets != nullptr ? ops::EvaluationTargets::binary(*targets, rows, place)
                            : ops::EvaluationTargets::classes(labels, rows, outputs, place);
}

namespace {

/// Sparse features in the place.
Features features_in(const Features& features, const Place& place) {
  const auto* const sparse = std::get_if<SparseFeatures>(&features);
  return sparse == nullptr ? features : Features(in_place(*sparse, place));
}

/// A problem whose vertices stand in the order that full batches take them in.
Problem in_order(const Problem& problem) {
  const std::span<const VertexId> vertices = problem.order.new_to_old();
  Problem ordered = problem;
  ordered.graph = permuted(problem.graph, problem.order);
  ordered.features = take_rows(problem.features, vertices);
  if (problem.edge_features != nullptr) {
    const std::vector<EdgeOffset> edges = tessera::detail::induced_edges(problem.graph, vertices);
    const std::vector<VertexId> rows(edges.begin(), edges.end());
    ordered.edge_features = std::get<DenseFeatures>(take_rows(problem.edge_features, rows));
  }
  if (problem.graph_task) {
    ordered.graph_ids = taken(problem.graph_ids.span(), vertices);
  } else if (problem.multi_label()) {
    ordered.targets = rows_of(problem.targets, vertices);
  } else {
    ordered.labels = taken(std::span<const std::int64_t>(problem.labels), vertices);
    ordered.numbers.matrix = rows_of(problem.numbers.matrix, vertices);
  }
  return ordered;
}

/// A fan-out that stands for all is one for each layer.
sample::NeighbourOptions draw_options(const TrainOptions& options, const FeatureForm& form,
                                      std::uint64_t seed) {
  sample::NeighbourOptions draws;
  draws.fan_outs = options.fan_outs;
  if (draws.fan_outs.size() == 1)
    draws.fan_outs.resize(index_of(form.num_graphs), options.fan_outs[0]);
  if (std::ssize(draws.fan_outs) != form.num_graphs) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} fan_outs for a model that sums over neighbours {} times",
                            draws.fan_outs.size(), form.num_graphs),
                "fan_outs", "give one for each time, or one for all");
  }
  draws.replace = options.replace;
  draws.seed = seed;
  return draws;
}

/// Batches are cut out where everything lies. Where there are none, plans take what they need.
Batch full_batch(const Problem& given, const Split& split, const FeatureForm& form, bool is_cut) {
  const Place place = form.place();
  std::optional<Problem> ordered;
  if (given.order.size() > 0) ordered = in_order(given);
  const Problem& problem = ordered ? *ordered : given;
  Batch batch{
      {},
      step::Topology(is_cut ? in_place(problem.graph, place) : problem.graph, place, form.plans),
      {},
      nn::InputFeatures(
          is_cut && !form.densify ? features_in(problem.features, place) : problem.features,
          form.placement, form.densify, form.plans),
      problem.labels,
      problem.targets,
      problem.numbers.matrix,
      split.train};
  batch.graph.set_edge_features(features_of_edges(problem, form.placement));
  for (const Graph& graph : problem.layer_graphs) {
    batch.layers.emplace_back(graph, place, form.plans);
  }
  if (problem.graph_task) {
    batch.pooling.emplace(step::pooling_graph(problem.graph_ids, problem.num_items), place,
                          form.plans);
  }
  return batch;
}

}  // namespace

BatchSource::BatchSource(const Problem& problem, const Split& split, const TrainOptions& options,
                         const FeatureForm& form, std::uint64_t seed, bool works_ahead,
                         TrainLoss loss)
    : problem_(problem),
      form_(form),
      seed_(seed),
      loss_(std::move(loss)),
      full_(full_batch(problem, split, form,
                       options.batching != Batching::full || options.process_every_step)),
      epochs_(options.epochs) {
  if (options.batching == Batching::full && !options.process_every_step) return;
  if (options.batching == Batching::full) {
    in_training_ = chosen_items(split.train, problem.num_items);
    take_edges();
  } else if (options.batching == Batching::neighbours) {
    draws_.emplace(problem.graph, draw_options(options, form, seed), form.drawn);
    seeds_.assign(split.train.begin(), split.train.end());
    groups_per_batch_ = options.batch_size;
  } else if (options.batching == Batching::walks) {
    walk_length_ = options.walk_length;
    in_training_ = chosen_items(split.train, problem.num_items);
    seeds_.assign(split.train.begin(), split.train.end());
    groups_per_batch_ = options.batch_size;
  } else if (options.batching == Batching::graphs) {
    groups_ = members_of_graphs(problem, split.train);
    group_items_ = split.train;
    groups_per_batch_ = options.graphs_per_batch;
  } else {
    groups_ = members(clusters_of(problem, options));
    in_training_ = chosen_items(split.train, problem.num_items);
    groups_per_batch_ = options.parts_per_batch;
    if (!makes_batches_anew(options)) kept_.resize(groups_.size());
  }
  num_groups_ = std::ssize(seeds_) + std::ssize(groups_);
  if (problem.products_per_epoch > 0) pattern_ = options.pattern;
  products_ = expected_products(options, problem.product_width,
                                problem.products_per_epoch * (keeps() ? options.epochs : 1));
  groups_per_batch_ = std::clamp<std::int64_t>(groups_per_batch_, 1, num_groups_ + 1);
  order_.resize(index_of(num_groups_));
  if (works_ahead && !keeps()) ahead_ = batches_ahead(options, batches_per_epoch());
  // Beside those ahead, one is in use, and one that was before it is about to go.
  const std::int64_t streams = ahead_ > 0 ? ahead_ + 2 : 1;
  for (std::int64_t i = 0; i < streams; ++i) {
    making_.push_back(std::make_unique<SideStream>(form.placement.device(), true));
  }
  // What batches are cut out of is there before the first is.
  synchronise(form.placement.device(), form.placement.stream);
}

BatchSource::~BatchSource() {
  // Nothing that is still being made may lose what it is made of.
  coming_.clear();
  kept_.clear();
  current_.reset();
  try {
    for (const auto& stream : making_) synchronise(form_.placement.device(), *stream);
  } catch (...) {
    // The GPU is lost: the next call says so.
  }
}

std::int64_t BatchSource::batches_per_epoch() const {
  if (is_full()) return 1;
  return (num_groups_ + groups_per_batch_ - 1) / groups_per_batch_;
}

std::vector<std::int64_t> BatchSource::order_of(std::int64_t epoch) const {
  std::vector<std::int64_t> order(index_of(num_groups_));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  shuffle(order, Random(seed_, shuffle_batches, static_cast<std::uint32_t>(epoch)));
  return order;
}

std::vector<std::int64_t> BatchSource::groups_of(const std::vector<std::int64_t>& order,
                                                 std::int64_t i) const {
  const std::int64_t begin = i * groups_per_batch_;
  const std::int64_t end = std::min(begin + groups_per_batch_, std::ssize(order));
  return {order.begin() + begin, order.begin() + end};
}

BatchSource::Contents BatchSource::contents_of(std::int64_t epoch, std::int64_t i) const {
  return {epoch * batches_per_epoch() + i,
          groups_of(epoch == epoch_ ? order_ : order_of(epoch), i)};
}

void BatchSource::start_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  if (!is_full()) order_ = order_of(epoch);
}

Batch& BatchSource::batch(std::int64_t i, Stream stream) {
  if (is_full()) return full_;
  const Contents contents = contents_of(epoch_, i);
  const std::int64_t first = contents.groups.front();
  std::unique_ptr<Batch>& slot = keeps() ? kept_[index_of(first)] : current_;
  std::unique_ptr<Batch> former;
  if (!keeps() || slot == nullptr) {
    if (ahead_ == 0) slot = nullptr;  // two at a time could be too many
    former = std::exchange(slot, take(contents));
    slot->number = keeps() ? first : i;
    slot->made->wait(stream);
  }
  make_ahead(i + 1, std::move(former));
  return *slot;
}

BatchSource::BatchNumber BatchSource::largest() const {
  BatchNumber largest;
  std::size_t most = 0;
  // Sizes of drawn batches are not known before they are drawn; the first stands for all.
  for (std::int64_t epoch = 0; !groups_.empty() && epoch < epochs_; ++epoch) {
    const std::vector<std::int64_t> order = order_of(epoch);
    for (std::int64_t i = 0; i < batches_per_epoch(); ++i) {
      std::size_t vertices = 0;
      for (const std::int64_t group : groups_of(order, i)) {
        vertices += groups_[index_of(group)].size();
      }
      if (vertices <= most) continue;
      most = vertices;
      largest = {epoch, i};
    }
  }
  return largest;
}

void BatchSource::wait() const {
  for (const Coming& coming : coming_) coming.batch.wait();
}

std::unique_ptr<Batch> BatchSource::take(const Contents& contents) {
  while (!coming_.empty()) {
    Coming next = std::move(coming_.front());
    coming_.pop_front();
    std::unique_ptr<Batch> made = next.batch.get();
    if (next.contents == contents) return made;
  }
  return make_batch(contents, *making_.front());
}

/// How many batches from the i-th of this epoch on are to be made or begun.
std::int64_t BatchSource::wanted_ahead(std::int64_t i) const {
  // Batches that are begun before plans are known are not planned ahead.
  const std::int64_t most = wanted_ == nullptr ? std::min<std::int64_t>(ahead_, 1) : ahead_;
  // Whoever trains longer than was said may go on for ever.
  if (epoch_ >= epochs_) return most;
  return std::min(most, (epochs_ - epoch_) * batches_per_epoch() - i);
}

/// The batch that was used before goes meanwhile: giving back its memory takes as long as some
/// layers do to be queued.
void BatchSource::make_ahead(std::int64_t i, std::unique_ptr<Batch> former) {
  const std::int64_t per_epoch = batches_per_epoch();
  const std::int64_t wanted_ahead = this->wanted_ahead(i);
  while (std::ssize(coming_) < wanted_ahead) {
    const std::int64_t next = i + std::ssize(coming_);
    Contents contents = contents_of(epoch_ + next / per_epoch, next % per_epoch);
    const Stream stream = *making_[num_begun_++ % making_.size()];
    auto batch = meanwhile([this, contents, stream, wanted = wanted_, goes = std::move(former),
                            plans_only = ops::plans_only()]() mutable {
      const ops::PlanOnly as_here(plans_only);
      const LoopsAlone alone(ahead_ > 1);
      goes.reset();
      std::unique_ptr<Batch> made = make_batch(contents, stream);
      if (wanted != nullptr) plan(*made, *wanted);
      return made;
    });
    coming_.push_back({std::move(contents), std::move(batch)});
  }
}

void BatchSource::learn_plans(Batch& batch) {
  if (wanted_ != nullptr || ahead_ == 0) return;
  auto wanted = std::make_shared<Wanted>();
  wanted->graph = batch.graph.requests();
  for (const step::Topology& layer : batch.layers) wanted->layers.push_back(layer.requests());
  if (batch.pooling) wanted->pooling = batch.pooling->requests();
  if (step::Topology* const features = batch.features.sparse()) {
    wanted->features = features->requests();
  }
  wanted_ = std::move(wanted);
}

}  // namespace tessera::train
