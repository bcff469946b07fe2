// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/trainer.hpp"

#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/ops/loss.hpp"

#include "train/batch.hpp"
#include "train/host.hpp"

namespace tessera::train {
namespace {

/// Adds the time it lives to a phase.
class PhaseTimer {
 public:
  PhaseTimer(PhaseTimes& times, Phase phase) : seconds_(times[phase]) {}
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;
  ~PhaseTimer() { seconds_ += watch_.seconds(); }

 private:
  double& seconds_;
  Stopwatch watch_;
};

template <class Work>
decltype(auto) timed(PhaseTimes& times, Phase phase, Work&& work) {
  const PhaseTimer timer(times, phase);
  return work();
}

/// A graph that every step sees is used once in an epoch, others about as often.
ops::PlanOptions plans_of(const TrainOptions& options) {
  ops::PlanOptions plans = options.plans;
  plans.epochs = options.epochs;
  return plans;
}

double metric_of(Metric metric, MatrixView<const float> logits, const Batch& batch,
                 std::span<const std::int64_t> items) {
  if (batch.targets != nullptr) {
    return metric == Metric::roc_auc ? roc_auc(logits, *batch.targets, items)
                                     : micro_f1(logits, *batch.targets, items);
  }
  return metric == Metric::roc_auc ? roc_auc(logits, batch.labels, items)
                                   : accuracy(logits, batch.labels, items);
}

}  // namespace

struct Trainer::State {
  State(const Problem& given, const Split& given_split, const nn::ModelConfig& config,
        const TrainOptions& given_options, std::uint64_t given_seed)
      : problem(given),
        split(given_split),
        options(given_options),
        place(given_options.placement.place()),
        workspace(place),
        seed(given_seed),
        model(config, given.num_features(), given.outputs, given_seed, given_options.placement),
        optimiser(model, given_options.optimiser),
        batches(given, given_split, given_options,
                {given_options.placement, !model.accepts_sparse(), plans_of(given_options)},
                given_seed),
        gradient(given_options.placement),
        loss(1, place) {
    may_record =
        options.record_steps && batches.is_full() && why_not_recorded(place.device).empty();
  }

  double rate_factor() const {
    if (options.rate_decay_every == 0) return 1;
    return std::pow(options.rate_decay, static_cast<double>(epoch / options.rate_decay_every));
  }

  /// Waits for what was queued, and reads the loss it computed.
  double loss_value() const {
    double value = 0;
    copy_bytes(&value, loss.data(), sizeof(value), place.device, place.stream);
    synchronise(place.device, place.stream);
    return value;
  }

  /// One step. Whatever differs from step to step is read from the optimiser's clock.
  void queue_step(Batch& batch, Stream stream) {
    const nn::Context context = step_context(batch, stream);
    const nn::Tensor& logits = timed(times, Phase::forward, [&]() -> const nn::Tensor& {
      return model.forward(batch.features.input(), context);
    });
    timed(times, Phase::loss, [&] {
      gradient.resize(logits.rows(), logits.cols());
      ops::loss(logits, *batch.train_targets, gradient, loss.data(), stream, &workspace);
    });
    timed(times, Phase::backward, [&] { model.backward(gradient, context); });
    timed(times, Phase::optimiser, [&] { optimiser.step(stream); });
  }

  /// The logits of all items without dropout, and the loss of those for validation.
  void queue_evaluation(Batch& batch, Stream stream) {
    nn::Context context = batch.context(false, seed, step);
    context.stream = stream;
    context.workspace = &workspace;
    evaluated = &model.forward(batch.features.input(), context);
    ops::loss(*evaluated, *validation_targets, {}, loss.data(), stream, &workspace);
  }

  /// Keeps what `work` queues, which has run once, to be replayed. What cannot be recorded goes on
  /// as before.
  void record(Recording& recording, FunctionRef<void(Stream)> work) {
    try {
      recording = Recording::of(place.device, work);
      recording_note = "training steps are recorded and replayed as a whole";
    } catch (const Error& error) {
      may_record = false;
      recording_note = fmt::format("training steps are not recorded: {}", error.what());
    }
    // Recording may have counted a step that was not done.
    optimiser.set_steps(step);
  }

  nn::Context step_context(Batch& batch, Stream stream) {
    nn::Context context = batch.context(true, seed, step);
    context.clock = optimiser.clock();
    context.stream = stream;
    context.workspace = &workspace;
    return context;
  }

  /// Makes all plans and buffers of a step on this batch.
  void plan_step(Batch& batch) {
    if (batch.planned) return;
    model.prepare(batch.features.input(), step_context(batch, place.stream));
    batch.planned = true;
  }

