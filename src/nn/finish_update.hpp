// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/nn/epilogue.hpp"
#include "tessera/nn/names.hpp"
#include "tessera/ops/aggregate_update.hpp"

/// Layers whose sums and product are one op: what follows goes with them where the op has it.
namespace tessera::nn {

inline void plan_finish(const Epilogue& epilogue, const Context& context,
                        ops::AggregateUpdateOptions& options) {
  const auto finish = epilogue.in_product(context);
  if (!finish) return;
  options.bias = finish->bias;
  options.activation = finish->activation;
  options.slope = finish->slope;
  options.alpha = finish->alpha;
  options.dropout = finish->dropout;
}

/// Runs a plan with such an end into `y`, and whatever of the epilogue is left behind it.
inline const Tensor& run_and_finish(const ops::AggregateUpdatePlan& plan,
                                    ops::AggregateUpdateInputs inputs,
                                    ops::AggregateUpdateOutputs outputs, Epilogue& epilogue,
                                    Tensor& y, std::uint32_t layer_number, const Context& context) {
  const bool finishes = epilogue.in_product(context).has_value();
  if (finishes) {
    ops::SpmmInputs given;
    epilogue.give_to_product(given, y, layer_number, context);
    inputs.bias = given.bias;
    inputs.random = given.random;
    inputs.clock = given.clock;
  }
  outputs.y = y;
  ops::run(plan, inputs, outputs, context.stream, {}, context.workspace);
  return finishes ? y : epilogue.forward_in_place(y, layer_number, context);
}

}  // namespace tessera::nn
