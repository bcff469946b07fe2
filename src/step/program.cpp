// SPDX-License-Identifier: Apache-2.0
#include "tessera/step/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/step/op.hpp"

namespace tessera::step {

Value Program::add_value(std::string name) {
  values_.push_back({.name = std::move(name)});
  return {static_cast<std::int32_t>(values_.size()) - 1};
}

Value Program::input(std::string name, bool has_gradient) {
  const Value value = add_value(std::move(name));
  info(value).is_input = true;
  info(value).has_gradient = has_gradient;
  return value;
}

Value Program::sparse_input(std::string name) {
  const Value value = input(std::move(name));
  info(value).is_sparse = true;
  return value;
}

Value Program::scratch_input(std::string name, Value like) {
  const Value value = input(std::move(name));
  info(value).like = like;
  info(value).may_be_overwritten = true;
  return value;
}

Value Program::parameter(Parameter& parameter) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].parameter == &parameter) return {static_cast<std::int32_t>(i)};
  }
  const Value value = add_value(parameter.name);
  info(value).parameter = &parameter;
  return value;
}

Value Program::state(std::string name, Tensor& tensor) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].state == &tensor) return {static_cast<std::int32_t>(i)};
  }
  const Value value = add_value(std::move(name));
  info(value).state = &tensor;
  return value;
}

Value Program::edge_features(int graph) {
  const int number = absolute_graph(graph);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].edges_of == number) return {static_cast<std::int32_t>(i)};
  }
  const Value value = input("edges");
  info(value).edges_of = number;
  return value;
}

std::vector<Value> Program::append_all(std::shared_ptr<const Op> op, std::vector<Value> in) {
  Node node{std::move(op), std::move(in), {}};
  const std::string text = node.op->describe();
  const std::string name = text.substr(0, text.find(' '));
  for (std::size_t i = 0; i < node.op->num_outputs() + node.op->num_scratch(); ++i) {
    node.out.push_back(add_value(fmt::format("{}{}", name, values_.size())));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().out;
}

Value Program::append(std::shared_ptr<const Op> op, std::vector<Value> in) {
  return append_all(std::move(op), std::move(in)).front();
}

std::int64_t Program::num_readers(Value value) const {
  std::int64_t count = 0;
  for (const Node& node : nodes_) count += std::ranges::count(node.in, value);
  return count;
}

const Node* Program::producer(Value value) const {
  for (const Node& node : nodes_) {
    if (std::ranges::find(node.out, value) != node.out.end()) return &node;
  }
  return nullptr;
}

std::vector<bool> Program::wanted_values() const {
  std::vector<bool> wanted(values_.size());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Parameter* const parameter = values_[i].parameter;
    wanted[i] = values_[i].has_gradient || (parameter != nullptr && parameter->trainable);
  }
  for (const Node& node : nodes_) {
    const bool any = std::ranges::any_of(node.in, [&](Value value) {
      return !value.absent() && wanted[static_cast<std::size_t>(value.id)];
    });
    for (const Value value : node.out) wanted[static_cast<std::size_t>(value.id)] = any;
  }
  return wanted;
}

void Program::remove_unused(std::span<const Value> wanted) {
  std::vector<bool> is_needed(values_.size());
  for (const Value value : wanted) {
    if (!value.absent()) is_needed[static_cast<std::size_t>(value.id)] = true;
  }
  const auto contributes = [&](const Node& node) {
    return std::ranges::any_of(node.out, [&](Value value) {
      return is_needed[static_cast<std::size_t>(value.id)] || info(value).gradient_of != nullptr;
    });
  };
  std::vector<Node> needed;
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (!contributes(*node)) continue;
    for (const Value value : node->in) {
      if (!value.absent()) is_needed[static_cast<std::size_t>(value.id)] = true;
    }
    needed.push_back(std::move(*node));
  }
  std::ranges::reverse(needed);
  nodes_ = std::move(needed);
}

std::string Program::describe() const {
  std::string text;
  const auto names = [&](const std::vector<Value>& values) {
    std::vector<std::string> found;
    for (const Value value : values) {
      if (!value.absent()) found.push_back(info(value).name);
    }
    return fmt::format("{}", fmt::join(found, ", "));
  };
  for (const Node& node : nodes_) {
    const Shape& shape = info(node.out.front()).shape;
    const std::string size = shape.rows == 0 ? ""
                                             : fmt::format(" {} x {} {}", shape.rows, shape.cols,
                                                           to_string(shape.precision));
    text += fmt::format("{}{}: {} ({})\n", info(node.out.front()).name, size, node.op->describe(),
                        names(node.in));
  }
  return text;
}

}  // namespace tessera::step
