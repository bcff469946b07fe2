// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/gradient_check.hpp"
#include "tessera/step/execution.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"
#include "tessera/step/recompute.hpp"
#include "tessera/step/rewrites.hpp"

/// Small programs in double precision on a directed graph with weights and empty rows.
namespace tessera::test {

inline std::vector<double> elements_of(const step::Tensor& tensor) {
  const MatrixView<const double> view = tensor.as<double>();
  return {view.data, view.data + tensor.size()};
}

class StepScene {
 public:
  using Build = std::function<step::Value(StepScene& scene, step::Program& program, step::Value x)>;
  struct Options {
    bool rewrites = true;
    bool shares_memory = true;          ///< otherwise every value is kept in a tensor of its own
    std::vector<std::string> off = {};  ///< rewrites that are left out
    bool recomputes = false;
  };
  struct Result {
    std::vector<double> output, grad_x;
    std::map<std::string, std::vector<double>> gradients;  ///< of parameters
    std::vector<step::Fired> fired;
    step::Recomputed recomputed;
    std::int64_t arena_bytes = 0, unshared_bytes = 0;
    std::string program;
  };

  StepScene(std::int64_t rows, std::int64_t cols, Build build)
      : x(normal_tensor(rows, cols, 3)),
        topology_(weighted_graph(static_cast<VertexId>(rows), static_cast<VertexId>(rows),
                                 static_cast<int>(4 * rows), 1)),
        pairs_(2, 3 * rows),
        ends_(rows, pairs_.cols()),
        build_(std::move(build)) {
    const Random random(5);
    for (std::int64_t k = 0; k < pairs_.size(); ++k) {
      pairs_.data()[k] = static_cast<VertexId>(
          random.below(static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(rows)));
    }
    ends_.list(pairs_);
    topology_.set_edge_features(
        std::make_shared<const step::Tensor>(normal_tensor(num_edges(), 3, 8)));
    context_.graph = &topology_;
    context_.pairs = pairs_;
    context_.pair_ends = &ends_;
    context_.training = true;
    context_.seed = 11;
    context_.step = 5;
  }

  step::Tensor x;

  std::int64_t num_edges() const { return topology_.graph().num_edges(); }

  /// What a node updates, which begins as so many equal numbers.
  step::Tensor& state(const std::string& name, std::int64_t cols, double value) {
    std::unique_ptr<step::Tensor>& made = states_[name];
    if (!made) {
      made = std::make_unique<step::Tensor>(1, cols, double_placement());
      made->fill(value);
    }
    return *made;
  }

  /// A parameter of this name, made and drawn when it is first asked for.
  step::Parameter& parameter(const std::string& name, std::int64_t rows, std::int64_t cols) {
    std::unique_ptr<step::Parameter>& made = parameters_[name];
    if (!made) {
      made = std::make_unique<step::Parameter>(name, rows, cols, step::Initial::uniform(1),
                                               double_placement());
      made->reset(Random(7 + parameters_.size()));
    }
    return *made;
  }

