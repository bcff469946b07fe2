// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/sgc.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/nn/propagate.hpp"
#include "tessera/ops/elementwise.hpp"

namespace tessera::nn {

Sgc::Sgc(const SgcOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      projection_("lin.weight", options.in, options.out, Initial::linear(options.in), placement),
      epilogue_(options.output, options.out, placement, Initial::linear(options.in), "lin.bias"),
      even_(placement),
      odd_(placement),
      grad_odd_(placement),
      grad_input_(placement) {
  register_parameter(projection_.weight);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
}

const Tensor& Sgc::forward(const Input& input, const Context& context) {
  input_ = input;
  const Propagation hop{"SGC",
                        options_.add_self_loops ? gcn_adjacency : gcn_adjacency_without_loops};
  Tensor* now = &even_;
  Tensor* next = &odd_;
  projection_.forward(input, 0, *now, context);
  for (std::int64_t k = 0; k < options_.hops && !options_.precomputed; ++k) {
    propagate(hop, *now, *next, context);
    std::swap(now, next);
  }
  return epilogue_.forward_in_place(*now, number(), context);
}

Tensor* Sgc::backward(Tensor& grad_output, const Context& context) {
  epilogue_.backward(grad_output, number(), context);
  const Propagation hop{"SGC",
                        options_.add_self_loops ? gcn_adjacency : gcn_adjacency_without_loops};
  Tensor* now = &grad_output;
  Tensor* next = &grad_odd_;
  for (std::int64_t k = 0; k < options_.hops && !options_.precomputed; ++k) {
    propagate_backward(hop, *now, *next, context);
    std::swap(now, next);
  }
  Tensor* const grad = needs_input_gradient() && !input_.is_sparse() ? &grad_input_ : nullptr;
  projection_.backward(input_, *now, nullptr, grad, context);
  return grad;
}

std::string Sgc::describe() const {
  return fmt::format("SGC({}, {}, K {}{})", options_.in, options_.out, options_.hops,
                     nn::describe(options_.output));
}

Tensor propagated(const Input& x, Topology& graph, std::int64_t hops, Placement placement,
                  Stream stream) {
  Context context;
  context.graph = &graph;
  context.stream = stream;
  Tensor now(placement);
  Tensor next(placement);
  if (x.is_sparse()) {
    // X times the identity: the same on every device.
    Matrix<float> identity(x.cols(), x.cols(), 0.0f);
    for (std::int64_t i = 0; i < x.cols(); ++i) identity(i, i) = 1;
    next.upload(identity, stream);
    ops::SpmmOptions options;
    options.precision = placement.precision;
    options.features = x.cols();
    now.resize(x.rows(), x.cols());
    ops::run(x.sparse().spmm(as_given, options), {next, x.values()}, {now}, stream);
  } else {
    now.copy_from(x.dense("propagated"), stream);
  }
  for (std::int64_t k = 0; k < hops; ++k) {
    propagate({"propagated", gcn_adjacency}, now, next, context);
    std::swap(now, next);
  }
  return now;
}

}  // namespace tessera::nn
