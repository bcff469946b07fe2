// SPDX-License-Identifier: Apache-2.0
#include "train/batch.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/coo.hpp"
#include "tessera/graph/transform.hpp"

#include "core/arena_memory.hpp"
#include "core/crew.hpp"
#include "core/meanwhile.hpp"
#include "graph/select.hpp"
#include "train/features.hpp"
#include "train/pattern_order.hpp"
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

/// Which of all items are listed.
std::vector<bool> chosen_items(std::span<const std::int64_t> items, std::int64_t count) {
  std::vector<bool> chosen(index_of(count), false);
  for (const std::int64_t item : items) chosen[index_of(item)] = true;
  return chosen;
}

/// A copy in the place.
template <class T>
SharedArray<T> copy_in(std::span<const T> values, const Place& place) {
  Buffer<T> copy(std::ssize(values), place);
  copy_bytes(copy.data(), values.data(), values.size_bytes(), place.device, place.stream);
  return copy;
}

MultiLabels rows_of(const MultiLabels& targets, std::span<const VertexId> vertices) {
  if (targets == nullptr) return nullptr;
  return std::get<DenseFeatures>(take_rows(targets, vertices));
}

}  // namespace

std::int64_t batches_ahead(const TrainOptions& options, std::int64_t per_epoch) {
  // Kernels that several threads time on one GPU at once would take each other's time for their
  // own.
  const std::int64_t most = options.plans.tune == ops::Tune::measured ? 1 : most_batches_ahead;
  return std::min({most, per_epoch, per_epoch * options.epochs - 1});
}

