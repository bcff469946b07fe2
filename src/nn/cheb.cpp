// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/cheb.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::nn {

Cheb::Cheb(const ChebOptions& options, Placement placement)
    : Layer(placement), options_(options), epilogue_(options.output, options.out, placement) {
  if (options.order < 1 || !(options.lambda_max > 0)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("K = {} and lambda_max = {}", options.order, options.lambda_max),
                "Cheb", "both must be positive");
  }
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
  for (std::int64_t k = 0; k < options.order; ++k) {
    weights_.push_back(
        std::make_unique<Parameter>(fmt::format("lins.{}.weight", k), options.out, options.in,
                                    Initial::glorot(options.in, options.out), placement));
    register_parameter(*weights_.back());
  }
}

// L = (2 / lambda - 1) I + (2 / lambda) N, where N is the part that the graph multiplies.
step::Value Cheb::laplacian(step::Program& program, double factor, step::Value x) const {
  const double of_rest = factor * 2 / options_.lambda_max;
  const double of_identity = of_rest - factor;
  const step::Value rest = step::aggregate(program, x, {negated_laplacian_rest});
  if (of_identity != 0) return step::combine(program, of_identity, x, of_rest, rest);
  return of_rest == 1 ? rest : step::scaled(program, of_rest, rest);
}

// b_k = X W_k^T + 2 L b_(k+1) - b_(k+2) from the highest k down; in b_0, which is the sum wanted, L
// counts once.
step::Value Cheb::build(const StepInputs& in) {
  step::Program& program = in.program;
  step::Value newest, older;
  for (std::int64_t k = options_.order - 1; k >= 0; --k) {
    step::Value next =
        step::linear(program, in.sources, in.parameter(*weights_[static_cast<std::size_t>(k)]));
    if (!newest.absent()) {
      step::Value sum = laplacian(program, k > 0 ? 2 : 1, newest);
      if (!older.absent()) sum = step::combine(program, -1, older, 1, sum);
      next = step::add(program, sum, next);
    }
    older = newest;
    newest = next;
  }
  return in.finish(newest, epilogue_);
}

std::string Cheb::describe() const {
  return fmt::format("Cheb({}, {}, K {}{})", options_.in, options_.out, options_.order,
                     nn::describe(options_.output));
}

}  // namespace tessera::nn
