// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/link_trainer.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/links/curves.hpp"
#include "tessera/links/loss.hpp"
#include "tessera/links/ranking.hpp"
#include "tessera/nn/input.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/ops/pairs.hpp"

#include "train/finite_loss.hpp"
#include "train/host.hpp"
#include "train/link_sampler.hpp"
#include "train/link_scores.hpp"
#include "train/part_lists.hpp"
#include "train/phase_timer.hpp"
#include "train/schedule.hpp"

namespace tessera::train {
namespace {

using links::Pairs;

/// Steps of training draw by their numbers; what epochs are judged by is drawn by these.
enum DrawnOnce : std::uint32_t { for_ranks = 0xFFFFFFFCu, for_train, for_validation, for_test };

/// Pairs of which the first are edges, with their scores in the same order.
struct Judged {
  std::span<const float> positives, negatives;

  double value(Metric metric) const {
    return metric == Metric::average_precision ? links::average_precision(positives, negatives)
                                               : links::roc_auc(positives, negatives);
  }

  double loss(const LinkOptions& options) const {
    switch (options.loss) {
      case LinkLoss::bpr: return links::bpr_loss<float>(positives, negatives);
      case LinkLoss::margin: return links::margin_loss<float>(positives, negatives, options.margin);
      default: return links::bce_loss<float>(positives, negatives);
    }
  }
};

ops::PairLossKind kind_of(LinkLoss loss) {
  return loss == LinkLoss::bpr      ? ops::PairLossKind::bpr
         : loss == LinkLoss::margin ? ops::PairLossKind::margin
                                    : ops::PairLossKind::bce;
}

Metric other_than(Metric metric) {
  if (is_of_lists(metric)) return metric == Metric::recall ? Metric::ndcg : Metric::recall;
  return metric == Metric::roc_auc ? Metric::average_precision : Metric::roc_auc;
}

Pairs first_of(const Pairs& pairs, std::int64_t count) {
  return {{pairs.sources.begin(), pairs.sources.begin() + count},
          {pairs.targets.begin(), pairs.targets.begin() + count}};
}

const Problem& checked(const Problem& problem, const nn::Layer* encoder) {
  const auto reject = [](const std::string& what, const char* fix) {
    throw Error(ErrorCode::invalid_argument, what, "link training", fix);
  };
  if (!problem.link_task()) reject("the problem is no prediction of links", "prepare it for links");
  if (encoder == nullptr) reject("there is no encoder", "give one");
  if (encoder->input_width() != problem.num_features() ||
      encoder->output_width() != problem.outputs) {
    reject(fmt::format("{} maps {} features to {}, but the data has {} and embeddings {}",
                       encoder->describe(), encoder->input_width(), encoder->output_width(),
                       problem.num_features(), problem.outputs),
           "make it for Problem::shape()");
  }
  return problem;
}

}  // namespace

std::unique_ptr<nn::LinkModel> link_model(std::unique_ptr<nn::Layer> encoder,
                                          const LinkOptions& options) {
  const auto* const ours = dynamic_cast<const nn::Model*>(encoder.get());
  const double dropout = ours == nullptr ? 0 : ours->config().input_dropout;
  return std::make_unique<nn::LinkModel>(
      std::move(encoder), nn::LinkModelOptions{options.decoder, dropout, options.variational});
}

struct LinkTrainer::State {
  State(const Problem& given, std::unique_ptr<nn::Layer> encoder, const TrainOptions& given_options,
        std::uint64_t given_seed)
      : problem(checked(given, encoder.get())),
        options(given_options),
        place(given_options.placement.place()),
        workspace(place),
        seed(given_seed),
        model(drawn(std::move(encoder), given_options.links, given_seed)),
        optimiser(*model, given_options.optimiser,
                  {given_options.clip_gradients, given_options.average_weights}),
        features(given.features, given_options.placement, !model->accepts_sparse(),
                 plans_of(given_options)),
        split(links::split_links(given.graph, given.link_parts)),
        is_symmetric(links::check_link_parts(given.graph, given.link_parts)),
        message_graphs(split, place, plans_of(given_options)),
        asks_both_ways(is_symmetric && !model->decoder().is_symmetric()),
        batch(split.train, batch_size(split.train.size(), options.links.pairs_per_batch), options,
              asks_both_ways, problem.graph.num_rows(), place),
        non_edges(
            non_edges_of(options.links.avoids_held_out ? problem.graph : split.validation_graph,
                         problem.num_sources, place)),
        step_loss(1, place),
        losses(batch.steps > 1 ? batch.steps : 0, place),
        part_lists(problem, split, is_symmetric, options.links.top, place),
        may_record(options.record_steps && why_not_recorded(place.device).empty()) {
    model->leave_out_rewrites(options.rewrites_off);
    model->set_recompute(options.recompute);
    const LinkSampler all(problem.graph, problem.num_sources);
    const Pairs seen = first_of(split.train, std::min(split.train.size(), split.validation.size()));
    validation.emplace(asked({split.validation, judging(all, split.validation, for_validation),
                              seen, judging(all, seen, for_train)}));
    if (split.test.size() == 0) return;
    test.emplace(asked({split.test, judging(all, split.test, for_test)}));
  }

