// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/sequential.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::nn {

Layer& Sequential::add(std::string name, std::unique_ptr<Layer> layer) {
  if (!layers_.empty() && output_width() != layer->input_width()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} follows {}: {} features meet {}", layer->describe(),
                            layers_.back()->describe(), output_width(), layer->input_width()),
                "Sequential", "make the widths equal");
  }
  register_layer(std::move(name), *layer);
  layers_.push_back(std::move(layer));
  return *layers_.back();
}

step::Value Sequential::append_from(std::int64_t first, const StepInputs& in) {
  const int outer = in.program.first_graph();
  int graph = outer;
  step::Value x = in.sources;
  for (std::int64_t i = first; i < size(); ++i) {
    if (keeps_last_input_ && i + 1 == size()) in.program.keep(x);
    in.program.set_first_graph(graph);
    x = layer(i).append(StepInputs(in, x, layer(i)));
    graph += static_cast<int>(layer(i).num_graphs());
  }
  in.program.set_first_graph(outer);
  return x;
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

Residual::Residual(std::unique_ptr<Layer> inner, Placement placement)
    : Layer(placement), inner_(std::move(inner)) {
  if (inner_->input_width() != inner_->output_width()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a residual around {}: its input has {} features, its output {}",
                            inner_->describe(), inner_->input_width(), inner_->output_width()),
                "Residual", "make the widths equal");
  }
  register_layer("", *inner_);
}

step::Value Residual::build(const StepInputs& in) {
  const step::Value targets = in.targets();
  return step::add(in.program, inner_->append(StepInputs(in, in.sources, *inner_)), targets);
}

std::string Residual::describe() const { return "Residual(" + inner_->describe() + ")"; }

}  // namespace tessera::nn
