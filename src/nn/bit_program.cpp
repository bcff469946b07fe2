// SPDX-License-Identifier: Apache-2.0
#include "nn/bit_program.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "step/ops/aggregate.hpp"
#include "step/ops/batch_norm.hpp"
#include "step/ops/finish.hpp"
#include "step/ops/linear.hpp"
#include "step/ops/round.hpp"
#include "tessera/core/error.hpp"

namespace tessera::nn {
namespace {

using step::Node;
using step::Value;

/// Turns the nodes of one layer after the other into steps.
class Translation {
 public:
  Translation(const step::Program& program, BitSteps& steps, std::int64_t features)
      : program_(program), steps_(steps), width_(features) {}

  /// False where the node is computed in floating point, and so is all that follows.
  bool append(const Node& node, const std::string& layer) {
    if (node.as<step::Round>() != nullptr) return true;
    if (node.as<step::Linear>() != nullptr || node.as<step::SparseLinear>() != nullptr) {
      return multiply(node, layer);
    }
    if (const auto* sums = node.as<step::Aggregate>()) return aggregate(node, *sums, layer);
    if (const auto* finish = node.as<step::Finish>()) {
      const Value bias = node.in[1];
      if (!bias.absent()) steps_.add(program_.info(bias).parameter->value);
      steps_.activate(finish->finishing().kind.activation);
      return true;
    }
    if (const auto* norm = node.as<step::BatchNorm>()) {
      normalise(node, norm->kind().epsilon);
      return true;
    }
    throw Error(ErrorCode::unsupported, "a layer that has no form in integers", layer,
                "predict with rounded numbers (--rounded)");
  }

 private:
  /// What rounded a value; null: nothing.
  const Rounder* rounder_of(Value value) const {
    const Node* const producer = program_.producer(value);
    const auto* round = producer == nullptr ? nullptr : producer->as<step::Round>();
    return round == nullptr ? nullptr : &round->rounder();
  }

  bool multiply(const Node& node, const std::string& layer) {
    const Value weight = node.in[step::Linear::weight];
    const Rounder* const rounder = rounder_of(weight);
    if (rounder == nullptr) return false;
    const Parameter& parameter = *program_.info(program_.producer(weight)->in[0]).parameter;
    width_ = parameter.value.rows();
    steps_.multiply(layer, parameter, *rounder, rounder_of(node.in[step::Linear::x]));
    return true;
  }

  bool aggregate(const Node& node, const step::Aggregate& sums, const std::string& layer) {
    const Rounder* const rounder = rounder_of(node.in[step::Aggregate::x]);
    const bool is_pooled = sums.aggregation().graph == step::pooled;
    if (is_pooled || rounder == nullptr) return false;
    const Value scale = node.in[step::Aggregate::scale];
    const double own = scale.absent() ? 0 : 1 + program_.info(scale).parameter->value.item();
    steps_.aggregate(layer, width_, sums.aggregation().derivation, static_cast<float>(own),
                     *rounder);
    return true;
  }

  void normalise(const Node& node, double epsilon) {
    using Norm = step::BatchNorm;
    const auto number = [&](const Tensor& row, std::int64_t j) {
      return static_cast<double>(row.as<float>()(0, j));
    };
    const Tensor& gamma = program_.info(node.in[Norm::gamma]).parameter->value;
    const Tensor& beta = program_.info(node.in[Norm::beta]).parameter->value;
    const Tensor& mean = *program_.info(node.in[Norm::running_mean]).state;
    const Tensor& variance = *program_.info(node.in[Norm::running_variance]).state;
    std::vector<float> scale, shift;
    for (std::int64_t j = 0; j < gamma.cols(); ++j) {
      const double factor = number(gamma, j) / std::sqrt(number(variance, j) + epsilon);
      scale.push_back(static_cast<float>(factor));
      shift.push_back(static_cast<float>(number(beta, j) - number(mean, j) * factor));
    }
    steps_.normalise(std::move(scale), std::move(shift));
  }

  const step::Program& program_;
  BitSteps& steps_;
  std::int64_t width_;  ///< of what the last node computed
};

}  // namespace

BitSteps bit_steps_of(Sequential& stack, bool is_sparse) {
  step::Program program;
  BitSteps steps;
  Translation translation(program, steps, stack.input_width());
  Value x = is_sparse ? program.sparse_input("x") : program.input("x");
  const StepInputs whole(program, x, nullptr, false, 0);
  for (std::int64_t i = 0; i < stack.size(); ++i) {
    Layer& layer = stack.layer(i);
    if (i + 1 == stack.size()) steps.begin_last_layer();
    const std::size_t first = program.nodes().size();
    x = layer.append(StepInputs(whole, x, layer));
    for (std::size_t k = first; k < program.nodes().size(); ++k) {
      const Node node = program.nodes()[k];
      if (translation.append(node, layer.describe())) continue;
      steps.end_before(i);
      return steps;
    }
  }
  return steps;
}

}  // namespace tessera::nn
