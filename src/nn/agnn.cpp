// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/agnn.hpp"

#include <fmt/format.h>

namespace tessera::nn {

Agnn::Agnn(const AgnnOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      beta_("beta", 1, 1, Initial::constant(1), placement),
      epilogue_(options.output, options.width, placement) {
  beta_.trainable = options.requires_grad;
  register_parameter(beta_);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
}

step::Value Agnn::build(const StepInputs& in) {
  step::Attention attention;
  attention.form = ops::AttentionForm::cosine;
  attention.derivation = options_.add_self_loops ? pattern_with_self_loops : pattern;
  const step::AttentionValues values{{}, {}, in.sources, in.parameter(beta_)};
  return in.finish(step::attend(in.program, attention, values), epilogue_);
}

std::string Agnn::describe() const {
  return fmt::format("AGNN({}{}{})", options_.width, options_.requires_grad ? "" : ", fixed beta",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
