// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/sequential.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/nn/bit_steps.hpp"
#include "tessera/ops/elementwise.hpp"

#include "tessera/detail/ops/held_calls.hpp"

namespace tessera::nn {

Layer& Sequential::add(std::string name, std::unique_ptr<Layer> layer) {
  if (!layers_.empty() && output_width() != layer->input_width()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} follows {}: {} features meet {}", layer->describe(),
                            layers_.back()->describe(), output_width(), layer->input_width()),
                "Sequential", "make the widths equal");
  }
  layer->let_leave_product(!layers_.empty() && layers_.back()->takes_product());
  if (!layers_.empty()) layer->follow(layers_.back()->last_epilogue());
  register_layer(std::move(name), *layer);
  layers_.push_back(std::move(layer));
  outputs_.push_back(nullptr);
  if (layers_.size() == 1) layers_.front()->set_needs_input_gradient(needs_input_gradient());
  return *layers_.back();
}

const Tensor& Sequential::forward(const Input& input, const Context& context) {
  const auto given = static_cast<std::int64_t>(context.graphs.size());
  if (given != 0 && given != num_graphs()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} graphs for layers that take {}", given, num_graphs()), describe(),
                "give one for each layer that has neighbours, or one for all");
  }
  return forward_from(0, input, context);
}

const Tensor& Sequential::forward_from(std::int64_t first, const Input& input,
                                       const Context& context) {
  Input next = input;
  std::int64_t first_graph = 0;
  ops::HoldCalls hold(context.workspace);
  for (auto i = static_cast<std::size_t>(first); i < layers_.size(); ++i) {
    const std::int64_t graphs = layers_[i]->num_graphs();
    hold.set(layers_[i]->lets_calls_wait());
    outputs_[i] = &layers_[i]->forward(next, context.with_graphs(first_graph, graphs));
    first_graph += graphs;
    next = *outputs_[i];
  }
  hold.end();
  return *outputs_.back();
}

bool Sequential::append_to(BitSteps& steps) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (i + 1 == layers_.size()) steps.begin_last_layer();
    if (!layers_[i]->append_to(steps)) {
      steps.end_before(static_cast<std::int64_t>(i));
      return false;
    }
  }
  return true;
}

Tensor* Sequential::backward(Tensor& grad_output, const Context& context) {
  Tensor* grad = &grad_output;
  const GradientProduct* product = nullptr;  // in place of it
  std::int64_t end_graph = num_graphs();
  ops::HoldCalls hold(context.workspace);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const std::int64_t graphs = layers_[i]->num_graphs();
    end_graph -= graphs;
    const Context own = context.with_graphs(end_graph, graphs);
    hold.set(layers_[i]->lets_calls_wait());
    grad = product == nullptr ? layers_[i]->backward(*grad, own)
                              : layers_[i]->backward_product(*product, own);
    product = layers_[i]->left_product();
  }
  hold.end();
  return grad;
}

std::int64_t Sequential::num_graphs() const {
  std::int64_t graphs = 0;
  for (const auto& layer : layers_) graphs += layer->num_graphs();
  return graphs;
}

std::int64_t Sequential::input_width() const { return layers_.front()->input_width(); }

std::int64_t Sequential::output_width() const { return layers_.back()->output_width(); }

std::string Sequential::describe() const {
  std::string text;
  for (const auto& layer : layers_) {
    text += text.empty() ? "" : " > ";
    text += layer->describe();
  }
  return text;
}

bool Sequential::accepts_sparse() const { return layers_.front()->accepts_sparse(); }

void Sequential::set_needs_input_gradient(bool needs) {
  Layer::set_needs_input_gradient(needs);
  if (!layers_.empty()) layers_.front()->set_needs_input_gradient(needs);
}

Residual::Residual(std::unique_ptr<Layer> inner, Placement placement)
    : Layer(placement), inner_(std::move(inner)), output_(placement), grad_(placement) {
  if (inner_->input_width() != inner_->output_width()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a residual around {}: its input has {} features, its output {}",
                            inner_->describe(), inner_->input_width(), inner_->output_width()),
                "Residual", "make the widths equal");
  }
  register_layer("", *inner_);
}

const Tensor& Residual::forward(const Input& input, const Context& context) {
  output_.copy_from(input.dense("Residual"), context.stream);
  ops::add_scaled(1, inner_->forward(input, context), 1, output_, device(), context.stream);
  return output_;
}

Tensor* Residual::backward(Tensor& grad_output, const Context& context) {
  grad_.copy_from(grad_output, context.stream);
  const Tensor* through = inner_->backward(grad_output, context);
  if (!needs_input_gradient()) return nullptr;
  ops::add_scaled(1, *through, 1, grad_, device(), context.stream);
  return &grad_;
}

std::string Residual::describe() const { return "Residual(" + inner_->describe() + ")"; }

}  // namespace tessera::nn
