// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/linear.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/nn/bit_steps.hpp"
#include "tessera/nn/propagate.hpp"
#include "tessera/ops/norm_sums.hpp"

namespace tessera::nn {

Linear::Linear(const LinearOptions& options, Placement placement)
    : Layer(placement),
      projection_("weight", options.in, options.out, Initial::linear(options.in), placement,
                  options.bits),
      input_rounder_(options.bits, placement),
      epilogue_(options.output, options.out, placement, Initial::linear(options.in)),
      product_(placement),
      grad_input_(placement) {
  register_parameter(projection_.weight);
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
  register_rounder("input", input_rounder_);
}

const Tensor& Linear::forward(const Input& input, const Context& context) {
  around_ = {};
  norm_before_ = nullptr;
  if (moments_) moments_->known = false;
  if (!input.is_sparse()) {
    input_ = Input(input_rounder_(input.dense("Linear"), context));
    return forward_dense(input_.dense("Linear"), context);
  }
  input_ = input;
  product_.resize(input.rows(), output_width());
  if (can_finish(epilogue_, product_, context)) {
    projection_.forward_and_finish(input, epilogue_, number(), product_, context);
    return product_;
  }
  projection_.forward(input_, 0, product_, context);
  return epilogue_.forward_in_place(product_, number(), context);
}

bool Linear::fuses(std::int64_t rows, const BatchNorm& norm, const Context& context) const {
  return !input_rounder_.rounds() && norm.leaves_rows(context) &&
         ops::linear_fuses(device(), storage_of(placement().precision), rows, input_width(),
                           output_width());
}

const Tensor& Linear::forward(const Tensor& x, BatchNorm& norm, const Context& context) {
  input_ = Input(x);
  norm_before_ = &norm;
  around_ = norm.forward_columns(x, context);
  return forward_dense(x, context);
}

const Tensor& Linear::forward_dense(const Tensor& x, const Context& context) {
  ops::LinearSurroundings around = around_;
  if (epilogue_.is_relu(context) && around.columns.absent() &&
      ops::linear_activates(device(), storage_of(placement().precision), x.rows(), input_width(),
                            output_width())) {
    if (moments_) moments_->known = false;
    around.relu_behind = true;
    projection_.forward_dense(x, epilogue_.take_result(product_), product_, context, around);
    return product_;
  }
  const Parameter* const bias = epilogue_.only_bias(context);
  if (moments_) {
    moments_->known = context.training && epilogue_.is_linear(context) &&
                      ops::linear_fuses(device(), storage_of(placement().precision), x.rows(),
                                        input_width(), output_width());
    if (moments_->known) around.moments = moments_->values;
  }
  projection_.forward_dense(x, bias, product_, context, around);
  return bias != nullptr ? product_ : epilogue_.forward_in_place(product_, number(), context);
}

const ColumnMoments* Linear::leave_moments() {
  if (!moments_) moments_.emplace(output_width(), placement());
  return &*moments_;
}

bool Linear::takes_normed(const Context& context) {
  return !input_.absent() && !input_.is_sparse() && needs_input_gradient() &&
         !input_rounder_.rounds() && !projection_.rounder().rounds() &&
         epilogue_before() == nullptr && epilogue_.is_linear(context) &&
         epilogue_.only_bias(context) == nullptr &&
         ops::linear_gradient_fuses(device(), storage_of(placement().precision), input_.rows(),
                                    input_width(), output_width());
}

Tensor* Linear::backward(Tensor& grad_output, const Context& context) {
  if (const ops::NormedGradient normed = std::exchange(normed_, {}); !normed.absent()) {
    ops::LinearSurroundings around = around_;
    around.normed = normed;
    if (norm_before_ != nullptr) around.norm_sums = norm_before_->expect_sums();
    leave({});
    projection_.backward_normed(input_.dense("Linear"), std::as_const(grad_output), &grad_input_,
                                context, around);
    return &grad_input_;
  }
  Parameter* const bias = epilogue_.sum_is_left() ? nullptr : epilogue_.only_bias(context);
  if (bias == nullptr) epilogue_.backward(grad_output, number(), context);
  const bool to_input = needs_input_gradient() && !input_.is_sparse();
  const bool leaves = to_input && leaves_product() && !projection_.rounder().rounds() &&
                      ops::pays_as_factors(grad_output.rows(), output_width());
  leave(leaves ? GradientProduct{&grad_output, &projection_.weight.used()} : GradientProduct{});
  Tensor* const grad = to_input && !leaves ? &grad_input_ : nullptr;
  ops::LinearSurroundings around = around_;
  if (grad != nullptr && epilogue_before() != nullptr && around.columns.absent() &&
      !input_rounder_.rounds()) {
    epilogue_before()->let_finish(around, context);
  }
  if (leaves && norm_before_ != nullptr &&
      ops::linear_finds_norm_sums(device(), storage_of(placement().precision), grad_output.rows(),
                                  input_width(), output_width())) {
    around.norm_sums = norm_before_->expect_sums();
  }
  projection_.backward(input_, grad_output, bias, grad, context, around);
  return grad;
}

bool Linear::append_to(BitSteps& steps) const {
  if (!input_rounder_.rounds()) return false;
  steps.multiply(describe(), projection_, &input_rounder_);
  epilogue_.append_to(steps);
  return true;
}

std::string Linear::describe() const {
  return fmt::format("Linear({}, {}{})", input_width(), output_width(),
                     nn::describe(epilogue_.options()));
}

}  // namespace tessera::nn
