// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/sage.hpp"

#include <fmt/format.h>

#include "nn/rectangular.hpp"
#include "tessera/core/error.hpp"

namespace tessera::nn {
namespace {

constexpr SageAggregation all_aggregations[] = {SageAggregation::mean, SageAggregation::max,
                                                SageAggregation::gcn};

step::Aggregation aggregation_of(SageAggregation aggregation) {
  switch (aggregation) {
    case SageAggregation::max: return {pattern, ops::Reduction::max};
    case SageAggregation::gcn: return {pattern_with_self_loops, ops::Reduction::mean};
    default: return {pattern, ops::Reduction::mean};
  }
}

std::int64_t target_width(const SageOptions& options) {
  return options.in_target == 0 ? options.in : options.in_target;
}

}  // namespace

const char* to_string(SageAggregation aggregation) noexcept {
  switch (aggregation) {
    case SageAggregation::mean: return "mean";
    case SageAggregation::max: return "max";
    case SageAggregation::gcn: return "gcn";
  }
  return "unknown";
}

SageAggregation parse_sage_aggregation(const std::string& text) {
  for (const SageAggregation aggregation : all_aggregations) {
    if (text == to_string(aggregation)) return aggregation;
  }
  throw Error(ErrorCode::invalid_argument, "unknown aggregation '" + text + "'", "",
              "use mean, max or gcn");
}

Sage::Sage(const SageOptions& options, Placement placement)
    : PairLayer(placement),
      options_(options),
      weight_("lin_l.weight", options.out, options.in, Initial::linear(options.in), placement),
      epilogue_(options.output, options.out, placement, Initial::linear(options.in), "lin_l.bias") {
  register_parameter(weight_);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
  if (options.root_weight && options.aggregation != SageAggregation::gcn) {
    const std::int64_t width = target_width(options);
    root_.emplace("lin_r.weight", options.out, width, Initial::linear(width), placement);
    register_parameter(*root_);
  }
}

// The order of product and sum is a rewrite's choice; a maximum does not commute with the product.
step::Value Sage::build(const StepInputs& in) {
  step::Program& program = in.program;
  const bool has_own = in.own_targets && *in.own_targets != in.sources;
  if (options_.aggregation == SageAggregation::gcn && has_own) {
    throw Error(ErrorCode::unsupported, "the gcn aggregation has no bipartite form", "SAGE",
                "use mean or max");
  }
  const step::Aggregation aggregation = aggregation_of(options_.aggregation);
  const step::Value weight = in.parameter(weight_);
  step::Value y =
      options_.aggregation == SageAggregation::max
          ? step::linear(program, step::aggregate(program, in.sources, aggregation), weight)
          : step::aggregate(program, step::linear(program, in.sources, weight), aggregation);
  if (root_ && !(has_own && in.own_targets->absent())) {
    y = step::add(program, y, product_of_targets(in, in.parameter(*root_)));
  }
  if (!options_.normalise) return in.finish(y, epilogue_);
  if (epilogue_.bias) y = step::add_bias(program, y, in.parameter(*epilogue_.bias));
  return in.finish_without_bias(step::unit_rows(program, y), epilogue_.options());
}

std::string Sage::describe() const {
  return fmt::format("SAGE({}, {}, {}{}{})", options_.in, options_.out,
                     to_string(options_.aggregation), options_.normalise ? ", unit rows" : "",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
