// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/trainer.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/core/start.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/ops/evaluation.hpp"

#include "core/parts_clock.hpp"
#include "core/stream_uses.hpp"
#include "train/batch.hpp"
#include "train/blockwise_pass.hpp"
#include "train/epoch_recordings.hpp"
#include "train/finite_loss.hpp"
#include "train/host.hpp"
#include "train/phase_timer.hpp"
#include "train/rehearsal.hpp"
#include "train/schedule.hpp"
#include "train/score.hpp"
#include "train/training_start.hpp"

namespace tessera::train {
namespace {

/// What parts of this name took: devices copy, a `Topology` builds.
double seconds_of(std::string_view name, const PartsClock& clock) {
  for (const PartsClock::Part& part : clock.parts()) {
    if (part.name == name) return part.microseconds * 1e-6;
  }
  return 0;
}

/// An epoch that was started. What is known of it already is in its numbers.
struct StartedEpoch {
  std::int64_t number = 0;  ///< from 1
  bool is_queued = false;   ///< its numbers are still to come
  bool evaluates = false;
  EpochNumbers numbers = {};
};

/// A batch of an epoch, by the number of its loss.
struct TrainedBatch {
  std::int64_t number = 0;
  double items = 0;
};

/// A step's use of a batch, marked also where the step fails half-way: what it has queued still
/// runs.
struct MarkedUse {
  StreamUses* uses;
  Stream stream;

  ~MarkedUse() {
    if (uses != nullptr) uses->mark(stream);
  }
};

double metric_of(const ops::PartCounts& counts, bool multi_label) {
  // F1 = 2 TP / (2 TP + FP + FN) for several labels, the share of right ones for classes.
  const std::int64_t right = multi_label ? 2 * counts.right : counts.right;
  const std::int64_t all = right + counts.wrong;
  return all == 0 ? 0 : static_cast<double>(right) / static_cast<double>(all);
}

Evaluation evaluation_of(const ops::EvaluationNumbers& numbers, bool multi_label) {
  return {metric_of(numbers.train, multi_label), metric_of(numbers.validation, multi_label),
          metric_of(numbers.test, multi_label), numbers.validation_loss};
}

}  // namespace

struct Trainer::State {
  State(const Problem& given, const Split& given_split, std::unique_ptr<nn::Layer> given_model,
        const TrainOptions& given_options, std::uint64_t given_seed)
      : problem(given),
        split(placed(given_split, given)),
        options(given_options),
        place(given_options.placement.place()),
        workspace(place),
        seed(given_seed),
        owned_model(std::move(given_model)),
        model(*owned_model),
        optimiser(model, given_options.optimiser,
                  {given_options.clip_gradients, given_options.average_weights}),
        rehearsal(model, given_options.placement, given.shape().vertices),
        batches(given, split, given_options, feature_form(given, given_options, model), given_seed,
                makes_ahead(given_options), train_loss(given, given_split, given_options)),
        numbers(place),
        losses(batches.is_full() ? 0 : batches.batches_per_epoch(), place) {
    model.leave_out_rewrites(options.rewrites_off);
    model.set_recompute(options.recompute);
    first_step.upload = before_batches.seconds();
    auto* const known = dynamic_cast<nn::Model*>(&model);
    if (options.rows_at_a_time > 0 && known != nullptr) {
      blocks.emplace(*known, batches.full().graph.graph(), options.rows_at_a_time,
                     batches.full().graph.plan_options());
    }
    may_record = !blocks && options.record_steps && (batches.is_full() || batches.keeps()) &&
                 why_not_recorded(place.device).empty();
  }
  /// Epochs that nobody wants any more must not lose what they work on.
  ~State() { numbers.forget(); }

  /// One step. Whatever differs from step to step is read from the optimiser's clock.
  void queue_step(Batch& batch, double* loss, Stream stream) {
    step::Context context = step_context(batch, stream);
    context.targets = &*batch.train_targets;
    context.loss = loss;
    timed(times, Phase::passes, [&] { model.learn(batch.features.input(), context); });
    timed(times, Phase::optimiser, [&] { optimiser.step(stream, &workspace); });
  }

  /// The logits of all items without dropout, and what can be counted of them.
  void queue_evaluation(Batch& batch, ops::EvaluationNumbers* counts, Stream stream) {
    step::Context context = batch.context(false, seed, step);
    context.stream = stream;
    context.workspace = &workspace;
    optimiser.put_means_in(stream);
    evaluated = blocks ? &blocks->run(batch.features.input(), stream, &workspace)
                       : &model.forward(batch.features.input(), context);
    optimiser.take_means_out(stream);
    ops::evaluate(*evaluated, *evaluation_targets, counts, stream, &workspace);
  }

