// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/gat.hpp"

#include <tuple>

#include "nn/describe_gat.hpp"
#include "nn/rectangular.hpp"

namespace tessera::nn {

Gat::Gat(const GatOptions& options, Placement placement)
    : PairLayer(placement),
      options_(options),
      att_source_("att_src", 1, options.attended_width(),
                  Initial::glorot(options.heads, options.out), placement),
      att_target_("att_dst", 1, options.attended_width(),
                  Initial::glorot(options.heads, options.out), placement),
      weight_(options.in_target == 0 ? "lin.weight" : "lin_src.weight", options.attended_width(),
              options.in, Initial::glorot(options.in, options.attended_width()), placement),
      end_(options, placement) {
  if (options.in_target != 0) {
    target_weight_.emplace("lin_dst.weight", options.attended_width(), options.in_target,
                           Initial::glorot(options.in_target, options.attended_width()), placement);
  }
  register_parameter(att_source_);
  register_parameter(att_target_);
  if (end_.epilogue.bias) register_parameter(*end_.epilogue.bias);
  register_parameter(weight_);
  if (target_weight_) register_parameter(*target_weight_);
  if (end_.residual) register_parameter(*end_.residual);
}

// Targets without features score 0.
step::Value Gat::build(const StepInputs& in) {
  step::Program& program = in.program;
  const std::int64_t heads = options_.heads;
  step::AttentionValues values;
  values.value = step::linear(program, in.sources, in.parameter(weight_));
  const step::Value of_source = in.parameter(att_source_), of_target = in.parameter(att_target_);
  const bool has_own = in.own_targets && *in.own_targets != in.sources;
  const bool is_shared = !has_own && !target_weight_;
  const step::Value shared = is_shared ? part_of_targets(in, values.value) : step::Value();
  if (shared == values.value) {
    std::tie(values.source, values.target) =
        step::head_dots(program, values.value, of_source, of_target, heads);
  } else {
    values.source = step::head_dot(program, values.value, of_source, heads);
    if (has_own && in.own_targets->absent()) {
      values.target = step::zeros(program, 0, heads);
    } else {
      Parameter& weight = target_weight_ ? *target_weight_ : weight_;
      const step::Value own = is_shared ? shared : product_of_targets(in, in.parameter(weight));
      values.target = step::head_dot(program, own, of_target, heads);
    }
  }
  return end_.build(in, ops::AttentionForm::gat, options_, values);
}

std::string Gat::describe() const { return describe_attention("GAT", options_); }

}  // namespace tessera::nn
