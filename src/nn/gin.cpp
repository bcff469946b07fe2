// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/gin.hpp"

#include <fmt/format.h>

#include "nn/rectangular.hpp"

namespace tessera::nn {
namespace {

std::int64_t hidden_width(const GinOptions& options) {
  return options.hidden == 0 ? options.out : options.hidden;
}

EpilogueOptions first_epilogue(const GinOptions& options) {
  EpilogueOptions first;
  if (!options.batch_norm) first.activation = ops::Activation::relu;
  return first;
}

BatchNormLayerOptions norm_options(const GinOptions& options) {
  BatchNormLayerOptions norm;
  norm.width = hidden_width(options);
  norm.output.activation = ops::Activation::relu;
  return norm;
}

}  // namespace

Gin::Gin(const GinOptions& options, Placement placement)
    : PairLayer(placement),
      options_(options),
      eps_("eps", 1, 1, Initial::constant(options.eps), placement),
      weight_("nn.0.weight", hidden_width(options), options.in, Initial::linear(options.in),
              placement),
      weight_rounder_(options.bits, placement),
      source_rounder_(options.bits, placement),
      target_rounder_(options.bits, placement),
      inner_rounder_(options.bits, placement),
      first_epilogue_(first_epilogue(options), hidden_width(options), placement,
                      Initial::linear(options.in), "nn.0.bias"),
      second_({hidden_width(options), options.out, options.output, options.bits}, placement) {
  eps_.trainable = options.train_eps;
  register_parameter(eps_);
  register_parameter(weight_);
  register_parameter(*first_epilogue_.bias);
  if (options.batch_norm) register_layer("nn.1", norm_.emplace(norm_options(options), placement));
  register_layer(options.batch_norm ? "nn.3" : "nn.2", second_);
  if (options.edge_features > 0) {  // behind the others, as PyG's GINEConv has it
    register_layer("lin",
                   edges_.emplace(LinearOptions{options.edge_features, options.in}, placement));
  }
  register_rounder("source", source_rounder_);
  register_rounder("target", target_rounder_);
  register_rounder("inner", inner_rounder_);
}

step::Value Gin::sum(const StepInputs& in, step::Value sources, step::Value targets) {
  const step::Aggregation aggregation{unless_scaled(in, pattern)};
  if (targets.absent()) return step::aggregate(in.program, sources, aggregation);
  return step::aggregate_with_own(in.program, sources, targets, in.parameter(eps_), aggregation);
}

step::Value Gin::sum_of_messages(const StepInputs& in) {
  const step::Value edges = edges_->append(StepInputs(in, in.program.edge_features(), *edges_));
  const step::Value targets = in.targets();
  if (targets.absent()) return step::messages(in.program, in.sources, edges, {});
  return step::messages_with_own(in.program, in.sources, edges, targets, in.parameter(eps_), {});
}

// The order of product and sum is a rewrite's choice, but for few bits: these are rounded in
// between.
step::Value Gin::transformed(const StepInputs& in) {
  if (edges_) return step::linear(in.program, sum_of_messages(in), in.parameter(weight_));
  const step::Rounding by_columns{ops::RoundingRange::columns};
  const auto is_sparse = [&](step::Value x) { return !x.absent() && in.program.info(x).is_sparse; };
  const bool is_product_shared = is_sparse(in.sources) && !in.own_targets;
  const step::Value targets = is_product_shared ? in.sources : in.targets();
  const bool sums_first = options_.bits > 0 && !is_sparse(in.sources) && !is_sparse(targets) &&
                          hidden_width(options_) >= options_.in;
  const step::Value weight =
      in.round(in.parameter(weight_), weight_rounder_, {ops::RoundingRange::rows});
  const auto before_sum = [&](step::Value x, Rounder& rounder) {
    if (x.absent()) return x;
    if (!is_sparse(x) && (sums_first || options_.rounds_input)) x = in.round(x, rounder);
    if (sums_first) return x;
    return in.round(step::linear(in.program, x, weight), inner_rounder_, by_columns);
  };
  const step::Value of_sources = before_sum(in.sources, source_rounder_);
  const step::Value of_targets = targets == in.sources ? part_of_targets(in, of_sources)
                                                       : before_sum(targets, target_rounder_);
  const step::Value y = sum(in, of_sources, of_targets);
  return sums_first ? step::linear(in.program, in.round(y, inner_rounder_), weight) : y;
}

step::Value Gin::build(const StepInputs& in) {
  step::Value y = in.finish(transformed(in), first_epilogue_);
  if (norm_) y = norm_->append(StepInputs(in, y, *norm_));
  return second_.append(StepInputs(in, y, second_));
}

std::string Gin::describe() const {
  return fmt::format("{}({}, {}, {}{}{}{}{})", edges_ ? "GINE" : "GIN", options_.in,
                     hidden_width(options_), options_.out,
                     edges_ ? fmt::format(", {} of edges", options_.edge_features) : "",
                     options_.batch_norm ? ", batch norm" : "",
                     options_.bits > 0 ? fmt::format(", {} bits", options_.bits) : "",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
