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
#include "tessera/graph/build.hpp"
#include "tessera/links/curves.hpp"
#include "tessera/links/loss.hpp"
#include "tessera/links/ranking.hpp"
#include "tessera/nn/input.hpp"
#include "tessera/nn/model.hpp"

#include "train/finite_loss.hpp"
#include "train/link_scores.hpp"
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
};

Metric other_than(Metric metric) {
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
      std::move(encoder),
      nn::LinkModelOptions{options.decoder, options.loss == LinkLoss::bpr, dropout});
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
        sampler(options.links.avoids_held_out ? problem.graph : split.validation_graph),
        loss_value(1, place) {
    model->leave_out_rewrites(options.rewrites_off);
    model->set_recompute(options.recompute);
    const links::NegativeSampler all(problem.graph);
    const Pairs seen = first_of(split.train, std::min(split.train.size(), split.validation.size()));
    validation.emplace(scorer(), std::vector<Pairs>{split.validation,
                                                    judging(all, split.validation, for_validation),
                                                    seen, judging(all, seen, for_train)});
    if (split.test.size() == 0) return;
    test.emplace(scorer(), std::vector<Pairs>{split.test, judging(all, split.test, for_test)});
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

  /// How the model scores pairs. Each pair is asked for both ways where the graph has no direction
  /// and the decoder has one.
  LinkScorer scorer() const {
    return {options.links.decoder, problem.graph.num_rows(),
            is_symmetric && !model->decoder().is_symmetric(), place, options.plans};
  }

  Pairs judging(const links::NegativeSampler& all, const Pairs& positives, DrawnOnce use) const {
    return all.draw(positives, {.seed = options.seed, .step = use});
  }

  step::Context context_with(std::span<step::Topology* const> graphs, bool training) {
    step::Context context;
    context.graphs = graphs;
    context.training = training;
    context.seed = seed;
    context.step = static_cast<std::uint32_t>(step);
    context.stream = place.stream;
    context.workspace = &workspace;
    return context;
  }

  /// Of the encoder, to which the graphs of pairs are added.
  std::vector<step::Topology*> graphs_of_messages(step::Topology& graph) {
    return std::vector<step::Topology*>(static_cast<std::size_t>(model->encoder().num_graphs()),
                                        &graph);
  }

  double train_step() {
    std::optional<LinkBatch> batch;
    std::vector<step::Topology*> graphs = graphs_of_messages(message_graphs.train);
    timed(times, Phase::batches, [&] {
      const Pairs negatives =
          sampler.draw(split.train, {options.links.negatives, options.links.per_positive, seed,
                                     static_cast<std::uint32_t>(step)});
      batch.emplace(scorer(), split.train, negatives, options.links.loss, options.label_smoothing);
      batch->append_to(graphs);
    });
    step::Context context = context_with(graphs, true);
    context.clock = optimiser.clock();
    context.targets = &batch->targets();
    context.loss = loss_value.data();
    optimiser.set_rate_factor(rate_factor(options, epoch, plateaus));
    timed(times, Phase::passes, [&] { model->learn(features.input(), context); });
    timed(times, Phase::optimiser, [&] { optimiser.step(place.stream, &workspace); });
    ++step;
    const PhaseTimer timer(times, Phase::device);
    double loss = 0;
    copy_bytes(&loss, loss_value.data(), sizeof loss, place.device, place.stream);
    synchronise(place.device, place.stream);
    return loss;
  }

  double train_epoch() {
    const Stopwatch watch;
    const double loss = train_step();
    if (first_step.step == 0) first_step.step = watch.seconds();
    require_finite_loss(loss, ++epoch);
    return loss;
  }

  /// Scores of what is asked, list after list.
  std::vector<float> scores_of(AskedPairs& asked, step::Topology& messages) {
    std::vector<step::Topology*> graphs = graphs_of_messages(messages);
    asked.append_to(graphs);
    if (options.links.loss == LinkLoss::bpr) graphs.push_back(nullptr);
    return asked.scores(model->forward(features.input(), context_with(graphs, false)),
                        place.stream);
  }

  Evaluation evaluate() {
    const PhaseTimer timer(times, Phase::evaluation);
    optimiser.put_means_in(place.stream);
    const std::vector<float> seen = scores_of(*validation, message_graphs.validation());
    const Judged held_out{validation->list(seen, 0), validation->list(seen, 1)};
    const Judged trained{validation->list(seen, 2), validation->list(seen, 3)};
    Evaluation evaluation;
    evaluation.train = trained.value(problem.metric);
    evaluation.validation = held_out.value(problem.metric);
    evaluation.validation_loss =
        options.links.loss == LinkLoss::bpr
            ? links::bpr_loss<float>(held_out.positives, held_out.negatives)
            : links::bce_loss<float>(held_out.positives, held_out.negatives);
    if (test) {
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
    return quality;
  }

  std::optional<double> mean_reciprocal_rank(std::span<const float> positives) {
    constexpr std::int64_t count = LinkQuality::ranked_among;
    Pairs negatives;
    try {
      negatives = links::NegativeSampler(problem.graph)
                      .draw(split.test, {.kind = links::NegativeKind::by_source,
                                         .per_positive = count,
                                         .seed = options.seed,
                                         .step = for_ranks});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      return {};  // a source has none
    }
    AskedPairs asked(scorer(), {negatives});
    const std::vector<float> scores = scores_of(asked, *message_graphs.test);
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
  links::NegativeSampler sampler;
  Buffer<double> loss_value;
  std::optional<AskedPairs> validation, test;  ///< the former with some of the training
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
  numbers.loss = state_->train_epoch();
  numbers.step_seconds = watch.seconds();
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