  void start_evaluation() {
    Batch& batch = batches.full();
    if (!evaluation_targets) {
      evaluation_targets = batch.evaluation_targets(split, problem.outputs, place, batches.loss());
      // Buffers may grow: what was recorded of smaller batches would go on with the old ones.
      for (const std::unique_ptr<Batch>& kept : batches.kept()) {
        if (kept != nullptr) kept->recorded_step = {};
      }
    }
    if (recordings.has_evaluation()) {
      recordings.replay_evaluation(place.stream);
    } else {
      queue_evaluation(batch, numbers.evaluation(), place.stream);
    }
  }

  /// Waits for the evaluation that was started.
  Evaluation finish_evaluation() {
    Batch& batch = batches.full();
    Evaluation evaluation =
        evaluation_of(numbers.now(place.stream).evaluation, problem.multi_label());
    if (!is_counted(problem.metric)) {
      Matrix<float> logits = to_host(*evaluated, place.stream);
      if (const auto& learned = batches.loss().numbers) give_units(learned->outputs, logits);
      evaluation.train = score(problem.metric, logits, batch, split.train);
      evaluation.validation = score(problem.metric, logits, batch, split.validation);
      evaluation.test = score(problem.metric, logits, batch, split.test);
    }
    // Not before a step, which may make buffers grow.
    if (may_record && batches.is_full() && !batch.recorded_step.empty() &&
        !recordings.has_evaluation()) {
      record_evaluation(batch);
    }
    return evaluation;
  }

  /// With steps where epochs may run ahead.
  void record_evaluation(Batch& batch) {
    const std::string why_not = recordings.record(
        numbers, runs_ahead(),
        [&](Recording& recording, FunctionRef<void(Stream)> work) {
          return record(recording, work);
        },
        [&](double* loss, Stream stream) { queue_step(batch, loss, stream); },
        [&](ops::EvaluationNumbers* counts, Stream stream) {
          queue_evaluation(batch, counts, stream);
        });
    if (why_not.empty()) return;
    recording_note += fmt::format("; evaluations are not recorded with them: {}", why_not);
  }

  Evaluation evaluate() {
    const PhaseTimer timer(times, Phase::evaluation);
    start_evaluation();
    return finish_evaluation();
  }

  /// Keeps what `work` queues, which has run once, to be replayed. What cannot be recorded goes on
  /// as before. Returns why it could not be, or nothing.
  std::string record(Recording& recording, FunctionRef<void(Stream)> work) {
    const PhaseTimes before = times;
    std::string why_not;
    try {
      recording = Recording::of(place.device, work);
    } catch (const Error& error) {
      may_record = false;
      why_not = error.what();
    }
    // Recording may have counted a step that was not done, and the time of its phases.
    optimiser.set_steps(step);
    times = before;
    return why_not;
  }

  step::Context step_context(Batch& batch, Stream stream) {
    step::Context context = batch.context(true, seed, step);
    context.clock = optimiser.clock();
    context.stream = stream;
    context.workspace = &workspace;
    return context;
  }

  /// Makes all plans and buffers of a step on this batch.
  void plan_step(Batch& batch) {
    if (batch.planned) return;
    const PartsClock clock;
    const Stopwatch watch;
    model.prepare_to_learn(batch.features.input(), step_context(batch, place.stream));
    batch.planned = true;
    batches.learn_plans(batch);
    if (has_stepped) return;
    const double copying = seconds_of("copying", clock);
    const double building = seconds_of("building", clock);
    first_step.upload += copying;
    first_step.build += building;
    first_step.plan += watch.seconds() - copying - building;
  }

  /// Copies what the loss compares with to the device.
  void bring_targets(Batch& batch) {
    if (batch.train_targets) return;
    const Stopwatch watch;
    batch.train_targets =
        batch.targets_of(batch.train_items, problem.outputs, place, batches.loss());
    if (!has_stepped) first_step.upload += watch.seconds();
  }

  /// Gives the device one step to do, whose loss goes to `loss`, or what was recorded of it.
  void start_step(Batch& batch, double* loss) { start_step(batch, loss, batch.recorded_step); }
  void start_step(Batch& batch, double* loss, const Recording& recorded) {
    const MarkedUse use{batch.uses.get(), place.stream};
    timed(times, Phase::batches, [&] { plan_step(batch); });
    bring_targets(batch);
    planned.restart();
    optimiser.set_rate_factor(rate_factor(options, epoch, plateaus));
    if (recorded.empty()) {
      rehearsal.wait();
      queue_step(batch, loss, place.stream);
    } else {
      recorded.replay(place.stream);
      optimiser.count_replay();
    }
    ++step;
  }

