// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/trainer.hpp"

#include <cmath>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
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

double loss_of(const nn::Tensor& logits, const Batch& batch, std::span<const std::int64_t> items,
               ops::Operand gradient, const nn::Context& context) {
  const Device device = logits.device();
  if (batch.targets != nullptr) {
    return ops::binary_cross_entropy(logits, *batch.targets, items, gradient, device,
                                     context.stream);
  }
  return ops::cross_entropy(logits, batch.labels, items, gradient, device, context.stream);
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
        seed(given_seed),
        model(config, given.num_features(), given.outputs, given_seed, given_options.placement),
        optimiser(model, given_options.optimiser),
        batches(given, given_split, given_options,
                {given_options.placement, !model.accepts_sparse()}, given_seed),
        gradient(given_options.placement) {}

  double rate_factor() const {
    if (options.rate_decay_every == 0) return 1;
    return std::pow(options.rate_decay, static_cast<double>(epoch / options.rate_decay_every));
  }

  double train_step(Batch& batch) {
    const nn::Context context = batch.context(true, seed, step);
    const nn::Tensor& logits = timed(times, Phase::forward, [&]() -> const nn::Tensor& {
      return model.forward(batch.features.input(), context);
    });
    const double loss = timed(times, Phase::loss, [&] {
      gradient.resize(logits.rows(), logits.cols());
      return loss_of(logits, batch, batch.train_items, gradient, context);
    });
    timed(times, Phase::backward, [&] { model.backward(gradient, context); });
    timed(times, Phase::optimiser, [&] { optimiser.step(rate_factor(), context.stream); });
    ++step;
    return loss;
  }

  const Problem& problem;
  Split split;
  TrainOptions options;
  std::uint64_t seed;
  nn::Model model;
  Optimiser optimiser;
  BatchSource batches;
  nn::Tensor gradient;
  PhaseTimes times;
  std::int64_t epoch = 0;
  std::int64_t step = 0;
};

Trainer::Trainer(const Problem& problem, const Split& split, const nn::ModelConfig& config,
                 const TrainOptions& options, std::uint64_t seed)
    : state_(std::make_unique<State>(problem, split, config, options, seed)) {}
Trainer::~Trainer() = default;

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
  const nn::Context context = batch.context(false, s.seed, s.step);
  const nn::Tensor& logits = s.model.forward(batch.features.input(), context);
  const Matrix<float> on_host = to_host(logits, context.stream);
  const auto metric = [&](std::span<const std::int64_t> items) {
    return metric_of(s.problem.metric, on_host, batch, items);
  };
  return {metric(s.split.train), metric(s.split.validation), metric(s.split.test),
          loss_of(logits, batch, s.split.validation, {}, context)};
}

nn::Model& Trainer::model() noexcept { return state_->model; }
Optimiser& Trainer::optimiser() noexcept { return state_->optimiser; }
std::int64_t Trainer::epoch() const noexcept { return state_->epoch; }
std::int64_t Trainer::step() const noexcept { return state_->step; }
const PhaseTimes& Trainer::times() const noexcept { return state_->times; }

void Trainer::set_position(std::int64_t epoch, std::int64_t step) noexcept {
  state_->epoch = epoch;
  state_->step = step;
}

}  // namespace tessera::train
