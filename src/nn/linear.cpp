// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/linear.hpp"

#include <fmt/format.h>

namespace tessera::nn {

Linear::Linear(const LinearOptions& options, Placement placement)
    : Layer(placement),
      weight_("weight", options.out, options.in, Initial::linear(options.in), placement),
      weight_rounder_(options.bits, placement),
      input_rounder_(options.bits, placement),
      epilogue_(options.output, options.out, placement, Initial::linear(options.in)) {
  register_parameter(weight_);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
  register_rounder("input", input_rounder_);
}

step::Value Linear::build(const StepInputs& in) {
  const bool is_sparse = in.program.info(in.sources).is_sparse;
  const step::Value x = is_sparse ? in.sources : in.round(in.sources, input_rounder_);
  const step::Value weight =
      in.round(in.parameter(weight_), weight_rounder_, {ops::RoundingRange::rows});
  return in.finish(step::linear(in.program, x, weight), epilogue_);
}

std::string Linear::describe() const {
  return fmt::format("Linear({}, {}{})", input_width(), output_width(),
                     nn::describe(epilogue_.options()));
}

}  // namespace tessera::nn