  static ops::PlanOptions plans_of(const TrainOptions& options) {
    ops::PlanOptions plans = options.plans;
    plans.epochs = options.epochs;
    return plans;
  }

  static std::unique_ptr<nn::LinkModel> drawn(std::unique_ptr<nn::Layer> encoder,
                                              const LinkOptions& links, std::uint64_t seed) {
    std::unique_ptr<nn::LinkModel> model = link_model(std::move(encoder), links);
    model->reset_parameters(seed);
    return model;
  }

  /// What a step of training asks for: positives, then negatives, each with the turned ones behind
  /// them where both ways are asked for.
  struct Batch {
    Batch(const Pairs& train, std::int64_t of_step, const TrainOptions& options, bool both_ways,
          VertexId num_vertices, const Place& place)
        : size(of_step),
          steps(ops::batches_of(train.size(), of_step)),
          loss{kind_of(options.links.loss), of_step * (both_ways ? 2 : 1), options.links.margin,
               options.label_smoothing},
          pairs(loss.positives * (1 + options.links.per_positive), place),
          ends(num_vertices, pairs.size(), place) {
      if (size == train.size()) {
        pairs.set(0, asked_ways(train, both_ways), place.stream);
      } else {
        chosen_from.emplace(train, place);
      }
    }

    std::int64_t size, steps;
    ops::PairLossOptions loss;
    PlacedPairs pairs;
    ops::PairEnds ends;
    std::optional<PlacedPairs> chosen_from;  ///< in each step anew; none: all are asked for
  };

  /// Of batches that have at most so many pairs each, as even as they can be.
  static std::int64_t batch_size(std::int64_t pairs, std::int64_t most) {
    if (most == 0 || most >= pairs) return pairs;
    const std::int64_t steps = (pairs + most - 1) / most;
    return pairs / steps;
  }

  /// The graphs that carry messages. Those that have the same edges are one.
  struct MessageGraphs {
    MessageGraphs(const links::LinkSplit& split, const Place& place, const ops::PlanOptions& plans)
        : train(split.train_graph, place, plans) {
      if (split.validation_graph.num_edges() > split.train_graph.num_edges()) {
        own_validation.emplace(split.validation_graph, place, plans);
      }
      if (split.test.size() > 0) test.emplace(split.test_graph, place, plans);
    }
    step::Topology& validation() { return own_validation ? *own_validation : train; }

    step::Topology train;
    std::optional<step::Topology> own_validation, test;
  };

  AskedPairs asked(const std::vector<Pairs>& lists) const { return {lists, asks_both_ways, place}; }

  Pairs judging(const LinkSampler& all, const Pairs& positives, DrawnOnce use) const {
    return all.draw(positives, {.seed = options.seed, .step = use});
  }

  step::Context context_with(step::Topology& messages, ops::ConstOperand pairs, Stream stream) {
    step::Context context;
    context.graph = &messages;
    context.pairs = pairs;
    context.seed = seed;
    context.step = static_cast<std::uint32_t>(step);
    context.stream = stream;
    context.workspace = &workspace;
    return context;
  }

  step::Context step_context(Stream stream) {
    step::Context context = context_with(message_graphs.train, batch.pairs, stream);
    context.training = true;
    context.clock = optimiser.clock();
    context.pair_ends = &batch.ends;
    context.pair_loss = &batch.loss;
    context.loss = step_loss.data();
    return context;
  }

  /// One step. Whatever differs from step to step is read from the optimiser's clock.
  void queue_step(Stream stream) {
    timed(times, Phase::batches, [&] { queue_batch(stream); });
    timed(times, Phase::passes, [&] { model->learn(features.input(), step_context(stream)); });
    timed(times, Phase::optimiser, [&] { optimiser.step(stream, &workspace); });
  }

  /// What the step asks for: pairs of training and negatives of each.
  void queue_batch(Stream stream) {
    const std::int64_t positives = batch.loss.positives;
    if (batch.chosen_from) {
      ops::choose_pairs(*batch.chosen_from,
                        {batch.size, seed, step, optimiser.clock(), asks_both_ways},
                        batch.pairs.part(0, positives), place.device, stream);
    }
    ops::draw_negatives(std::as_const(batch.pairs).part(0, batch.size), non_edges,
                        {options.links.negatives, options.links.per_positive, seed,
                         static_cast<std::uint32_t>(step), optimiser.clock(), asks_both_ways},
                        batch.pairs.part(positives, batch.pairs.size() - positives), stream);
    batch.ends.list(batch.pairs, stream);
  }

