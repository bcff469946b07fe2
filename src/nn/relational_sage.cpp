// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/relational_sage.hpp"

#include <fmt/format.h>

#include "tessera/step/relation_nodes.hpp"

#include "nn/relational_options.hpp"

namespace tessera::nn {
namespace {

/// Of the graphs of `RelationSegments`, and then of `KindGraphs`.
enum GraphOf : int { edges, relations, targets, kinds, kind_relations };

}  // namespace

RelationalSage::RelationalSage(const RelationalSageOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      neighbours_("lin_l.weight", options.relations,
                  checked_numbers(options.in, options.out, options.relations, "relational SAGE"),
                  Initial::linear(options.in), placement),
      own_("lin_r.weight", options.relations, options.in * options.out, Initial::linear(options.in),
           placement),
      bias_("bias", options.relations, options.out, Initial::linear(options.in), placement) {
  register_parameter(neighbours_);
  register_parameter(own_);
  if (options.output.bias) register_parameter(bias_);
}

// What a vertex adds of itself is one product with the sum of its kind's relations.
step::Value RelationalSage::build(const StepInputs& in) {
  step::Program& program = in.program;
  const auto sum = [&](step::Value x, int graph) {
    return step::aggregate(program, x, {pattern, ops::Reduction::sum, graph});
  };
  const step::Value means =
      step::aggregate(program, in.sources, {pattern, ops::Reduction::mean, edges});
  const step::Value messages =
      step::grouped_linear(program, means, in.parameter(neighbours_), {relations});
  const step::Value own_of_kinds = sum(in.parameter(own_), kind_relations);
  const step::Value own = step::grouped_linear(program, in.sources, own_of_kinds, {kinds});
  step::Value y = step::add(program, sum(messages, targets), own);
  if (options_.output.bias) {
    y = step::add(program, y, sum(sum(in.parameter(bias_), kind_relations), kinds));
  }
  return in.finish_without_bias(y, options_.output);
}

std::string RelationalSage::describe() const {
  return fmt::format("RelationalSAGE({}, {}, {} relations{})", options_.in, options_.out,
                     options_.relations, nn::describe(options_.output));
}

}  // namespace tessera::nn
