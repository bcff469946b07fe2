// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/gcn.hpp"

#include <fmt/format.h>

#include "nn/rectangular.hpp"

namespace tessera::nn {

Gcn::Gcn(const GcnOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      weight_("lin.weight", options.out, options.in, Initial::glorot(options.in, options.out),
              placement),
      weight_rounder_(options.bits, placement),
      input_rounder_(options.bits, placement),
      inner_rounder_(options.bits, placement),
      epilogue_(options.output, options.out, placement) {
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
  register_parameter(weight_);
  register_rounder("input", input_rounder_);
  register_rounder("inner", inner_rounder_);
}

Derivation Gcn::adjacency(const StepInputs& in) const {
  if (!options_.normalise || options_.precomputed) return as_given;
  return unless_scaled(in, options_.add_self_loops ? gcn_adjacency : gcn_adjacency_without_loops);
}

// The order of product and sum is a rewrite's choice, but for few bits: these are rounded in
// between.
step::Value Gcn::build(const StepInputs& in) {
  const Derivation product = adjacency(in);
  const step::Rounding summed{ops::RoundingRange::columns, product};
  const bool is_sparse = in.program.info(in.sources).is_sparse;
  const bool sums_first = options_.bits > 0 && !is_sparse && options_.out >= options_.in;
  const bool rounds_input =
      !is_sparse && (options_.rounds_input || options_.precomputed || sums_first);
  const step::Value weight =
      in.round(in.parameter(weight_), weight_rounder_, {ops::RoundingRange::rows});
  step::Value y = in.sources;
  if (options_.precomputed) {
    y = step::linear(in.program, rounds_input ? in.round(y, input_rounder_) : y, weight);
  } else if (sums_first) {
    y = step::aggregate(in.program, in.round(y, input_rounder_, summed), {product});
    y = step::linear(in.program, in.round(y, inner_rounder_), weight);
  } else {
    y = step::linear(in.program, rounds_input ? in.round(y, input_rounder_) : y, weight);
    y = step::aggregate(in.program, in.round(y, inner_rounder_, summed), {product});
  }
  return in.finish(y, epilogue_);
}

std::string Gcn::describe() const {
  return fmt::format("GCN({}, {}{}{})", options_.in, options_.out,
                     options_.bits > 0 ? fmt::format(", {} bits", options_.bits) : "",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
