// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "nn/describe_gat.hpp"
#include "nn/rectangular.hpp"
#include "tessera/core/error.hpp"
#include "tessera/nn/gat.hpp"

namespace tessera::nn {

Gatv2::Side Gatv2::side(const char* name, std::int64_t width, Placement placement) const {
  const std::int64_t out = options_.attended_width();
  Side side{
      Parameter(fmt::format("{}.weight", name), out, width, Initial::glorot(width, out), placement),
      {}};
  if (options_.output.bias) {
    side.bias.emplace(fmt::format("{}.bias", name), 1, out, Initial::linear(width), placement);
  }
  return side;
}

void Gatv2::register_side(Side& side) {
  register_parameter(side.weight);
  if (side.bias) register_parameter(*side.bias);
}

Gatv2::Gatv2(const GatOptions& options, Placement placement)
    : PairLayer(placement),
      options_(options),
      att_("att", 1, options.attended_width(), Initial::glorot(options.heads, options.out),
           placement),
      source_(side("lin_l", options.in, placement)),
      end_(options, placement) {
  register_parameter(att_);
  if (end_.epilogue.bias) register_parameter(*end_.epilogue.bias);
  register_side(source_);
  if (!options.share_weights) {
    register_side(target_.emplace(side("lin_r", options.target_width(), placement)));
  }
  if (end_.residual) register_parameter(*end_.residual);
}

step::Value Gatv2::build(const StepInputs& in) {
  if (in.own_targets && in.own_targets->absent()) {
    throw Error(ErrorCode::invalid_argument, "the targets have no features", "GATv2",
                "give it features of both sides");
  }
  const auto with_bias = [&](step::Value y, Side& side) {
    return side.bias ? step::add_bias(in.program, y, in.parameter(*side.bias)) : y;
  };
  step::AttentionValues values;
  values.source = values.value =
      with_bias(step::linear(in.program, in.sources, in.parameter(source_.weight)), source_);
  const bool has_own = in.own_targets && *in.own_targets != in.sources;
  Side& side = target_ ? *target_ : source_;
  values.target = has_own || target_
                      ? with_bias(product_of_targets(in, in.parameter(side.weight)), side)
                      : part_of_targets(in, values.source);
  values.vector = in.parameter(att_);
  return end_.build(in, ops::AttentionForm::gatv2, options_, values);
}

std::string Gatv2::describe() const { return describe_attention("GATv2", options_); }

}  // namespace tessera::nn