  Result run(Options options) {
    step::Program program;
    const step::Value input = program.input("x", true);
    const step::Value output = build_(*this, program, input);
    const step::Value results[] = {output};
    const step::Placement placement = double_placement();
    const step::Bound bound[] = {{input, step::Input(x)}};
    step::note_shapes(program, placement, bound, context_);
    Result result;
    if (options.rewrites) {
      result.fired =
          step::rewrite(program, {results, placement, context_}, step::Side::before, options.off);
    }
    const step::Value grad_output = program.scratch_input("dy", output);
    const step::Value inputs[] = {input};
    const std::size_t num_forward = program.nodes().size();
    const step::Value grad_x = step::differentiate(program, output, grad_output, inputs)[0];
    const step::Value kept[] = {output, grad_x};
    program.remove_unused(kept);
    if (options.rewrites) {
      for (step::Fired& one :
           step::rewrite(program, {kept, placement, context_}, step::Side::after, options.off)) {
        result.fired.push_back(one);
      }
    }
    if (options.recomputes) {
      step::note_shapes(program, placement, bound, context_);
      result.recomputed = step::recompute(program, num_forward, placement, bound, context_, kept);
    }
    result.program = program.describe();
    step::Execution execution(program, placement);
    std::vector<std::unique_ptr<step::Tensor>> outside;
    const auto keep = [&](step::Value value) -> step::Tensor& {
      outside.push_back(std::make_unique<step::Tensor>(double_placement()));
      execution.keep(value, *outside.back());
      return *outside.back();
    };
    if (!options.shares_memory) {
      for (const step::Node& node : program.nodes()) {
        const bool has_scratch = node.op->num_scratch() > 0;
        for (const step::Value value : node.out) {
          const bool is_result = value == output || value == grad_x;
          if (!is_result && !has_scratch && program.info(value).gradient_of == nullptr &&
              is_read(program, value)) {
            keep(value);
          }
        }
      }
    }
    step::Tensor& y = keep(output);
    step::Tensor& dx = keep(grad_x);
    execution.bind(input, step::Input(x));
    execution.prepare(context_);
    execution.run(0, num_forward, context_);
    result.output = elements_of(y);
    step::Tensor gradient = normal_tensor(y.rows(), y.cols(), 99);
    execution.bind_scratch(grad_output, gradient);
    execution.run(num_forward, program.nodes().size(), context_);
    result.grad_x = elements_of(dx);
    for (const auto& [name, parameter] : parameters_) {
      result.gradients[name] = elements_of(parameter->gradient);
    }
    result.arena_bytes = execution.arena_bytes();
    result.unshared_bytes = execution.unshared_bytes();
    return result;
  }
  Result run() { return run({}); }

  /// Compares gradients with central differences of sum(weights * output).
  void expect_gradients() {
    const Result found = run();
    const step::Tensor weights = weights_for(found.output.size());
    expect_gradient("x", x, found.grad_x, weights);
    for (const auto& [name, gradient] : found.gradients) {
      expect_gradient(name, parameters_[name]->value, gradient, weights);
    }
  }

 private:
  static bool is_read(const step::Program& program, step::Value value) {
    for (const step::Node& node : program.nodes()) {
      for (std::size_t i = 0; i < node.in.size(); ++i) {
        if (node.in[i] == value && node.op->reads(i)) return true;
      }
    }
    return false;
  }

  step::Tensor weights_for(std::size_t size) const {
    return normal_tensor(1, static_cast<std::int64_t>(size), 99);
  }

  double loss(const step::Tensor& weights) {
    const std::vector<double> output = run().output;
    double sum = 0;
    for (std::size_t i = 0; i < output.size(); ++i) sum += output[i] * weights.as<double>().data[i];
    return sum;
  }

  void expect_gradient(const std::string& what, step::Tensor& value,
                       const std::vector<double>& gradient, const step::Tensor& weights) {
    ASSERT_EQ(static_cast<std::size_t>(value.size()), gradient.size()) << what;
    constexpr double move = 1e-6;
    for (std::int64_t i = 0; i < value.size(); ++i) {
      double& element = value.as<double>().data[i];
      const double before = element;
      element = before + move;
      const double above = loss(weights);
      element = before - move;
      const double below = loss(weights);
      element = before;
      const double expected = (above - below) / (2 * move);
      ASSERT_NEAR(gradient[static_cast<std::size_t>(i)], expected, 2e-6 * (1 + std::abs(expected)))
          << what << ", element " << i;
    }
  }

  step::Topology topology_;
  Matrix<VertexId> pairs_;
  ops::PairEnds ends_;
  Build build_;
  step::Context context_;
  std::map<std::string, std::unique_ptr<step::Parameter>> parameters_;
  std::map<std::string, std::unique_ptr<step::Tensor>> states_;
};

}  // namespace tessera::test
