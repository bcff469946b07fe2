// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/optimiser.hpp"

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

Optimiser::Optimiser(nn::Layer& layer, const ops::OptimiserOptions& options)
    : options_(options), place_(layer.placement().place()), clock_(1, place_), counter_(1, place_) {
  fill_zero(counter_.data(), sizeof(std::uint32_t), place_.device, place_.stream);
  for (const auto& [path, parameter] : layer.parameters()) {
    if (!parameter->trainable) continue;
    parameter->has_optimiser = true;
    slots_.push_back({path, parameter, moment_of(parameter->value, needs_first(options)),
                      moment_of(parameter->value, needs_second(options))});
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

void Optimiser::step(Stream stream) {
  targets_.clear();
  for (Slot& slot : slots_) {
    step::Parameter& parameter = *slot.parameter;
    targets_.push_back({parameter.gradient, parameter.value, slot.first, slot.second,
                        parameter.decay, parameter.rounded(), parameter.turned_copy(),
                        parameter.gradient_is_turned()});
  }
  ops::step_and_advance(options_, clock_.data(), counter_.data(), targets_, place_.device, stream);
  ++now_.step;
}

std::vector<nn::NamedTensor> Optimiser::state() {
  std::vector<nn::NamedTensor> tensors;
  for (Slot& slot : slots_) {
    if (needs_first(options_)) tensors.push_back({"first." + slot.path, &slot.first});
    if (needs_second(options_)) tensors.push_back({"second." + slot.path, &slot.second});
  }
  return tensors;
}

}  // namespace tessera::train
