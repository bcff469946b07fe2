// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/optimiser.hpp"

#include "train/weight_average.hpp"

namespace tessera::train {
namespace {

bool needs_first(const ops::OptimiserOptions& options) {
  return options.kind != ops::OptimiserKind::sgd || options.momentum != 0;
}

bool needs_second(const ops::OptimiserOptions& options) {
  return options.kind != ops::OptimiserKind::sgd;
}

step::Tensor moment_of(const step::Tensor& value, bool needed) {
  if (!needed) return step::Tensor(value.placement());
  step::Tensor moment(value.rows(), value.cols(), value.placement());
  moment.fill(0, value.placement().stream);
  return moment;
}

}  // namespace

Optimiser::Optimiser(nn::Layer& layer, const ops::OptimiserOptions& options, const StepRules& rules)
    : options_(options),
      rules_(rules),
      place_(layer.placement().place()),
      clock_(1, place_),
      counter_(1, place_),
      factor_(rules.clip_gradients > 0 ? 1 : 0, place_) {
  fill_zero(counter_.data(), sizeof(std::uint32_t), place_.device, place_.stream);
  for (const auto& [path, parameter] : layer.parameters()) {
    if (!parameter->trainable) continue;
    parameter->has_optimiser = true;
    slots_.push_back({path, parameter, moment_of(parameter->value, needs_first(options)),
                      moment_of(parameter->value, needs_second(options))});
  }
  if (rules.average_weights > 0) {
    average_ = std::make_unique<WeightAverage>(layer, rules.average_weights);
  }
  set_clock();
}

Optimiser::~Optimiser() {
  for (const Slot& slot : slots_) slot.parameter->has_optimiser = false;
}

void Optimiser::set_clock() {
  copy_bytes(clock_.data(), &now_, sizeof(now_), place_.device, place_.stream);
}

void Optimiser::set_steps(std::int64_t steps) {
  now_.step = steps;
  set_clock();
}

void Optimiser::set_rate_factor(double factor) {
  if (factor == now_.rate_factor) return;
  now_.rate_factor = factor;
  set_clock();
}

void Optimiser::step(Stream stream, const ops::DenseWorkspace* workspace) {
  targets_.clear();
  for (Slot& slot : slots_) {
    step::Parameter& parameter = *slot.parameter;
    targets_.push_back({parameter.gradient, parameter.value, slot.first, slot.second,
                        parameter.decay, parameter.rounded(), parameter.turned_copy(),
                        parameter.gradient_is_turned()});
  }
  double* const factor = factor_.empty() ? nullptr : factor_.data();
  if (factor != nullptr) {
    ops::clip_gradients(rules_.clip_gradients, factor, targets_, place_.device, stream, workspace);
  }
  ops::step_and_advance(options_, clock_.data(), counter_.data(), targets_, place_.device, stream,
                        factor);
  if (average_) average_->add(clock_.data(), stream);
  ++now_.step;
}

/// Before the first step there are none.
void Optimiser::put_means_in(Stream stream) {
  if (average_ && now_.step > 0) average_->put_in(stream);
}

void Optimiser::take_means_out(Stream stream) {
  if (average_ && now_.step > 0) average_->take_out(stream);
}

std::vector<nn::NamedTensor> Optimiser::state() {
  std::vector<nn::NamedTensor> tensors;
  for (Slot& slot : slots_) {
    if (needs_first(options_)) tensors.push_back({"first." + slot.path, &slot.first});
    if (needs_second(options_)) tensors.push_back({"second." + slot.path, &slot.second});
  }
  if (average_) {
    for (const nn::NamedTensor& mean : average_->state()) tensors.push_back(mean);
  }
  return tensors;
}

}  // namespace tessera::train
