// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/cheb.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/nn/propagate.hpp"
#include "tessera/ops/elementwise.hpp"

namespace tessera::nn {
namespace {

constexpr Propagation rest{"Cheb", negated_laplacian_rest};

}  // namespace

Cheb::Cheb(const ChebOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      epilogue_(options.output, options.out, placement),
      terms_{Tensor(placement), Tensor(placement), Tensor(placement)},
      grad_input_(placement) {
  if (options.order < 1 || !(options.lambda_max > 0)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("K = {} and lambda_max = {}", options.order, options.lambda_max),
                "Cheb", "both must be positive");
  }
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
  for (std::int64_t k = 0; k < options.order; ++k) {
    projections_.push_back(
        std::make_unique<Projection>(fmt::format("lins.{}.weight", k), options.in, options.out,
                                     Initial::glorot(options.in, options.out), placement));
    register_parameter(projections_.back()->weight);
  }
}

// L = (2 / lambda - 1) I + (2 / lambda) N, where N is the part that the graph multiplies.
void Cheb::laplacian_step(double factor, const Tensor& x, const Tensor* minus, Tensor& y,
                          Direction direction, const Context& context) {
  if (direction == Direction::forward) {
    propagate(rest, x, y, context);
  } else {
    propagate_backward(rest, x, y, context);
  }
  const double of_rest = factor * 2 / options_.lambda_max;
  const double of_identity = of_rest - factor;
  if (of_identity != 0) {
    ops::add_scaled(of_identity, x, of_rest, y, device(), context.stream);
  } else if (of_rest != 1) {
    ops::add_scaled(of_rest, y, 0, y, device(), context.stream);
  }
  if (minus != nullptr) ops::add_scaled(-1, *minus, 1, y, device(), context.stream);
}

// b_k = X W_k^T + 2 L b_(k+1) - b_(k+2) from the highest k down; in b_0, which is the sum wanted, L
// counts once.
const Tensor& Cheb::forward(const Input& input, const Context& context) {
  input_ = input;
  Tensor* newest = &terms_[0];
  Tensor* older = &terms_[1];
  Tensor* oldest = &terms_[2];
  for (std::int64_t k = options_.order - 1; k >= 0; --k) {
    const std::int64_t done = options_.order - 1 - k;
    newest = std::exchange(oldest, std::exchange(older, newest));
    if (done > 0) {
      laplacian_step(k > 0 ? 2 : 1, *older, done > 1 ? oldest : nullptr, *newest,
                     Direction::forward, context);
    }
    projection(k).forward(input, done > 0 ? 1 : 0, *newest, context);
  }
  return epilogue_.forward_in_place(*newest, number(), context);
}

// The gradient of X W_k^T is T_k(L^T) dY, by the polynomials' own recurrence.
Tensor* Cheb::backward(Tensor& grad_output, const Context& context) {
  epilogue_.backward(grad_output, number(), context);
  const bool to_input = needs_input_gradient() && !input_.is_sparse();
  const Tensor* before = nullptr;
  const Tensor* now = &grad_output;
  for (std::int64_t k = 0; k < options_.order; ++k) {
    if (k > 0) {
      Tensor& next = terms_[k % 3];
      laplacian_step(k > 1 ? 2 : 1, *now, before, next, Direction::backward, context);
      before = std::exchange(now, &next);
    }
    projection(k).backward_weight(input_, *now, context);
    if (to_input) projection(k).backward_input(*now, k > 0 ? 1 : 0, grad_input_, context);
  }
  return to_input ? &grad_input_ : nullptr;
}

std::string Cheb::describe() const {
  return fmt::format("Cheb({}, {}, K {}{})", options_.in, options_.out, options_.order,
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
