// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/layer.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/detail/ops/held_calls.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/nn/rounder.hpp"
#include "tessera/ops/elementwise.hpp"

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

Tensor* Layer::backward_product(const GradientProduct&, const Context&) {
  throw Error(ErrorCode::internal, "a layer that takes no product was given one", describe());
}

bool Layer::append_to(BitSteps&) const {
  throw Error(ErrorCode::unsupported, "a layer that has no form in integers", describe(),
              "predict with rounded numbers (--rounded)");
}

const Tensor& PairLayer::forward(const Input& input, const Context& context) {
  // Only who misses a graph needs a name.
  const bool has_graph = context.graph != nullptr || !context.graphs.empty();
  const Graph& graph = context.required_graph(has_graph ? "" : describe().c_str()).graph();
  if (graph.is_square()) return forward(input, input, context);
  ops::ConstOperand first = input.dense("a layer on a graph that is not square");
  if (graph.num_rows() > first.rows) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} targets among {} sources", graph.num_rows(), first.rows),
                describe(), "give the targets' features, too: forward(sources, targets, context)");
  }
  first.rows = graph.num_rows();
  if (!first_sources_) first_sources_.emplace(placement());
  ops::release_calls(context.workspace);
  first_sources_->copy_from(first, context.stream);
  takes_first_sources_ = true;
  return forward_pair(input, *first_sources_, context);
}

const Tensor& PairLayer::forward(const Input& sources, const Input& targets,
                                 const Context& context) {
  takes_first_sources_ = false;
  return forward_pair(sources, targets, context);
}

Tensor* PairLayer::backward(Tensor& grad_output, const Context& context) {
  Tensor* const gradient = backward_pair(grad_output, context);
  const Tensor* const of_targets = takes_first_sources_ ? target_gradient() : nullptr;
  if (gradient == nullptr || of_targets == nullptr) return gradient;
  ops::release_calls(context.workspace);
  ops::Operand first = *gradient;
  first.rows = of_targets->rows();
  ops::add_scaled(1, *of_targets, 1, first, device(), context.stream);
  return gradient;
}

std::uint32_t Layer::assign_numbers(std::uint32_t first) {
  number_ = first;
  first += numbers_per_layer;
  for (const auto& [name, layer] : layers_) first = layer->assign_numbers(first);
  return first;
}

}  // namespace tessera::nn
