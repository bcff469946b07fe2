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

nn::Tensor moment_of(const nn::Tensor& value, bool needed) {
  nn::Tensor moment(value.placement());
  if (!needed) return moment;
  moment.resize(value.rows(), value.cols());
  moment.fill(0);
  return moment;
}

}  // namespace

Optimiser::Optimiser(nn::Layer& layer, const ops::OptimiserOptions& options) : options_(options) {
  for (const auto& [path, parameter] : layer.parameters()) {
    if (!parameter->trainable) continue;
    slots_.push_back({path, parameter, moment_of(parameter->value, needs_first(options)),
                      moment_of(parameter->value, needs_second(options))});
  }
}

void Optimiser::step(double rate_factor, Stream stream) {
  ++steps_;
  ops::OptimiserOptions options = options_;
  options.learning_rate *= rate_factor;
  for (Slot& slot : slots_) {
    nn::Parameter& parameter = *slot.parameter;
    options.weight_decay = options_.weight_decay * parameter.decay;
    ops::optimiser_step(options, steps_, parameter.gradient, parameter.value,
                        needs_first(options) ? ops::Operand(slot.first) : ops::Operand(),
                        needs_second(options) ? ops::Operand(slot.second) : ops::Operand(),
                        parameter.value.device(), stream);
  }
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