  /// Gives the device one step to do.
  void start_step(Batch& batch) {
    timed(times, Phase::batches, [&] { plan_step(batch); });
    if (!batch.train_targets) {
      batch.train_targets = batch.targets_of(batch.train_items, problem.outputs, place);
    }
    optimiser.set_rate_factor(rate_factor());
    if (recorded_step.empty()) {
      queue_step(batch, place.stream);
    } else {
      timed(times, Phase::device, [&] { recorded_step.replay(place.stream); });
      optimiser.count_replay();
    }
    ++step;
  }

  double train_step(Batch& batch) {
    start_step(batch);
    const double value = timed(times, Phase::device, [&] { return loss_value(); });
    if (may_record && recorded_step.empty()) {
      record(recorded_step, [&](Stream stream) { queue_step(batch, stream); });
    }
    return value;
  }

  const Problem& problem;
  Split split;
  TrainOptions options;
  Place place;
  ops::DenseWorkspace workspace;
  std::uint64_t seed;
  nn::Model model;
  Optimiser optimiser;
  BatchSource batches;
  nn::Tensor gradient;
  Buffer<double> loss;  ///< one, on the device
  std::optional<ops::LossTargets> validation_targets;
  Recording recorded_step;
  Recording recorded_evaluation;
  const nn::Tensor* evaluated = nullptr;
  bool may_record = false;
  std::string recording_note;
  PhaseTimes times;
  std::int64_t epoch = 0;
  std::int64_t step = 0;
};

Trainer::Trainer(const Problem& problem, const Split& split, const nn::ModelConfig& config,
                 const TrainOptions& options, std::uint64_t seed)
    : state_(std::make_unique<State>(problem, split, config, options, seed)) {}
Trainer::~Trainer() = default;

bool Trainer::runs_ahead() const noexcept { return !state_->recorded_step.empty(); }

double Trainer::train_epochs(std::int64_t count) {
  State& s = *state_;
  for (; count > 1; --count) {
    if (!runs_ahead()) {
      train_epoch();
      continue;
    }
    s.start_step(s.batches.batch(0));
    ++s.epoch;
  }
  return train_epoch();
}

double Trainer::train_epoch() {
  State& s = *state_;
  s.batches.start_epoch(s.epoch);
  double sum = 0, items = 0;
  for (std::int64_t i = 0; i < s.batches.batches_per_epoch(); ++i) {
    Batch& batch = timed(s.times, Phase::batches, [&]() -> Batch& { return s.batches.batch(i); });
    if (batch.train_items.empty()) continue;
    const auto count = static_cast<double>(batch.train_items.size());
    sum += s.train_step(batch) * count;
    items += count;
  }
  ++s.epoch;
  const double loss = sum / items;
  if (!std::isfinite(loss)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("training diverged: the loss of epoch {} is {}", s.epoch, loss),
                "training", "lower the learning rate");
  }
  return loss;
}

Evaluation Trainer::evaluate() {
  State& s = *state_;
  const PhaseTimer timer(s.times, Phase::evaluation);
  Batch& batch = s.batches.full();
  if (!s.validation_targets) {
    s.validation_targets = batch.targets_of(s.split.validation, s.problem.outputs, s.place);
  }
  if (s.recorded_evaluation.empty()) {
    s.queue_evaluation(batch, s.place.stream);
  } else {
    s.recorded_evaluation.replay(s.place.stream);
  }
  const Matrix<float> logits = to_host(*s.evaluated, s.place.stream);
  const auto metric = [&](std::span<const std::int64_t> items) {
    return metric_of(s.problem.metric, logits, batch, items);
  };
  const Evaluation evaluation{metric(s.split.train), metric(s.split.validation),
                              metric(s.split.test), s.loss_value()};
  if (s.may_record && s.recorded_evaluation.empty()) {
    s.record(s.recorded_evaluation, [&](Stream stream) { s.queue_evaluation(batch, stream); });
  }
  return evaluation;
}

nn::Model& Trainer::model() noexcept { return state_->model; }
Optimiser& Trainer::optimiser() noexcept { return state_->optimiser; }
std::int64_t Trainer::epoch() const noexcept { return state_->epoch; }
std::int64_t Trainer::step() const noexcept { return state_->step; }
const PhaseTimes& Trainer::times() const noexcept { return state_->times; }
const std::string& Trainer::recording_note() const noexcept { return state_->recording_note; }

void Trainer::set_position(std::int64_t epoch, std::int64_t step) noexcept {
  state_->epoch = epoch;
  state_->step = step;
}

}  // namespace tessera::train
