// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/projection.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/linear.hpp"

#include "tessera/detail/ops/held_calls.hpp"

namespace tessera::nn {
namespace {

using ops::Transpose;

ops::SpmmOptions product_options(const Parameter& weight, bool backward) {
  ops::SpmmOptions options;
  options.precision = weight.used().precision();
  options.features = weight.value.rows();
  options.edge_value_gradient = false;
  options.backward = backward;
  return options;
}

void require_width(const Input& x, const Parameter& weight) {
  if (x.cols() == weight.value.cols()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the input has {} features, but the weight is {} x {}", x.cols(),
                          weight.value.rows(), weight.value.cols()),
              weight.name, fmt::format("give it {} features", weight.value.cols()));
}

}  // namespace

Projection::Projection(std::string name, std::int64_t in, std::int64_t out, Initial initial,
                       Placement placement, int bits)
    : weight(std::move(name), out, in, initial, placement),
      rounder_(bits, placement),
      turned_(placement),
      product_(placement) {}

void Projection::forward(const Input& x, double beta, Tensor& y, const Context& context) {
  require_width(x, weight);
  const Device device = y.device();
  if (beta == 0) y.resize(x.rows(), out());
  if (!x.is_sparse()) {
    if (beta == 0) return forward_dense(x.dense("Projection"), nullptr, y, context);
    ops::gemm(Transpose::no, Transpose::yes, 1, x.dense("Projection"), used_weight(context), beta,
              y, device, context.stream, context.workspace, weight.value.precision());
    return;
  }
  ops::release_calls(context.workspace);
  const Tensor& turned = turned_weight(context);
  if (beta != 0) product_.resize(x.rows(), out());
  Tensor& target = beta == 0 ? y : product_;
  ops::run(x.sparse().spmm(as_given, product_options(weight, context.training)),
           {turned, x.values()}, {target}, context.stream);
  if (beta != 0) ops::add_scaled(1, product_, beta, y, device, context.stream);
}

void Projection::forward_dense(const Tensor& x, const Parameter* bias, Tensor& y,
                               const Context& context, const ops::LinearSurroundings& around) {
  require_width(x, weight);
  y.resize(x.rows(), out());
  ops::linear(x, used_weight(context),
              bias == nullptr ? ops::ConstOperand() : ops::ConstOperand(bias->used()), y,
              y.device(), context.stream, context.workspace, weight.value.precision(), around);
}

void Projection::forward_in_fp32(const Tensor& x, Tensor& y, const Context& context) {
  require_width(x, weight);
  y.resize(x.rows(), out());
  ops::gemm(Transpose::no, Transpose::yes, 1, x, used_weight(context), 0, y, y.device(),
            context.stream, context.workspace, weight.value.precision());
}

void Projection::forward_and_finish(const Input& x, Epilogue& epilogue, std::uint32_t layer_number,
                                    Tensor& y, const Context& context) {
  require_width(x, weight);
  ops::release_calls(context.workspace);
  y.resize(x.rows(), out());
  // Its gradient is that of the plain product.
  ops::SpmmOptions options = product_options(weight, false);
  options.epilogue = epilogue.in_product(context).value();
  ops::SpmmInputs inputs{turned_weight(context), x.values()};
  epilogue.give_to_product(inputs, y, layer_number, context);
  ops::run(x.sparse().spmm(as_given, options), inputs, {y}, context.stream);
}

const Tensor& Projection::used_weight(const Context& context) {
  return rounder_(weight.used(), context, ops::RoundingRange::rows);
}

const Tensor& Projection::turned_weight(const Context& context) {
  if (weight.has_optimiser && !rounder_.rounds()) return weight.turned(context.stream);
  turned_.resize(in(), out());
  ops::transpose(used_weight(context), turned_, turned_.device(), context.stream);
  return turned_;
}

void Projection::backward(const Input& x, const Tensor& grad_y, Parameter* bias, Tensor* grad_x,
                          const Context& context, const ops::LinearSurroundings& around) {
  const Device device = grad_y.device();
  ops::Operand grad_bias;
  if (bias != nullptr) grad_bias = bias->gradient;
  if (x.is_sparse()) {
    if (bias != nullptr) {
      ops::bias_activation_dropout_backward(grad_y, {}, {}, grad_y, {}, grad_bias, device,
                                            context.stream, context.workspace);
    }
    return backward_weight(x, grad_y, context);
  }
  ops::Operand of_x;
  ops::ConstOperand used;
  if (grad_x != nullptr) {
    grad_x->resize(grad_y.rows(), in());
    of_x = *grad_x;
  }
  if (grad_x != nullptr || !around.norm_sums.absent()) used = used_weight(context);
  ops::linear_backward(x.dense("Projection"), used, grad_y, weight.upright_gradient(), grad_bias,
                       of_x, device, context.stream, context.workspace, weight.value.precision(),
                       around);
}

void Projection::backward_normed(const Tensor& x, ops::ConstOperand grad_y, Tensor* grad_x,
                                 const Context& context, const ops::LinearSurroundings& around) {
  if (grad_x != nullptr) grad_x->resize(x.rows(), in());
  ops::linear_backward(x, used_weight(context), grad_y, weight.upright_gradient(), {},
                       grad_x != nullptr ? ops::Operand(*grad_x) : ops::Operand(), x.device(),
                       context.stream, context.workspace, weight.value.precision(), around);
}

void Projection::backward_weight(const Input& x, const Tensor& grad_y, const Context& context,
                                 bool accumulate) {
  const Device device = grad_y.device();
  if (!x.is_sparse()) {
    const Tensor& dense = x.dense("Projection");
    if (accumulate && weight.gradient_is_turned()) {
      ops::gemm(Transpose::yes, Transpose::no, 1, dense, grad_y, 1, weight.gradient, device,
                context.stream, context.workspace, weight.value.precision());
      return;
    }
    Tensor& gradient = accumulate ? weight.gradient : weight.upright_gradient();
    ops::gemm(Transpose::yes, Transpose::no, 1, grad_y, dense, accumulate ? 1 : 0, gradient, device,
              context.stream, context.workspace, weight.value.precision());
    return;
  }
  ops::release_calls(context.workspace);
  const auto product_into = [&](Tensor& turned) {
    ops::run_backward(x.sparse().spmm(as_given, product_options(weight, true)),
                      {grad_y, {}, x.values(), {}}, {turned, {}}, context.stream);
  };
  // An optimiser takes it as it comes.
  if (weight.has_optimiser && !accumulate) return product_into(weight.turned_gradient());
  turned_.resize(in(), out());
  product_into(turned_);
  if (accumulate && weight.gradient_is_turned()) {
    ops::add_scaled(1, turned_, 1, weight.gradient, device, context.stream);
    return;
  }
  if (accumulate) product_.resize(out(), in());
  Tensor& target = accumulate ? product_ : weight.upright_gradient();
  ops::transpose(turned_, target, device, context.stream);
  if (accumulate) ops::add_scaled(1, product_, 1, weight.gradient, device, context.stream);
}

void Projection::backward_input(const Tensor& grad_y, double beta, Tensor& grad_x,
                                const Context& context) {
  if (beta == 0) grad_x.resize(grad_y.rows(), in());
  ops::gemm(Transpose::no, Transpose::no, 1, grad_y, used_weight(context), beta, grad_x,
            grad_x.device(), context.stream, context.workspace, weight.value.precision());
}

}  // namespace tessera::nn
