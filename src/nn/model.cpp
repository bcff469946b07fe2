// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/model.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "nn/build_stack.hpp"
#include "tessera/detail/ops/held_calls.hpp"

namespace tessera::nn {

Model::Model(const ModelConfig& config, std::int64_t features, std::int64_t outputs,
             std::uint64_t seed, Placement placement)
    : Layer(placement),
      config_(config),
      input_dropout_(config.input_dropout, placement),
      stack_(placement) {
  validate(config);
  if (features < 1 || outputs < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a model of {} features and {} outputs", features, outputs), "model",
                "use data with features and labels");
  }
  build_stack(config, features, outputs, stack_);
  register_layer("", stack_);
  assign_numbers(0);
  reset_parameters(seed);
  set_needs_input_gradient(false);
  if (!config.decay_first_layer_only) return;
  for (const auto& [path, parameter] : parameters()) parameter->decay = 0;
  for (const auto& [path, parameter] : stack_.layer(0).parameters()) parameter->decay = 1;
}

const Tensor& Model::forward(const Input& input, const Context& context) {
  if (input.cols() != input_width()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the data has {} features, the model was made for {}", input.cols(),
                            input_width()),
                "model", "use data of the same kind as the model was trained on");
  }
  input_ = input;
  ops::release_calls(context.workspace);
  return stack_.forward(input_dropout_.forward(input, number(), context), context);
}

Tensor* Model::backward(Tensor& grad_output, const Context& context) {
  Tensor* const grad = stack_.backward(grad_output, context);
  if (grad == nullptr) return nullptr;
  ops::release_calls(context.workspace);
  input_dropout_.backward(input_, *grad, number(), context);
  return grad;
}

const Tensor& Model::embeddings() const {
  if (stack_.size() < 2) {
    throw Error(ErrorCode::unsupported, "a model of one layer has no embeddings", describe(),
                "use a model with more layers");
  }
  return stack_.output(stack_.size() - 2);
}

std::string Model::describe() const { return stack_.describe(); }

void Model::set_needs_input_gradient(bool needs) {
  Layer::set_needs_input_gradient(needs);
  stack_.set_needs_input_gradient(needs);
}

}  // namespace tessera::nn
