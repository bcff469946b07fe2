// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/model.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "nn/bit_program.hpp"
#include "nn/build_stack.hpp"
#include "nn/step_runner.hpp"

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
  if (reads_edges(config) && config.edge_features < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} without features of edges", to_string(config.kind)), "model",
                "use data whose edges have features, or gin");
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

Model::~Model() = default;

void Model::require_edges(const Topology& graph) const {
  const Tensor* const edges = graph.edge_features();
  const std::int64_t width = edges == nullptr ? 0 : edges->cols();
  if (width == config_.edge_features) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("edges have {} features, the model was made for {}", width,
                          config_.edge_features),
              "model", "use data of the same kind as the model was trained on");
}

/// What the layers see of an input.
Input Model::taken(const Input& input, const Context& context) {
  if (input.cols() != input_width()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the data has {} features, the model was made for {}", input.cols(),
                            input_width()),
                "model", "use data of the same kind as the model was trained on");
  }
  if (reads_edges(config_) && context.graph != nullptr) require_edges(*context.graph);
  input_ = input;
  last_run_ = &runner();
  return input_dropout_.forward(input, number(), context);
}

const Tensor& Model::forward(const Input& input, const Context& context) {
  return Layer::forward(taken(input, context), context);
}

void Model::learn(const Input& input, const Context& context) {
  Layer::learn(taken(input, context), context);
}

Tensor* Model::backward(Tensor& grad_output, const Context& context) {
  Tensor* const grad = Layer::backward(grad_output, context);
  if (grad == nullptr) return nullptr;
  input_dropout_.backward(input_, *grad, number(), context);
  return grad;
}

const Tensor& Model::forward_from(std::int64_t first, const Input& input, const Context& context) {
  if (first != first_of_rest_) {
    rest_ = std::make_unique<StepRunner>(
        *this, [this, first](const StepInputs& in) { return stack_.append_from(first, in); });
    first_of_rest_ = first;
  }
  last_run_ = rest_.get();
  return rest_->forward(input, input, false, context);
}

void Model::require_layers() const {
  if (stack_.size() >= 2) return;
  throw Error(ErrorCode::unsupported, "a model of one layer has no embeddings", describe(),
              "use a model with more layers");
}

void Model::keep_embeddings(bool keeps) {
  if (keeps) require_layers();
  stack_.keep_last_input(keeps);
  runner().forget();
  rest_ = nullptr;
  first_of_rest_ = -1;
  last_run_ = nullptr;
}

const Tensor& Model::embeddings() {
  require_layers();
  const Tensor* const kept = last_run_ == nullptr ? nullptr : last_run_->kept();
  if (kept != nullptr) return *kept;
  throw Error(ErrorCode::invalid_argument, "the last pass kept no embeddings", describe(),
              "call keep_embeddings before it");
}

BitSteps Model::bit_steps() { return bit_steps_of(stack_, runner().last_sources().is_sparse()); }

}  // namespace tessera::nn