  /// Makes all plans and buffers of a step, once.
  void plan_step() {
    if (is_planned) return;
    const Stopwatch watch;
    model->prepare_to_learn(features.input(), step_context(place.stream));
    is_planned = true;
    first_step.plan = watch.seconds();
  }

  /// Keeps a step, which has run once, to be replayed. What cannot be recorded goes on as before.
  void record_step() {
    if (!may_record || !recorded_step.empty()) return;
    const PhaseTimes before = times;
    const Stopwatch watch;
    try {
      recorded_step = Recording::of(place.device, [&](Stream stream) { queue_step(stream); });
      recording_note = "training steps are recorded and replayed as a whole";
    } catch (const Error& error) {
      may_record = false;
      recording_note = fmt::format("training steps are not recorded: {}", error.what());
    }
    // Recording has counted a step that was not done, and the time of its phases.
    optimiser.set_steps(step);
    times = before;
    first_step.capture = watch.seconds();
    first_step.launches = recorded_step.empty() ? 0 : recorded_step.num_launches();
  }

  void start_step() {
    plan_step();
    const Stopwatch watch;
    optimiser.set_rate_factor(rate_factor(options, epoch, plateaus));
    if (recorded_step.empty()) {
      queue_step(place.stream);
    } else {
      recorded_step.replay(place.stream);
      optimiser.count_replay();
    }
    ++step;
    if (first_step.step != 0) return;
    synchronise(place.device, place.stream);
    first_step.step = watch.seconds();
    record_step();
  }

  /// Every batch of an epoch. Returns the mean loss.
  double train_epoch() {
    for (std::int64_t i = 0; i < batch.steps; ++i) {
      start_step();
      if (batch.steps == 1) break;
      copy_bytes(losses.data() + i, step_loss.data(), sizeof(double), place.device, place.stream);
    }
    const PhaseTimer timer(times, Phase::device);
    const Buffer<double>& from = batch.steps > 1 ? losses : step_loss;
    std::vector<double> values(static_cast<std::size_t>(from.size()));
    copy_bytes(values.data(), from.data(), values.size() * sizeof(double), place.device,
               place.stream);
    synchronise(place.device, place.stream);
    const double loss =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    require_finite_loss(loss, ++epoch);
    return loss;
  }

  /// Scores of what is asked, list after list.
  std::vector<float> scores_of(const AskedPairs& wanted, step::Topology& messages) {
    const step::Context context = context_with(messages, wanted.pairs(), place.stream);
    return wanted.scores(model->forward(features.input(), context), place.stream);
  }

  Evaluation evaluate() {
    const PhaseTimer timer(times, Phase::evaluation);
    optimiser.put_means_in(place.stream);
    const std::vector<float> seen = scores_of(*validation, message_graphs.validation());
    const Judged held_out{validation->list(seen, 0), validation->list(seen, 1)};
    const Judged trained{validation->list(seen, 2), validation->list(seen, 3)};
    Evaluation evaluation;
    if (is_of_lists(problem.metric)) {
      const Matrix<float> rows = embeddings(message_graphs.validation());
      evaluation.train = value_of(problem.metric, part_lists.train(rows, model->decoder()));
      evaluation.validation =
          value_of(problem.metric, part_lists.validation(rows, model->decoder()));
    } else {
      evaluation.train = trained.value(problem.metric);
      evaluation.validation = held_out.value(problem.metric);
    }
    evaluation.validation_loss = held_out.loss(options.links);
    if (test && is_of_lists(problem.metric)) {
      const links::ListQuality found =
          part_lists.test(embeddings(*message_graphs.test), model->decoder());
      evaluation.test = value_of(problem.metric, found);
      evaluation.test_other = value_of(other_than(problem.metric), found);
    } else if (test) {
      const std::vector<float> scores = scores_of(*test, *message_graphs.test);
      const Judged judged{test->list(scores, 0), test->list(scores, 1)};
      evaluation.test = judged.value(problem.metric);
      evaluation.test_other = judged.value(other_than(problem.metric));
    }
    optimiser.take_means_out(place.stream);
    return evaluation;
  }

