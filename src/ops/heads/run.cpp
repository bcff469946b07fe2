// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include "tessera/ops/heads.hpp"

#include "ops/dense/dense_ops.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// Throws unless `whole` columns are a number of heads, or of features per head, of `part`.
void check_divides(const Checker& check, std::int64_t whole, std::int64_t part, const char* what) {
  if (whole == 0 && part == 0) return;
  if (part > 0 && whole % part == 0) return;
  check.fail(std::to_string(whole) + " columns do not divide into " + std::to_string(part) + " " +
             what);
}

}  // namespace

void head_dot(ConstOperand x, ConstOperand vector, Operand y, Device device, Stream stream) {
  const Checker check("head_dot", device);
  check.floating(x, "x");
  check.matrix(vector, "vector", {x.type, 1, x.cols});
  check.matrix(y, "y", {x.type, x.rows, y.cols});
  check.apart(y, "y", x, "x");
  check_divides(check, x.cols, y.cols, "heads");
  dense_ops(device).run(HeadDotsCall{x, {vector}, {y}, 1}, stream);
}

void head_dot_backward(ConstOperand x, ConstOperand vector, ConstOperand grad_y, Operand grad_x,
                       Operand grad_vector, Device device, Stream stream,
                       const DenseWorkspace* workspace) {
  const Checker check("head_dot_backward", device);
  check.floating(x, "x");
  check.matrix(vector, "vector", {x.type, 1, x.cols});
  check.matrix(grad_y, "grad_y", {x.type, x.rows, grad_y.cols});
  check.optional_matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.optional_matrix(grad_vector, "grad_vector", {x.type, 1, x.cols});
  check.apart(grad_x, "grad_x", {{x, "x"}, {grad_y, "grad_y"}});
  check_divides(check, x.cols, grad_y.cols, "heads");
  dense_ops(device).run(HeadDotsGradCall{x, {vector}, {grad_y}, grad_x, {grad_vector}, 1}, stream,
                        workspace);
}

void head_dots(ConstOperand x, ConstOperand first, ConstOperand second, Operand of_first,
               Operand of_second, Device device, Stream stream) {
  const Checker check("head_dots", device);
  check.floating(x, "x");
  check.matrices({{first, "first"}, {second, "second"}}, {x.type, 1, x.cols});
  check.matrices({{of_first, "of_first"}, {of_second, "of_second"}},
                 {x.type, x.rows, of_first.cols});
  check.apart(of_first, "of_first", x, "x");
  check.apart(of_second, "of_second", {{x, "x"}, {of_first, "of_first"}});
  check_divides(check, x.cols, of_first.cols, "heads");
  dense_ops(device).run(HeadDotsCall{x, {first, second}, {of_first, of_second}}, stream);
}

void head_dots_backward(ConstOperand x, ConstOperand first, ConstOperand second,
                        ConstOperand grad_of_first, ConstOperand grad_of_second, Operand grad_x,
                        Operand grad_first, Operand grad_second, Device device, Stream stream,
                        const DenseWorkspace* workspace) {
  const Checker check("head_dots_backward", device);
  check.floating(x, "x");
  const Named of_first{grad_of_first, "grad_of_first"}, of_second{grad_of_second, "grad_of_second"};
  check.matrices({{first, "first"}, {second, "second"}}, {x.type, 1, x.cols});
  check.matrices({of_first, of_second}, {x.type, x.rows, grad_of_first.cols});
  check.matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.matrices({{grad_first, "grad_first"}, {grad_second, "grad_second"}}, {x.type, 1, x.cols});
  check.apart(grad_x, "grad_x", {{x, "x"}, of_first, of_second});
  check.apart(grad_second, "grad_second", grad_first, "grad_first");
  check_divides(check, x.cols, grad_of_first.cols, "heads");
  dense_ops(device).run(
      HeadDotsGradCall{
          x, {first, second}, {grad_of_first, grad_of_second}, grad_x, {grad_first, grad_second}},
      stream, workspace);
}

void head_mean(ConstOperand x, Operand y, Device device, Stream stream) {
  const Checker check("head_mean", device);
  check.floating(x, "x");
  check.matrix(y, "y", {x.type, x.rows, y.cols});
  check.apart(y, "y", x, "x");
  check_divides(check, x.cols, y.cols, "features per head");
  dense_ops(device).run(HeadMeanCall{x, y}, stream);
}

void head_mean_backward(ConstOperand grad_y, Operand grad_x, Device device, Stream stream) {
  const Checker check("head_mean_backward", device);
  check.floating(grad_y, "grad_y");
  check.matrix(grad_x, "grad_x", {grad_y.type, grad_y.rows, grad_x.cols});
  check.apart(grad_x, "grad_x", grad_y, "grad_y");
  check_divides(check, grad_x.cols, grad_y.cols, "features per head");
  dense_ops(device).run(HeadMeanGradCall{grad_y, grad_x}, stream);
}

}  // namespace tessera::ops
