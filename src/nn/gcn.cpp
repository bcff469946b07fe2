// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/gcn.hpp"

#include <fmt/format.h>

#include "tessera/nn/propagate.hpp"

namespace tessera::nn {

Gcn::Gcn(const GcnOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      projection_("lin.weight", options.in, options.out, Initial::glorot(options.in, options.out),
                  placement, options.bits),
      input_rounder_(options.rounds_input ? options.bits : 0, placement),
      inner_rounder_(options.bits, placement),
      epilogue_(options.output, options.out, placement),
      inner_(placement),
      outer_(placement),
      grad_inner_(placement),
      grad_input_(placement) {
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
  register_parameter(projection_.weight);
}

Derivation Gcn::adjacency() const {
  if (!options_.normalise) return as_given;
  return options_.add_self_loops ? gcn_adjacency : gcn_adjacency_without_loops;
}

bool Gcn::transforms_first(const Input& input) const {
  return input.is_sparse() || options_.out < options_.in;
}

const Tensor& Gcn::forward(const Input& input, const Context& context) {
  input_ = input.is_sparse() ? input : Input(input_rounder_(input.dense("GCN"), context));
  if (options_.precomputed) {
    projection_.forward(input_, 0, outer_, context);
  } else if (transforms_first(input)) {
    projection_.forward(input_, 0, inner_, context);
    inner_rounder_.in_place(inner_, context, ops::RoundingRange::columns);
    if (can_finish(epilogue_, inner_, context)) {
      propagate_and_finish({"GCN", adjacency()}, inner_, nullptr, epilogue_, number(), outer_,
                           context);
      return outer_;
    }
    propagate({"GCN", adjacency()}, inner_, outer_, context);
  } else {
    propagate({"GCN", adjacency(), ops::Reduction::sum, needs_input_gradient()},
              input_.dense("GCN"), inner_, context);
    inner_rounder_.in_place(inner_, context);
    projection_.forward(inner_, 0, outer_, context);
  }
  return epilogue_.forward_in_place(outer_, number(), context);
}

Tensor* Gcn::backward(Tensor& grad_output, const Context& context) {
  epilogue_.backward(grad_output, number(), context);
  const bool to_input = needs_input_gradient() && !input_.is_sparse();
  if (options_.precomputed) {
    projection_.backward_weight(input_, grad_output, context);
    if (to_input) projection_.backward_input(grad_output, 0, grad_input_, context);
  } else if (transforms_first(input_)) {
    propagate_backward({"GCN", adjacency()}, grad_output, grad_inner_, context);
    projection_.backward_weight(input_, grad_inner_, context);
    if (to_input) projection_.backward_input(grad_inner_, 0, grad_input_, context);
  } else {
    projection_.backward_weight(inner_, grad_output, context);
    if (to_input) {
      projection_.backward_input(grad_output, 0, grad_inner_, context);
      propagate_backward({"GCN", adjacency()}, grad_inner_, grad_input_, context);
    }
  }
  return to_input ? &grad_input_ : nullptr;
}

std::string Gcn::describe() const {
  return fmt::format("GCN({}, {}{}{})", options_.in, options_.out,
                     options_.bits > 0 ? fmt::format(", {} bits", options_.bits) : "",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
