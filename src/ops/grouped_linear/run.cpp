// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/grouped_linear.hpp"

#include "ops/grouped_linear/call.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// Throws unless every row has one group, and both widths divide into blocks.
void check_groups(const Checker& check, const Graph& groups, const ConstOperand& x,
                  const ConstOperand& weights, std::int64_t blocks, std::int64_t out) {
  check.floating(x, "x");
  check.that(groups.num_rows() == x.rows && groups.num_edges() == x.rows,
             fmt::format("groups has {} rows and {} entries for {} rows of x", groups.num_rows(),
                         groups.num_edges(), x.rows));
  for (VertexId row = 0; row < groups.num_rows(); ++row) {
    if (groups.degree(row) == 1) continue;
    check.fail(fmt::format("row {} belongs to {} groups", row, groups.degree(row)));
  }
  check.that(x.cols > 0, "x has no columns");
  check.that(blocks >= 1 && x.cols % blocks == 0 && out % blocks == 0,
             fmt::format("{} x {} numbers do not divide into {} blocks", x.cols, out, blocks));
  check.matrix(weights, "weights", {x.type, groups.num_cols(), x.cols / blocks * out});
}

GroupedCall call_of(const ConstOperand& x, const Graph& groups, const ConstOperand& weights,
                    std::int64_t blocks, std::int64_t out) {
  return {x, groups, weights, {x.cols, x.cols / blocks, out / blocks}};
}

}  // namespace

void grouped_linear(ConstOperand x, const Graph& groups, ConstOperand weights, std::int64_t blocks,
                    Operand y, Device device, Stream stream) {
  const Checker check("grouped_linear", device);
  check_groups(check, groups, x, weights, blocks, y.cols);
  check.matrix(y, "y", {x.type, x.rows, y.cols});
  check.apart(y, "y", {{x, "x"}, {weights, "weights"}});
  if (plans_only() || y.rows == 0 || y.cols == 0) return;
  const GroupedCall call = call_of(x, groups, weights, blocks, y.cols);
  if (device.kind == DeviceKind::cpu) return grouped_on_cpu(call, y);
#ifdef TESSERA_WITH_CUDA
  grouped_on_gpu(call, y, device, stream);
#else
  static_cast<void>(stream);
#endif
}

void grouped_linear_backward(ConstOperand x, const Graph& groups, ConstOperand weights,
                             std::int64_t blocks, ConstOperand grad_y, Operand grad_x,
                             Operand grad_weights, Device device, Stream stream) {
  const Checker check("grouped_linear_backward", device);
  check_groups(check, groups, x, weights, blocks, grad_y.cols);
  check.matrix(grad_y, "grad_y", {x.type, x.rows, grad_y.cols});
  check.optional_matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.optional_matrix(grad_weights, "grad_weights", {x.type, weights.rows, weights.cols});
  check.apart(grad_x, "grad_x", {{x, "x"}, {weights, "weights"}, {grad_y, "grad_y"}});
  check.apart(grad_weights, "grad_weights", {{x, "x"}, {weights, "weights"}, {grad_y, "grad_y"}});
  if (plans_only()) return;
  const GroupedCall call = call_of(x, groups, weights, blocks, grad_y.cols);
  if (device.kind == DeviceKind::cpu) {
    return grouped_backward_on_cpu(call, grad_y, grad_x, grad_weights);
  }
#ifdef TESSERA_WITH_CUDA
  grouped_backward_on_gpu(call, grad_y, grad_x, grad_weights, device, stream);
#else
  static_cast<void>(stream);
#endif
}

}  // namespace tessera::ops
