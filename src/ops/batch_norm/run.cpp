// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tessera/ops/batch_norm.hpp"

#include "ops/dense/call_chain.hpp"
#include "ops/dense/checked.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// What belongs to a column keeps fp32 where x has 16 bits.
Expected per_column(const ConstOperand& x) {
  return {x.type == ElementType::fp64 ? ElementType::fp64 : ElementType::fp32, 1, x.cols};
}

}  // namespace

void batch_norm(ConstOperand x, ConstOperand gamma, ConstOperand beta,
                const BatchNormOptions& options, const BatchNormState& state, Operand y,
                Operand saved_mean, Operand saved_inverse_deviation, Device device, Stream stream,
                const DenseWorkspace* workspace, const ActivationOptions& activation,
                ConstOperand shift, const BatchNormNeighbours& neighbours, CallChain* chain) {
  const Checker check("batch_norm", device);
  check.floating(x, "x");
  check.optional_matrices({{gamma, "gamma"},
                           {beta, "beta"},
                           {state.running_mean, "running_mean"},
                           {state.running_variance, "running_variance"},
                           {saved_mean, "saved_mean"},
                           {saved_inverse_deviation, "saved_inverse_deviation"}},
                          per_column(x));
  check.optional_matrix(shift, "shift", {x.type, 1, x.cols});
  const auto& [moments, columns] = neighbours;
  check.optional_matrix(moments, "moments", {ElementType::fp64, 3, x.cols});
  check.optional_matrix(columns, "columns", {per_column(x).type, x.cols, 4});
  if (!columns.absent() && columns.stride != 4) check.fail("columns has gaps between its rows");
  if (columns.absent() || !y.absent()) check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(y, "y", x, "x");
  check.positive(options.epsilon, "epsilon");
  if (!(options.momentum >= 0 && options.momentum <= 1)) {
    check.fail(fmt::format("momentum is {}, expected 0 to 1", options.momentum));
  }
  const bool has_statistics = !state.running_mean.absent() && !state.running_variance.absent();
  if (!options.training && x.cols > 0 && !has_statistics) {
    check.fail("evaluation needs running statistics");
  }
  run_or_join(chain, device,
              BatchNormCall{x, gamma, beta, options, state, y, saved_mean, saved_inverse_deviation,
                            checked_formula(check, activation), shift, moments, columns},
              stream, workspace);
}

void batch_norm_backward(ConstOperand x, ConstOperand gamma, ConstOperand saved_mean,
                         ConstOperand saved_inverse_deviation, ConstOperand grad_y, Operand grad_x,
                         Operand grad_gamma, Operand grad_beta, Device device, Stream stream,
                         const DenseWorkspace* workspace, const BatchNormSurroundings& around,
                         CallChain* chain) {
  const Checker check("batch_norm_backward", device);
  check.floating(x, "x");
  const Named mean{saved_mean, "saved_mean"};
  const Named deviation{saved_inverse_deviation, "saved_inverse_deviation"};
  check.optional_matrices({{gamma, "gamma"},
                           {around.beta, "beta"},
                           {grad_gamma, "grad_gamma"},
                           {grad_beta, "grad_beta"},
                           mean,
                           deviation},
                          per_column(x));
  if (x.cols != 0) check.matrices({mean, deviation}, per_column(x));
  GradientFactors kept = around.factors;
  check.optional_matrix(around.grad_columns, "grad_columns", {ElementType::fp32, x.cols, 8});
  check.optional_matrix(around.sums, "sums", {ElementType::fp64, 2, x.cols});
  const bool leaves_columns = !around.grad_columns.absent();
  const ActivationFormula formula = checked_formula(check, around.activation);
  if (leaves_columns || !around.sums.absent()) {
    const bool is_relu_or_none =
        formula.activation == Activation::none || formula.activation == Activation::relu;
    check.that(is_relu_or_none && !formula.drops,
               "grad_columns and sums are for ReLU or no activation, without dropout");
    check.that(device.kind != DeviceKind::cpu, "grad_columns and sums are for a GPU");
  }
  if (leaves_columns) {
    check.that(around.grad_columns.stride == 8, "grad_columns has gaps between its rows");
    check.that(grad_x.absent(), "there is grad_x beside grad_columns");
  }
  if (!kept.absent() && leaves_columns) {
    check.that(grad_y.absent(), "there is grad_y beside its factors");
    check.that(pays_as_factors(x.rows, kept.left.cols), "the factors are too wide");
    check.matrix(kept.left, "left factor", {x.type, x.rows, kept.left.cols});
    check.matrix(kept.right, "right factor", {x.type, kept.left.cols, x.cols});
  } else if (!kept.absent()) {
    const bool multiplies = !dense_ops(device).multiplies_factors(x.rows, kept.left.cols);
    if (chain != nullptr && multiplies) chain->run();
    grad_y = checked_factors(check, x, kept, grad_y, grad_x, device, stream, workspace);
    if (!grad_y.absent()) kept = {};
  } else {
    check.matrix(grad_y, "grad_y", {x.type, x.rows, x.cols});
  }
  check.optional_matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.apart_or_same(grad_x, "grad_x", grad_y, "grad_y");
  check.apart(grad_x, "grad_x", x, "x");
  check.optional_matrix(around.grad_shift, "grad_shift", {x.type, 1, x.cols});
  check.that(
      !grad_x.absent() || x.rows == 0 || x.cols == 0 || formula.does_nothing() || leaves_columns,
      "there is no grad_x");
  run_or_join(chain, device,
              BatchNormGradCall{x, gamma, saved_mean, saved_inverse_deviation, grad_y, grad_x,
                                grad_gamma, grad_beta, formula, around.beta, around.grad_shift,
                                kept, around.grad_columns, around.sums},
              stream, workspace);
}

}  // namespace tessera::ops
