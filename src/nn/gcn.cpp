// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/gcn.hpp"

#include <fmt/format.h>

#include "tessera/nn/bit_steps.hpp"
#include "tessera/nn/propagate.hpp"
#include "tessera/ops/elementwise.hpp"

namespace tessera::nn {

Gcn::Gcn(const GcnOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      projection_("lin.weight", options.in, options.out, Initial::glorot(options.in, options.out),
                  placement, options.bits),
      input_rounder_(options.bits, placement),
      inner_rounder_(options.bits, placement),
      epilogue_(options.output, options.out, placement),
      product_(placement.wide()),
      inner_(placement),
      outer_(placement),
      grad_outer_(placement),
      grad_inner_(placement),
      grad_input_(placement) {
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
  register_parameter(projection_.weight);
  register_rounder("input", input_rounder_);
  register_rounder("inner", inner_rounder_);
}

Derivation Gcn::adjacency() const {
  if (!options_.normalise) return as_given;
  return options_.add_self_loops ? gcn_adjacency : gcn_adjacency_without_loops;
}

bool Gcn::transforms_first(const Input& input) const {
  return input.is_sparse() || options_.out < options_.in;
}

bool Gcn::rounds_input(const Input& input) const {
  if (input.is_sparse()) return false;
  return options_.rounds_input || options_.precomputed || !transforms_first(input);
}

bool Gcn::scales_before(const Input& input, const Context& context) const {
  constexpr EdgeOffset many = 32;  // edges of a vertex
  if (placement().precision != Precision::bf16 || inner_rounder_.rounds()) return false;
  if (!options_.normalise || input.is_sparse() || !transforms_first(input)) return false;
  Topology& topology = context.required_graph("GCN");
  if (topology.sums_edges()) return false;  // rows are not made to count them
  const Graph& graph = topology.derived(adjacency());
  const bool has_both = graph.has_row_scale() && graph.has_col_scale();
  return has_both && !graph.has_values() && graph.num_edges() >= many * graph.num_rows();
}

const Tensor* Gcn::summed_scale(const Context& context) const {
  if (!inner_rounder_.rounds()) return nullptr;
  return context.required_graph("GCN").col_scale(adjacency(), placement());
}

const Tensor& Gcn::forward(const Input& input, const Context& context) {
  constexpr auto by_columns = ops::RoundingRange::columns;
  input_ = input;
  if (rounds_input(input)) {
    const Tensor& x = input.dense("GCN");
    const bool is_summed = !options_.precomputed && !transforms_first(input);
    input_ = is_summed ? Input(input_rounder_(x, context, by_columns, summed_scale(context)))
                       : Input(input_rounder_(x, context));
  }
  if (options_.precomputed) {
    projection_.forward(input_, 0, outer_, context);
  } else if (transforms_first(input)) {
    Propagation propagation{"GCN", adjacency()};
    if (scales_before(input, context)) {
      projection_.forward_in_fp32(input_.dense("GCN"), product_, context);
      inner_.resize(product_.rows(), product_.cols());
      ops::scale_rows(product_, *context.required_graph("GCN").col_scale(adjacency(), placement()),
                      inner_, device(), context.stream);
      propagation.derivation = options_.add_self_loops ? gcn_rows : gcn_rows_without_loops;
      propagation.has_gradient = false;  // which goes another way
    } else {
      projection_.forward(input_, 0, inner_, context);
      inner_rounder_.in_place(inner_, context, by_columns, summed_scale(context));
    }
    if (can_finish(epilogue_, inner_, context)) {
      propagate_and_finish(propagation, inner_, nullptr, epilogue_, number(), outer_, context);
      return outer_;
    }
    propagate(propagation, inner_, outer_, context);
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
  return backward_outer(grad_output, context);
}

Tensor* Gcn::backward_product(const GradientProduct& grad_output, const Context& context) {
  epilogue_.backward(grad_output.factors(), grad_outer_, number(), context);
  return backward_outer(grad_outer_, context);
}

Tensor* Gcn::backward_outer(Tensor& grad_outer, const Context& context) {
  leave({});
  const bool to_input = needs_input_gradient() && !input_.is_sparse();
  Tensor* const grad_input = to_input ? &grad_input_ : nullptr;
  if (options_.precomputed) {
    projection_.backward(input_, grad_outer, nullptr, grad_input, context);
  } else if (transforms_first(input_)) {
    Propagation propagation{"GCN", adjacency()};
    if (scales_before(input_, context)) {
      ops::scale_rows(grad_outer,
                      *context.required_graph("GCN").row_scale(adjacency(), placement()),
                      grad_outer, device(), context.stream);
      propagation.derivation = options_.add_self_loops ? gcn_columns : gcn_columns_without_loops;
    }
    propagate_backward(propagation, grad_outer, grad_inner_, context);
    const bool leaves = to_input && leaves_product() && !projection_.rounder().rounds() &&
                        ops::pays_as_factors(grad_inner_.rows(), options_.out);
    ops::LinearSurroundings around;
    if (to_input && !leaves && epilogue_before() != nullptr && !input_rounder_.rounds()) {
      epilogue_before()->let_finish(around, context);
    }
    projection_.backward(input_, grad_inner_, nullptr, leaves ? nullptr : grad_input, context,
                         around);
    if (leaves) {
      leave({&grad_inner_, &projection_.weight.used()});
      return nullptr;
    }
  } else {
    projection_.backward(inner_, grad_outer, nullptr, to_input ? &grad_inner_ : nullptr, context);
    if (to_input) {
      propagate_backward({"GCN", adjacency()}, grad_inner_, grad_input_, context);
    }
  }
  return grad_input;
}

bool Gcn::append_to(BitSteps& steps) const {
  const Rounder* const input = rounds_input(input_) ? &input_rounder_ : nullptr;
  if (options_.precomputed) {
    steps.multiply(describe(), projection_, input);
  } else if (transforms_first(input_)) {
    steps.multiply(describe(), projection_, input);
    steps.aggregate(describe(), options_.out, adjacency(), 0, inner_rounder_);
  } else {
    steps.aggregate(describe(), options_.in, adjacency(), 0, input_rounder_);
    steps.multiply(describe(), projection_, &inner_rounder_);
  }
  epilogue_.append_to(steps);
  return true;
}

std::string Gcn::describe() const {
  return fmt::format("GCN({}, {}{}{})", options_.in, options_.out,
                     options_.bits > 0 ? fmt::format(", {} bits", options_.bits) : "",
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
