// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "nn/describe_gat.hpp"
#include "nn/rectangular.hpp"
#include "tessera/nn/gat.hpp"

namespace tessera::nn {

AttentionEnd::AttentionEnd(const GatOptions& options, Placement placement)
    : epilogue(options.output, options.output_width(), placement) {
  if (!options.residual) return;
  residual.emplace("res.weight", options.output_width(), options.target_width(),
                   Initial::glorot(options.target_width(), options.output_width()), placement);
}

// The layer's own number belongs to the epilogue's dropout.
step::Value AttentionEnd::build(const StepInputs& in, ops::AttentionForm form,
                                const GatOptions& options, const step::AttentionValues& values) {
  step::Attention attention;
  attention.form = form;
  attention.heads = options.heads;
  attention.negative_slope = options.negative_slope;
  attention.dropout = in.training ? options.dropout : 0;
  attention.number = in.number + 1;
  attention.derivation = options.add_self_loops ? pattern_with_self_loops : pattern;
  step::Value y = step::attend(in.program, attention, values);
  if (!options.concat) y = step::head_mean(in.program, y, options.heads);
  if (residual && !(in.own_targets && in.own_targets->absent())) {
    y = step::add(in.program, y, product_of_targets(in, in.parameter(*residual)));
  }
  return in.finish(y, epilogue);
}

std::string describe_attention(const char* name, const GatOptions& options) {
  std::string text = fmt::format("{}({}, {} {} x {}", name, options.in, options.heads,
                                 options.heads == 1 ? "head" : "heads", options.out);
  if (!options.concat && options.heads > 1) text += " averaged";
  if (options.dropout > 0) text += fmt::format(", attention dropout {}", options.dropout);
  if (options.residual) text += ", residual";
  return text + describe(options.output) + ")";
}

}  // namespace tessera::nn