  /// After the first step of all, which is waited for.
  void note_first_step() {
    if (!has_stepped) first_step.step = planned.seconds();
    has_stepped = true;
  }

  void record_step(Batch& batch, double* loss) {
    if (!may_record || !batch.recorded_step.empty()) return;
    const Stopwatch watch;
    const std::string why_not =
        record(batch.recorded_step, [&](Stream stream) { queue_step(batch, loss, stream); });
    recording_note = why_not.empty() ? "training steps are recorded and replayed as a whole"
                                     : fmt::format("training steps are not recorded: {}", why_not);
    if (first_step.capture == 0) first_step.capture = watch.seconds();
    first_step.launches = batch.recorded_step.num_launches();
  }

  double train_step(Batch& batch) {
    start_step(batch, numbers.loss());
    const double value =
        timed(times, Phase::device, [&] { return numbers.now(place.stream).loss; });
    note_first_step();
    record_step(batch, numbers.loss());
    return value;
  }

  /// Every batch of an epoch. Returns the mean loss.
  double train_epoch() {
    batches.start_epoch(epoch);
    const double loss = batches.is_full() ? train_step(batches.full()) : train_batches();
    ++epoch;
    return loss;
  }

  /// The device is given one batch after the other, and waited for at the end.
  double train_batches() {
    const bool records = may_record && all_are_planned();
    std::vector<TrainedBatch> trained;
    for (std::int64_t i = 0; i < losses.size(); ++i) {
      Batch& batch =
          timed(times, Phase::batches, [&]() -> Batch& { return batches.batch(i, place.stream); });
      if (batch.train_items.empty()) continue;
      trained.push_back({batch.number, static_cast<double>(batch.train_items.size())});
      double* const loss = losses.data() + batch.number;
      start_step(batch, loss);
      if (!has_stepped) {
        timed(times, Phase::device, [&] { synchronise(place.device, place.stream); });
        note_first_step();
      }
      if (records) record_step(batch, loss);
    }
    return mean_loss(trained);
  }

  /// Whether no batch that is still to come can make buffers grow.
  bool all_are_planned() const {
    return std::all_of(batches.kept().begin(), batches.kept().end(), [](const auto& batch) {
      return batch != nullptr && (batch->planned || batch->train_items.empty());
    });
  }

  /// Waits for all steps of an epoch.
  double mean_loss(std::span<const TrainedBatch> trained) {
    const PhaseTimer timer(times, Phase::device);
    Buffer<double> values(losses.size());
    copy_bytes(values.data(), losses.data(), checked_bytes(losses.size(), sizeof(double)),
               place.device, place.stream);
    synchronise(place.device, place.stream);
    double sum = 0, items = 0;
    for (const TrainedBatch& batch : trained) {
      sum += values[batch.number] * batch.items;
      items += batch.items;
    }
    return sum / items;
  }

  /// The only step of an epoch, without waiting for it.
  void queue_epoch() {
    start_step(batches.full(), numbers.loss());
    ++epoch;
  }

  /// The same and its evaluation, whose numbers come back by themselves.
  void queue_evaluated_epoch() {
    numbers.begin(place.stream);
    if (const Recording* const whole = recordings.next_epoch(numbers.slot())) {
      start_step(batches.full(), nullptr, *whole);
      ++epoch;
      return numbers.end_of_whole(place.stream);
    }
    queue_epoch();
    numbers.end_of_steps(place.stream);
    start_evaluation();
    numbers.end(place.stream);
  }

  bool runs_ahead() { return !batches.full().recorded_step.empty() && is_counted(problem.metric); }

  void start_epoch(bool evaluates) {
    StartedEpoch started{epoch + 1, false, evaluates};
    if (runs_ahead() && evaluates && recordings.has_evaluation()) {
      started.is_queued = true;
      queue_evaluated_epoch();
    } else if (runs_ahead() && !evaluates) {
      started.is_queued = true;
      numbers.begin(place.stream);
      queue_epoch();
      numbers.end_of_steps(place.stream);
      numbers.end(place.stream);
    } else {
      const Stopwatch watch;
      const std::int64_t before = step;
      started.numbers.loss = train_epoch();
      const std::int64_t steps = std::max<std::int64_t>(step - before, 1);
      started.numbers.step_seconds = watch.seconds() / static_cast<double>(steps);
      if (evaluates) started.numbers.evaluation = evaluate();
      started.numbers.seconds = watch.seconds();
    }
    under_way.push_back(started);
  }

