// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/dense.hpp"

#include <fmt/format.h>

namespace tessera::nn {

Linear::Linear(const LinearOptions& options, Placement placement)
    : Layer(placement),
      weight_("weight", options.out, options.in, Initial::linear(options.in), placement),
      weight_rounder_(options.bits, placement),
      input_rounder_(options.bits, placement),
      epilogue_(options.output, options.out, placement, Initial::linear(options.in)) {
  register_parameter(weight_);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
  register_rounder("input", input_rounder_);
}

step::Value Linear::build(const StepInputs& in) {
  const bool is_sparse = in.program.info(in.sources).is_sparse;
  const step::Value x = is_sparse ? in.sources : in.round(in.sources, input_rounder_);
  const step::Value weight =
      in.round(in.parameter(weight_), weight_rounder_, {ops::RoundingRange::rows});
  return in.finish(step::linear(in.program, x, weight), epilogue_);
}

std::string Linear::describe() const {
  return fmt::format("Linear({}, {}{})", input_width(), output_width(),
                     nn::describe(epilogue_.options()));
}

BatchNorm::BatchNorm(const BatchNormLayerOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      weight_("weight", 1, options.width, Initial::constant(1), placement.wide()),
      bias_("bias", 1, options.width, Initial::constant(0), placement.wide()),
      running_mean_(1, options.width, placement.wide()),
      running_variance_(1, options.width, placement.wide()) {
  running_mean_.fill(0);
  running_variance_.fill(1);
  register_parameter(weight_);
  register_parameter(bias_);
  register_buffer("running_mean", running_mean_);
  register_buffer("running_var", running_variance_);
}

step::Value BatchNorm::build(const StepInputs& in) {
  const step::BatchNormValues values{in.parameter(weight_), in.parameter(bias_),
                                     in.program.state("running_mean", running_mean_),
                                     in.program.state("running_var", running_variance_)};
  const step::Value y = step::batch_norm(in.program, in.sources, values,
                                         {options_.epsilon, options_.momentum, in.training});
  return in.finish_without_bias(y, options_.output);
}

std::string BatchNorm::describe() const {
  return fmt::format("BatchNorm({}{})", options_.width, nn::describe(options_.output));
}

ActivationLayer::ActivationLayer(const ActivationLayerOptions& options, Placement placement)
    : Layer(placement), options_(options), epilogue_(options.output, options.width, placement) {
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
}

std::string ActivationLayer::describe() const {
  return fmt::format("Activation({}{})", options_.width, nn::describe(options_.output));
}

}  // namespace tessera::nn