bool makes_batches_anew(const TrainOptions& options) {
  switch (options.batching) {
    case Batching::full: return options.process_every_step;
    case Batching::clusters: return options.parts_per_batch > 1;
    case Batching::graphs: return true;
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
  // A graph that every step sees is used once in an epoch, others about as often.
  form.plans.epochs = options.epochs;
  return form;
}

step::Context Batch::context(bool training, std::uint64_t seed, std::int64_t step) {
  step::Context context;
  context.graph = &graph;
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

/// `values[vertices[0]], values[vertices[1]], …`
template <class T>
std::vector<T> taken(std::span<const T> values, std::span<const VertexId> vertices) {
  std::vector<T> result;
  result.reserve(vertices.size());
  for (const VertexId vertex : vertices) result.push_back(values[index_of(vertex)]);
  return result;
}

/// A problem whose vertices stand in the order that full batches take them in.
Problem in_order(const Problem& problem) {
  const std::span<const VertexId> vertices = problem.order.new_to_old();
  Problem ordered = problem;
  ordered.graph = permuted(problem.graph, problem.order);
  ordered.features = take_rows(problem.features, vertices);
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
    take_edges(split);
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
  if (problem.products_per_epoch > 0) pattern_ = options.pattern;
  products_ = expected_products(options, problem.product_width,
                                problem.products_per_epoch * (keeps() ? options.epochs : 1));
  groups_per_batch_ = std::clamp<std::int64_t>(groups_per_batch_, 1, std::ssize(groups_) + 1);
  order_.resize(groups_.size());
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
  return (std::ssize(groups_) + groups_per_batch_ - 1) / groups_per_batch_;
}

void BatchSource::take_edges(const Split& split) {
  const Graph& graph = problem_.graph;
  groups_.emplace_back(static_cast<std::size_t>(graph.num_rows()));
  std::iota(groups_.front().begin(), groups_.front().end(), VertexId{0});
  in_training_ = chosen_items(split.train, problem_.num_items);
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

std::vector<std::int64_t> BatchSource::order_of(std::int64_t epoch) const {
  std::vector<std::int64_t> order(groups_.size());
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

void BatchSource::start_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  if (!is_full()) order_ = order_of(epoch);
}

Batch& BatchSource::batch(std::int64_t i, Stream stream) {
  if (is_full()) return full_;
  const std::vector<std::int64_t> groups = groups_of(order_, i);
  std::unique_ptr<Batch>& slot = keeps() ? kept_[index_of(groups.front())] : current_;
  std::unique_ptr<Batch> former;
  if (!keeps() || slot == nullptr) {
    if (ahead_ == 0) slot = nullptr;  // two at a time could be too many
    former = std::exchange(slot, take(groups));
    slot->number = keeps() ? groups.front() : i;
    slot->made->wait(stream);
  }
  make_ahead(i + 1, std::move(former));
  return *slot;
}

BatchSource::BatchNumber BatchSource::largest() const {
  BatchNumber largest;
  std::size_t most = 0;
  for (std::int64_t epoch = 0; !is_full() && epoch < epochs_; ++epoch) {
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

std::unique_ptr<Batch> BatchSource::take(const std::vector<std::int64_t>& groups) {
  while (!coming_.empty()) {
    Coming next = std::move(coming_.front());
    coming_.pop_front();
    std::unique_ptr<Batch> made = next.batch.get();
    if (next.groups == groups) return made;
  }
  return make_batch(groups, *making_.front());
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
    const std::int64_t epoch = epoch_ + next / per_epoch;
    std::vector<std::int64_t> groups =
        groups_of(epoch == epoch_ ? order_ : order_of(epoch), next % per_epoch);
    const Stream stream = *making_[num_begun_++ % making_.size()];
    auto batch = meanwhile([this, groups, stream, wanted = wanted_, goes = std::move(former),
                            plans_only = ops::plans_only()]() mutable {
      const ops::PlanOnly as_here(plans_only);
      const LoopsAlone alone(ahead_ > 1);
      goes.reset();
      std::unique_ptr<Batch> made = make_batch(groups, stream);
      if (wanted != nullptr) plan(*made, *wanted);
      return made;
    });
    coming_.push_back({std::move(groups), std::move(batch)});
  }
}

void BatchSource::learn_plans(Batch& batch) {
  if (wanted_ != nullptr || ahead_ == 0) return;
  auto wanted = std::make_shared<Wanted>();
  wanted->graph = batch.graph.requests();
  if (batch.pooling) wanted->pooling = batch.pooling->requests();
  if (step::Topology* const features = batch.features.sparse()) {
    wanted->features = features->requests();
  }
  wanted_ = std::move(wanted);
}

std::unique_ptr<Batch> BatchSource::make_batch(std::span<const std::int64_t> groups,
                                               Stream stream) const {
  std::vector<VertexId> vertices;
  std::vector<std::int32_t> graph_ids;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<VertexId>& group = groups_[index_of(groups[g])];
    vertices.insert(vertices.end(), group.begin(), group.end());
    graph_ids.resize(vertices.size(), static_cast<std::int32_t>(g));
  }
  const Permutation order = order_within(vertices);
  if (order.size() > 0) {
    const std::span<const VertexId> new_to_old = order.new_to_old();
    vertices = taken(std::span<const VertexId>(vertices), new_to_old);
    graph_ids = taken(std::span<const std::int32_t>(graph_ids), new_to_old);
  }
  Place place = form_.place();
  place.stream = stream;
  // Batches that nobody keeps come and go with every step, with some hundred small arrays each.
  std::unique_ptr<MemoryResource> memory;
  if (ahead_ > 0) {
    memory = std::make_unique<ArenaMemory>(place);
    place.memory = memory.get();
  }
  auto batch = std::make_unique<Batch>(Batch{std::move(memory),
                                             topology_of(vertices, place),
                                             {},
                                             full_.features.of_vertices(vertices, place.stream),
                                             {},
                                             {},
                                             {},
                                             {}});
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
  if (batch.pooling) batch.pooling->plan(wanted.pooling);
  if (step::Topology* const features = batch.features.sparse()) features->plan(wanted.features);
}

}  // namespace tessera::train