  EpochNumbers finish_epoch() {
    if (under_way.empty()) {
      throw Error(ErrorCode::invalid_argument, "no epoch was started", "training",
                  "call start_epoch first");
    }
    StartedEpoch started = under_way.front();
    under_way.pop_front();
    if (started.is_queued) {
      const LateNumbers::Arrived arrived = numbers.take();
      started.numbers.loss = arrived.numbers.loss;
      if (started.evaluates) {
        started.numbers.evaluation =
            evaluation_of(arrived.numbers.evaluation, problem.multi_label());
      }
      started.numbers.step_seconds = arrived.step_seconds;
      started.numbers.seconds = arrived.seconds;
      times[Phase::device] += arrived.step_seconds;
      times[Phase::evaluation] += arrived.seconds - arrived.step_seconds;
    }
    require_finite_loss(started.numbers.loss, started.number);
    return started.numbers;
  }

  const Problem& problem;
  Split split;  ///< in the numbers of full batches
  TrainOptions options;
  Place place;
  ops::DenseWorkspace workspace;
  std::uint64_t seed;
  std::unique_ptr<nn::Layer> owned_model;
  nn::Layer& model;
  Optimiser optimiser;
  Rehearsal rehearsal;
  Stopwatch before_batches;
  BatchSource batches;
  LateNumbers numbers;
  Buffer<double> losses;  ///< of all batches of an epoch; none where there is one
  std::deque<StartedEpoch> under_way;
  std::optional<ops::EvaluationTargets> evaluation_targets;
  EpochRecordings recordings;
  std::optional<BlockwisePass> blocks;  ///< of evaluations
  const step::Tensor* evaluated = nullptr;
  bool may_record = false;
  std::string recording_note;
  PhaseTimes times;
  FirstStep first_step;
  Stopwatch planned;  ///< since the last step was planned
  bool has_stepped = false;
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t plateaus = 0;
};

Trainer::Trainer(const Problem& problem, const Split& split, const nn::ModelConfig& config,
                 const TrainOptions& options, std::uint64_t seed) {
  Stopwatch watch;
  start(options.placement.device());
  const double starting = watch.seconds();
  watch.restart();
  auto model = std::make_unique<nn::Model>(fitted(config, problem), problem.num_features(),
                                           problem.outputs, seed, options.placement);
  const double building = watch.seconds();
  state_ = std::make_unique<State>(
      problem, split, started(problem, std::move(model), options, seed), options, seed);
  state_->first_step.start = starting;
  state_->first_step.build = building;
}

Trainer::Trainer(const Problem& problem, const Split& split, std::unique_ptr<nn::Layer> model,
                 const TrainOptions& options, std::uint64_t seed)
    : state_(std::make_unique<State>(
          problem, split, started(problem, std::move(model), options, seed), options, seed)) {}

Trainer::~Trainer() = default;

double Trainer::train_epoch() {
  const double loss = state_->train_epoch();
  require_finite_loss(loss, state_->epoch);
  return loss;
}

double Trainer::train_epochs(std::int64_t count) {
  for (; count > 1; --count) {
    if (runs_ahead()) {
      state_->queue_epoch();
    } else {
      train_epoch();
    }
  }
  return train_epoch();
}

Evaluation Trainer::evaluate() { return state_->evaluate(); }
void Trainer::start_epoch(bool evaluates) { state_->start_epoch(evaluates); }
EpochNumbers Trainer::finish_epoch() { return state_->finish_epoch(); }
bool Trainer::runs_ahead() const noexcept { return state_->runs_ahead(); }
nn::Layer& Trainer::model() noexcept { return state_->model; }
Optimiser& Trainer::optimiser() noexcept { return state_->optimiser; }
std::int64_t Trainer::epoch() const noexcept { return state_->epoch; }
std::int64_t Trainer::step() const noexcept { return state_->step; }
const PhaseTimes& Trainer::times() const noexcept { return state_->times; }
const FirstStep& Trainer::first_step() const noexcept { return state_->first_step; }
const std::string& Trainer::recording_note() const noexcept { return state_->recording_note; }

void Trainer::set_plateaus(std::int64_t count) noexcept { state_->plateaus = count; }

void Trainer::set_position(std::int64_t epoch, std::int64_t step) noexcept {
  state_->epoch = epoch;
  state_->step = step;
}

}  // namespace tessera::train
