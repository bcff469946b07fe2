// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/layer.hpp"

#include <fmt/format.h>

#include <utility>

#include "nn/step_runner.hpp"
#include "tessera/core/error.hpp"
#include "tessera/detail/ops/plan_only.hpp"

namespace tessera::nn {
namespace {

/// Initial values are drawn from layer numbers far above those of dropout.
constexpr std::uint32_t first_initial_number = 0x40000000u;

/// A layer may draw for more than one purpose.
constexpr std::uint32_t numbers_per_layer = 4;

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() || name.empty() ? prefix + name : prefix + "." + name;
}

}  // namespace

std::string describe(const EpilogueOptions& options) {
  std::string text;
  if (options.activation != ops::Activation::none) {
    text += fmt::format(", {}", to_string(options.activation));
  }
  if (options.dropout > 0) text += fmt::format(", dropout {}", options.dropout);
  return text;
}

Epilogue::Epilogue(const EpilogueOptions& options, std::int64_t width, Placement placement,
                   Initial bias_initial, std::string bias_name)
    : options_(options) {
  if (options.bias) bias.emplace(std::move(bias_name), 1, width, bias_initial, placement);
}

StepInputs::StepInputs(const StepInputs& whole, step::Value x, const Layer& part)
    : StepInputs(whole.program, x, whole.context, whole.training, part.number()) {}

step::Value StepInputs::targets() const {
  if (own_targets) return *own_targets;
  if (context == nullptr) return sources;
  const Topology& graph = context->graph_number(program.absolute_graph(0));
  const bool is_square = graph.num_rows() == graph.num_cols();
  if (!found_targets_) {
    found_targets_ = is_square ? sources : step::first_rows(program, sources, 0);
  }
  return *found_targets_;
}

step::Value StepInputs::finish(step::Value x, Epilogue& epilogue) const {
  if (epilogue.bias) x = step::add_bias(program, x, parameter(*epilogue.bias));
  return finish_without_bias(x, epilogue.options());
}

step::Value StepInputs::finish_without_bias(step::Value x, const EpilogueOptions& options) const {
  x = step::activate(program, x, {options.activation, options.slope, options.alpha});
  return step::dropout(program, x, training ? options.dropout : 0, number);
}

Layer::Layer(Placement placement)
    : placement_(placement),
      runner_(std::make_unique<StepRunner>(
          *this, [this](const StepInputs& inputs) { return build(inputs); })) {}
Layer::~Layer() = default;

void Layer::require_graphs(const Context& context) const {
  const std::int64_t given = std::ssize(context.graphs);
  if (given != 0 && given != num_graphs()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} graphs for layers that take {}", given, num_graphs()), describe(),
                "give one for each layer that has neighbours, or one for all");
  }
}

const Tensor& Layer::forward(const Input& input, const Context& context) {
  require_graphs(context);
  return runner_->forward(input, input, false, context);
}

Tensor* Layer::backward(Tensor& grad_output, const Context& context) {
  return runner_->backward(grad_output, context);
}

void Layer::learn(const Input& input, const Context& context) {
  require_graphs(context);
  runner_->learn(input, context);
}

StepExplanation Layer::explain() const { return runner_->explain(); }

void Layer::leave_out_rewrites(std::vector<std::string> names) {
  step::require_rewrites(names);
  runner_->leave_out_rewrites(std::move(names));
}

void Layer::set_recompute(bool recompute) { runner_->set_recompute(recompute); }

void Layer::collect(const std::string& prefix, std::vector<NamedParameter>& parameters,
                    std::vector<NamedTensor>& buffers) {
  for (Parameter* parameter : parameters_) {
    parameters.push_back({joined(prefix, parameter->name), parameter});
  }
  for (const auto& [name, tensor] : buffers_) buffers.push_back({joined(prefix, name), tensor});
  for (const auto& [name, layer] : layers_) {
    layer->collect(joined(prefix, name), parameters, buffers);
  }
}

void Layer::collect(const std::string& prefix, std::vector<NamedRounder>& rounders) const {
  for (const auto& [name, rounder] : rounders_) {
    if (rounder->rounds()) rounders.push_back({joined(prefix, name), rounder});
  }
  for (const auto& [name, layer] : layers_) layer->collect(joined(prefix, name), rounders);
}

std::vector<NamedRounder> Layer::rounders() {
  std::vector<NamedRounder> rounders;
  collect("", rounders);
  return rounders;
}

std::vector<NamedParameter> Layer::parameters() {
  std::vector<NamedParameter> parameters;
  std::vector<NamedTensor> buffers;
  collect("", parameters, buffers);
  return parameters;
}

std::vector<NamedTensor> Layer::state() {
  std::vector<NamedParameter> parameters;
  std::vector<NamedTensor> buffers;
  collect("", parameters, buffers);
  std::vector<NamedTensor> state;
  for (const auto& [path, parameter] : parameters) state.push_back({path, &parameter->value});
  state.insert(state.end(), buffers.begin(), buffers.end());
  return state;
}

void Layer::round_parameters(Stream stream) {
  for (const auto& [path, parameter] : parameters()) parameter->round(stream);
}

std::int64_t Layer::num_parameters() {
  std::int64_t count = 0;
  for (const auto& [path, parameter] : parameters()) {
    if (parameter->trainable) count += parameter->value.size();
  }
  return count;
}

void Layer::reset_parameters(std::uint64_t seed) {
  std::uint32_t number = first_initial_number;
  for (const auto& [path, parameter] : parameters()) parameter->reset(Random(seed, number++));
}

void Layer::prepare(const Input& input, const Context& context) {
  const ops::PlanOnly scope;
  const Tensor& output = forward(input, context);
  if (!context.training) return;
  Tensor gradient(output.rows(), output.cols(), output.placement());
  backward(gradient, context);
}

void Layer::prepare_to_learn(const Input& input, const Context& context) {
  const ops::PlanOnly scope;
  learn(input, context);
}

const Tensor& PairLayer::forward(const Input& sources, const Input& targets,
                                 const Context& context) {
  return runner().forward(sources, targets, true, context);
}

Tensor* PairLayer::target_gradient() { return runner().target_gradient(); }

std::uint32_t Layer::assign_numbers(std::uint32_t first) {
  number_ = first;
  first += numbers_per_layer;
  for (const auto& [name, layer] : layers_) first = layer->assign_numbers(first);
  return first;
}

}  // namespace tessera::nn
