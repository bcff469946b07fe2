// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/linear.hpp"

#include <fmt/format.h>

#include "ops/dense/call_chain.hpp"
#include "ops/plan/check.hpp"
#include "tessera/ops/norm_sums.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/gemm/cuda/products.hpp"
#endif

namespace tessera::ops {
namespace {

/// Layers of more rows than `few_rows` go over them at the speed of memory, where rows have so many
/// columns that a few lanes read and write them.
constexpr std::int64_t few_rows = 32768, narrowest = 8, widest = 64;

/// Whether products of many rows do what `linear_fuses` is about on a GPU.
bool cuda_linear_fuses([[maybe_unused]] Device device, [[maybe_unused]] ElementType type) {
#ifdef TESSERA_WITH_CUDA
  return products_fuse(device, type);
#else
  return false;
#endif
}

bool may_use_tf32(const ConstOperand& x, Precision arithmetic) {
  return arithmetic == Precision::tf32 && x.type == ElementType::fp32;
}

/// Throws unless what surrounds a layer fits it; what is done to the columns of x.
ColumnReading checked_reading(const Checker& check, const ConstOperand& x, std::int64_t out,
                              const LinearSurroundings& around) {
  const ElementType wide = x.type == ElementType::fp64 ? ElementType::fp64 : ElementType::fp32;
  check.optional_matrix(around.columns, "columns", {wide, x.cols, 4});
  check.optional_matrix(around.moments, "moments", {ElementType::fp64, 3, out});
  const bool fuses = !around.columns.absent() || !around.moments.absent();
  if (fuses && !linear_fuses(x.device, x.type, x.rows, x.cols, out)) {
    check.fail("columns and moments are for many short rows: ask linear_fuses");
  }
  if (around.relu_behind) {
    check.that(linear_activates(x.device, x.type, x.rows, x.cols, out),
               "relu_behind is for many short rows: ask linear_activates");
    check.that(around.columns.absent() && around.moments.absent(),
               "there are columns or moments beside relu_behind");
  }
  if (!around.columns.absent() && around.columns.stride != 4) {
    check.fail("columns has gaps between its rows");
  }
  return {around.columns, around.relu};
}

/// Throws unless the gradients of a layer, or of its weight alone, come from that of batch norm.
void check_normed_shape(const Checker& check, const ConstOperand& x, const ConstOperand& grad_x,
                        const LinearSurroundings& around) {
  const std::int64_t out = around.normed.y.cols;
  if (!grad_x.absent()) {
    check.that(linear_gradient_fuses(x.device, x.type, x.rows, x.cols, out),
               "normed gradients are for many short rows: ask linear_gradient_fuses");
    return;
  }
  check.that(linear_weight_gradient_fuses(x.device, x.type, x.rows, x.cols, out),
             "normed gradients of a weight alone are for many short rows: ask "
             "linear_weight_gradient_fuses");
  check.that(around.normed.factors.absent() && around.columns.absent() && around.norm_sums.absent(),
             "without grad_x there are no factors, columns or norm_sums beside a normed gradient");
}

/// Throws unless a gradient of what follows batch norm can be taken.
void check_normed(const Checker& check, const ConstOperand& x, const ConstOperand& grad_y,
                  const ConstOperand& grad_x, const LinearSurroundings& around) {
  const auto& [y, columns, relu, factors] = around.normed;
  check.that(!around.before_relu && around.grad_x_sums.absent(),
             "before_relu and grad_x_sums are not for a normed gradient",
             "run bias_activation_dropout_backward on grad_x");
  check.matrix(y, "y", {x.type, x.rows, y.cols});
  check_normed_shape(check, x, grad_x, around);
  check.matrix(columns, "columns of the gradient", {ElementType::fp32, y.cols, 8});
  check.that(columns.stride == 8, "columns of the gradient has gaps between its rows");
  if (factors.absent()) {
    check.matrix(grad_y, "grad_y", {x.type, x.rows, y.cols});
  } else {
    check.that(grad_y.absent(), "there is grad_y beside its factors");
    check.that(pays_as_factors(x.rows, factors.left.cols), "the factors are too wide");
    check.matrix(factors.left, "left factor", {x.type, x.rows, factors.left.cols});
    check.matrix(factors.right, "right factor", {x.type, factors.left.cols, y.cols});
  }
  check.that(around.norm_sums.absent() || !around.columns.absent(),
             "there are norm_sums, but no batch norm before");
  check.optional_matrix(around.norm_sums, "norm_sums", {ElementType::fp64, 2, x.cols});
  const auto in_fours = [&](const ConstOperand& matrix, const char* name) {
    const bool fits = matrix.absent() || (matrix.stride % 4 == 0 &&
                                          reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0);
    check.that(fits, fmt::format("rows of {} do not begin on boundaries of 16 bytes", name));
  };
  in_fours(x, "x");
  in_fours(y, "y");
  in_fours(grad_y, "grad_y");
  in_fours(grad_x, "grad_x");
}

/// Throws unless sums for a batch norm before can be found beside the gradient of the weight.
void check_norm_sums(const Checker& check, const ConstOperand& x, const ConstOperand& weight,
                     const ConstOperand& grad_y, const ConstOperand& grad_weight,
                     const ConstOperand& grad_x, const LinearSurroundings& around) {
  if (around.norm_sums.absent()) return;
  check.that(linear_finds_norm_sums(x.device, x.type, x.rows, x.cols, grad_y.cols),
             "norm_sums without a normed gradient are for many rows and one or two columns: ask "
             "linear_finds_norm_sums");
  check.that(!around.columns.absent(), "there are norm_sums, but no batch norm before");
  check.that(!weight.absent() && !grad_weight.absent() && grad_x.absent(),
             "beside norm_sums there are weight and grad_weight, and no grad_x");
  check.matrix(around.norm_sums, "norm_sums", {ElementType::fp64, 2, x.cols});
}

}  // namespace

bool linear_fuses(Device device, ElementType type, std::int64_t rows, std::int64_t in,
                  std::int64_t out) {
  const bool is_one =
      rows > few_rows && in >= narrowest && in <= widest && out > 0 && out <= widest;
  if (device.kind == DeviceKind::cpu) return is_one;
  return is_one && cuda_linear_fuses(device, type);
}

bool linear_activates(Device device, ElementType type, std::int64_t rows, std::int64_t in,
                      std::int64_t out) {
  // The weight lies in shared memory, twice on a processor.
  constexpr std::int64_t longest = 256;
  return device.kind != DeviceKind::cpu && rows > few_rows && in >= narrowest && in <= longest &&
         out > 0 && out <= widest && cuda_linear_fuses(device, type);
}

bool linear_gradient_fuses(Device device, ElementType type, std::int64_t rows, std::int64_t in,
                           std::int64_t out) {
  constexpr std::int64_t narrowest = 8;
  return device.kind != DeviceKind::cpu && out >= narrowest && in % 4 == 0 && out % 4 == 0 &&
         linear_fuses(device, type, rows, in, out);
}

bool linear_weight_gradient_fuses(Device device, ElementType type, std::int64_t rows,
                                  std::int64_t in, std::int64_t out) {
  constexpr std::int64_t widest_input = 96;
  return device.kind != DeviceKind::cpu && rows > few_rows && in >= narrowest &&
         in <= widest_input && out >= narrowest && out <= widest && out % 4 == 0 &&
         cuda_linear_fuses(device, type);
}

bool linear_finds_norm_sums(Device device, ElementType type, std::int64_t rows, std::int64_t in,
                            std::int64_t out) {
  constexpr std::int64_t widest = 2;
  return device.kind != DeviceKind::cpu && out <= widest && pays_as_factors(rows, out) &&
         linear_fuses(device, type, rows, in, out);
}

void linear(ConstOperand x, ConstOperand weight, ConstOperand bias, Operand y, Device device,
            Stream stream, const DenseWorkspace* workspace, Precision arithmetic,
            const LinearSurroundings& around, CallChain* chain) {
  const Checker check("linear", device);
  check.floating(x, "x");
  check.matrix(weight, "weight", {x.type, y.cols, x.cols});
  check.optional_matrix(bias, "bias", {x.type, 1, y.cols});
  check.matrix(y, "y", {x.type, x.rows, y.cols});
  check.apart(y, "y", {{x, "x"}, {weight, "weight"}, {bias, "bias"}});
  const ColumnReading of_x = checked_reading(check, x, y.cols, around);
  run_or_join(chain, device,
              LinearCall{x, weight, bias, y, may_use_tf32(x, arithmetic), of_x, around.moments,
                         around.relu_behind},
              stream, workspace);
}

void linear_backward(ConstOperand x, ConstOperand weight, ConstOperand grad_y, Operand grad_weight,
                     Operand grad_bias, Operand grad_x, Device device, Stream stream,
                     const DenseWorkspace* workspace, Precision arithmetic,
                     const LinearSurroundings& around, CallChain* chain) {
  const Checker check("linear_backward", device);
  check.floating(x, "x");
  if (!around.normed.absent()) {
    check_normed(check, x, grad_y, grad_x, around);
    grad_y.cols = around.normed.y.cols;
    check.that(!grad_weight.absent() && grad_bias.absent(),
               "of a normed gradient there is grad_weight, and no grad_bias");
  } else {
    check.matrix(grad_y, "grad_y", {x.type, x.rows, grad_y.cols});
    check_norm_sums(check, x, weight, grad_y, grad_weight, grad_x, around);
  }
  check.optional_matrix(grad_weight, "grad_weight", {x.type, grad_y.cols, x.cols});
  check.optional_matrix(grad_bias, "grad_bias", {x.type, 1, grad_y.cols});
  check.optional_matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.optional_matrix(weight, "weight", {x.type, grad_y.cols, x.cols});
  check.that(grad_x.absent() || !weight.absent() || grad_y.cols == 0 || x.cols == 0,
             "there is no weight");
  check.optional_matrix(around.grad_x_sums, "grad_x_sums", {x.type, 1, x.cols});
  const Named of_weight{grad_weight, "grad_weight"}, of_bias{grad_bias, "grad_bias"};
  const Named of_x{grad_x, "grad_x"}, x_sums{around.grad_x_sums, "grad_x_sums"};
  const Named norm_sums{around.norm_sums, "norm_sums"};
  for (const auto& [output, name] : {of_weight, of_bias, of_x, x_sums, norm_sums}) {
    check.apart(output, name,
                {{x, "x"},
                 {weight, "weight"},
                 {grad_y, "grad_y"},
                 {around.normed.y, "y"},
                 {around.normed.factors.left, "left factor"},
                 {around.normed.factors.right, "right factor"}});
  }
  check.apart(grad_x, "grad_x", {of_weight, of_bias, x_sums, norm_sums});
  check.apart(grad_weight, "grad_weight", {of_bias, norm_sums});
  const bool finishes = around.before_relu || !around.grad_x_sums.absent();
  check.that(!finishes || !grad_x.absent(), "there is no grad_x to go on with");
  check.that(!finishes || around.columns.absent(), "x is not what ReLU put out");
  const ColumnReading reading =
      checked_reading(check, x, grad_y.cols, {around.columns, around.relu, {}});
  run_or_join(chain, device,
              LinearGradCall{x, weight, grad_y, grad_weight, grad_bias, grad_x,
                             may_use_tf32(x, arithmetic), reading, around.before_relu,
                             around.grad_x_sums, around.normed, around.norm_sums},
              stream, workspace);
}

}  // namespace tessera::ops
