// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/powers.hpp"

#include <fmt/format.h>

#include <utility>

#include "nn/rectangular.hpp"
#include "tessera/core/error.hpp"

namespace tessera::nn {

Sgc::Sgc(const SgcOptions& options, Placement placement)
    : Layer(placement),
      options_(options),
      weight_("lin.weight", options.out, options.in, Initial::linear(options.in), placement),
      epilogue_(options.output, options.out, placement, Initial::linear(options.in), "lin.bias") {
  register_parameter(weight_);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
}

step::Value Sgc::build(const StepInputs& in) {
  const Derivation adjacency =
      options_.add_self_loops ? gcn_adjacency : gcn_adjacency_without_loops;
  step::Value y = step::linear(in.program, in.sources, in.parameter(weight_));
  for (std::int64_t k = 0; k < num_graphs(); ++k) {
    const auto graph = static_cast<int>(k);
    y = step::aggregate(in.program, y,
                        {unless_scaled(in, adjacency, graph), ops::Reduction::sum, graph});
  }
  return in.finish(y, epilogue_);
}

std::string Sgc::describe() const {
  return fmt::format("SGC({}, {}, K {}{})", options_.in, options_.out, options_.hops,
                     nn::describe(options_.output));
}

void propagate(const Tensor& x, Topology& graph, Tensor& y, Stream stream) {
  if (x.rows() != graph.num_cols()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the input has {} rows, but the graph {} vertices", x.rows(), graph.num_cols()),
        "propagated", "give one row of features per vertex");
  }
  ops::SpmmOptions options;
  options.precision = x.precision();
  options.features = x.cols();
  options.edge_value_gradient = false;
  options.backward = false;
  y.resize(graph.num_rows(), x.cols());
  ops::run(graph.spmm(gcn_adjacency, options), {x}, {y}, stream);
}

Tensor propagated(const Input& x, Topology& graph, std::int64_t hops, Placement placement,
                  Stream stream) {
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
    propagate(now, graph, next, stream);
    std::swap(now, next);
  }
  return now;
}

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
