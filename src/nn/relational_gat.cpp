// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/relational_gat.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/step/relation_nodes.hpp"

#include "nn/relational_options.hpp"

namespace tessera::nn {
namespace {

constexpr const char* layer_name = "relational GAT";

/// Of the graphs of `RelationSegments`, of `KindGraphs`, and then of `RelationSources`.
enum GraphOf : int {
  segment_edges,
  segment_relations,
  targets,
  kinds,
  kind_relations,
  source_vertices,
  source_relations,
  edges,
  segment_targets
};

const RelationalGatOptions& checked(const RelationalGatOptions& options) {
  checked_numbers(options.in, options.out, options.relations, layer_name);
  if (options.heads >= 1 && options.out % options.heads == 0) return options;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} features of {} heads", options.out, options.heads), layer_name,
              "give a width that is a multiple of the number of heads");
}

}  // namespace

RelationalGat::RelationalGat(const RelationalGatOptions& options, Placement placement)
    : Layer(placement),
      options_(checked(options)),
      source_("lin_src.weight", options.relations, options.in * options.out,
              Initial::glorot(options.in, options.out), placement),
      target_("lin_dst.weight", options.relations, options.in * options.out,
              Initial::glorot(options.in, options.out), placement),
      source_scores_("att_src", options.relations, options.out,
                     Initial::glorot(options.heads, options.out / options.heads), placement),
      target_scores_("att_dst", options.relations, options.out,
                     Initial::glorot(options.heads, options.out / options.heads), placement),
      bias_("bias", options.relations, options.out, {}, placement) {
  for (Parameter* parameter : {&source_, &target_, &source_scores_, &target_scores_}) {
    register_parameter(*parameter);
  }
  if (options.output.bias) register_parameter(bias_);
}

// A vertex has a row for each relation that it is a source of, and one for each segment that ends
// in it. Their scores are products with a block for each head.
step::Value RelationalGat::build(const StepInputs& in) {
  step::Program& program = in.program;
  const auto sum = [&](step::Value x, int graph) {
    return step::aggregate(program, x, {pattern, ops::Reduction::sum, graph});
  };
  const auto product = [&](step::Value x, Parameter& weights, int groups, std::int64_t blocks) {
    return step::grouped_linear(program, x, in.parameter(weights), {groups, blocks});
  };
  const step::Value sources =
      product(sum(in.sources, source_vertices), source_, source_relations, 1);
  const step::Value ends = product(sum(in.sources, segment_targets), target_, segment_relations, 1);
  step::Attention attention;
  attention.heads = options_.heads;
  attention.negative_slope = options_.negative_slope;
  attention.dropout = in.training ? options_.attention_dropout : 0;
  attention.number = in.number + 1;
  attention.graph = edges;
  const step::Value attended =
      step::attend(program, attention,
                   {product(ends, target_scores_, segment_relations, options_.heads),
                    product(sources, source_scores_, source_relations, options_.heads), sources});
  step::Value y = sum(attended, targets);
  if (options_.output.bias) {
    y = step::add(program, y, sum(sum(in.parameter(bias_), kind_relations), kinds));
  }
  return in.finish_without_bias(y, options_.output);
}

std::string RelationalGat::describe() const {
  return fmt::format("RelationalGAT({}, {}, {} relations, {} heads{})", options_.in, options_.out,
                     options_.relations, options_.heads, nn::describe(options_.output));
}

}  // namespace tessera::nn