  LinkQuality quality() {
    LinkQuality quality;
    if (!test) return quality;
    const std::vector<float> scores = scores_of(*test, *message_graphs.test);
    const Judged judged{test->list(scores, 0), test->list(scores, 1)};
    quality.pairs = split.test.size();
    quality.roc_auc = judged.value(Metric::roc_auc);
    quality.average_precision = judged.value(Metric::average_precision);
    for (std::size_t i = 0; i < LinkQuality::hits_at.size(); ++i) {
      const std::int64_t k = LinkQuality::hits_at[i];
      if (k > std::ssize(judged.negatives)) continue;
      quality.hits[i] = links::hits_at(judged.positives, judged.negatives, k);
    }
    quality.mean_reciprocal_rank = mean_reciprocal_rank(judged.positives);
    quality.top = options.links.top;
    if (!model->decoder().is_symmetric()) return quality;
    const links::ListQuality found =
        part_lists.test(embeddings(*message_graphs.test), model->decoder());
    quality.recall = found.recall;
    quality.ndcg = found.ndcg;
    quality.lists = found.rows;
    return quality;
  }

  /// A row for each vertex, as these messages make it.
  Matrix<float> embeddings(step::Topology& messages) {
    const step::Context context = context_with(messages, {}, place.stream);
    Matrix<float> rows = to_host(model->encoder().forward(features.input(), context), place.stream);
    return options.links.variational ? means_of(rows) : std::move(rows);
  }

  std::optional<double> mean_reciprocal_rank(std::span<const float> positives) {
    constexpr std::int64_t count = LinkQuality::ranked_among;
    Pairs negatives;
    try {
      negatives = LinkSampler(problem.graph, problem.num_sources)
                      .draw(split.test, {.kind = links::NegativeKind::by_source,
                                         .per_positive = count,
                                         .seed = options.seed,
                                         .step = for_ranks});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      return {};  // a source has none
    }
    const std::vector<float> scores = scores_of(asked({negatives}), *message_graphs.test);
    const MatrixView<const float> own(scores.data(), split.test.size(), count);
    return links::mean_reciprocal_rank(links::ranks(positives, own));
  }

  const Problem& problem;
  TrainOptions options;
  Place place;
  ops::DenseWorkspace workspace;
  std::uint64_t seed;
  std::unique_ptr<nn::LinkModel> model;
  Optimiser optimiser;
  nn::InputFeatures features;
  links::LinkSplit split;
  bool is_symmetric;  ///< an edge and its reverse are one pair
  MessageGraphs message_graphs;
  bool asks_both_ways;  ///< since the decoder tells apart what is one pair
  Batch batch;
  ops::NonEdges non_edges;
  Buffer<double> step_loss;
  Buffer<double> losses;                       ///< of the steps of an epoch, where it has several
  std::optional<AskedPairs> validation, test;  ///< the former with some of the training
  PartLists part_lists;
  Recording recorded_step;
  bool may_record, is_planned = false;
  std::optional<EpochNumbers> started;
  std::string recording_note;
  PhaseTimes times;
  FirstStep first_step;
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t plateaus = 0;
};

LinkTrainer::LinkTrainer(const Problem& problem, std::unique_ptr<nn::Layer> encoder,
                         const TrainOptions& options, std::uint64_t seed)
    : state_(std::make_unique<State>(problem, std::move(encoder), options, seed)) {}
LinkTrainer::~LinkTrainer() = default;

double LinkTrainer::train_epoch() { return state_->train_epoch(); }
Evaluation LinkTrainer::evaluate() { return state_->evaluate(); }
LinkQuality LinkTrainer::quality() { return state_->quality(); }

void LinkTrainer::start_epoch(bool evaluates) {
  const Stopwatch watch;
  EpochNumbers& numbers = state_->started.emplace();
  const std::int64_t before = state_->step;
  numbers.loss = state_->train_epoch();
  numbers.step_seconds = watch.seconds() / static_cast<double>(state_->step - before);
  if (evaluates) numbers.evaluation = state_->evaluate();
  numbers.seconds = watch.seconds();
}

EpochNumbers LinkTrainer::finish_epoch() {
  if (!state_->started) {
    throw Error(ErrorCode::invalid_argument, "no epoch was started", "link training",
                "call start_epoch first");
  }
  return *std::exchange(state_->started, {});
}

nn::Layer& LinkTrainer::model() noexcept { return *state_->model; }
Optimiser& LinkTrainer::optimiser() noexcept { return state_->optimiser; }
std::int64_t LinkTrainer::epoch() const noexcept { return state_->epoch; }
std::int64_t LinkTrainer::step() const noexcept { return state_->step; }
const PhaseTimes& LinkTrainer::times() const noexcept { return state_->times; }
const FirstStep& LinkTrainer::first_step() const noexcept { return state_->first_step; }
const std::string& LinkTrainer::recording_note() const noexcept { return state_->recording_note; }
void LinkTrainer::set_plateaus(std::int64_t count) noexcept { state_->plateaus = count; }
void LinkTrainer::set_position(std::int64_t epoch, std::int64_t step) noexcept {
  state_->epoch = epoch;
  state_->step = step;
}

}  // namespace tessera::train
