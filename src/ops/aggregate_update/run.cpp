// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/on_device.hpp"
#include "ops/aggregate_update/record.hpp"
#include "ops/check.hpp"
#include "ops/dense_ops.hpp"
#include "ops/plan_only.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

/// Shapes of a plan's operands.
struct Shapes {
  ElementType type;
  std::int64_t rows, cols, in, out;

  explicit Shapes(const AggregateUpdateRecord& record)
      : type(storage_of(record.options.precision)),
        rows(record.graph.num_rows()),
        cols(record.graph.num_cols()),
        in(record.options.in),
        out(record.options.out) {}

  Expected x() const { return {type, cols, in}; }
  Expected y() const { return {type, rows, out}; }
  Expected aggregated() const { return {type, rows, in}; }
  Expected weight() const { return {type, out, in}; }
  Expected bias() const { return {type, 1, out}; }
  Expected one() const { return {type, 1, 1}; }
};

/// An operand that is there if and only if the plan has it.
void check_part(const Checker& check, const char* name, const char* option,
                const ConstOperand& operand, bool planned, const Expected& expected) {
  if (planned) return check.matrix(operand, name, expected);
  if (operand.absent()) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("the plan takes no {}", name), name,
              fmt::format("plan with {}", option));
}

void check_apart(const Checker& check, const Operand& output, const char* name,
                 const AggregateUpdateInputs& inputs) {
  check.apart(output, name, inputs.x, "x");
  check.apart(output, name, inputs.weight, "weight");
  check.apart(output, name, inputs.root_weight, "root_weight");
  check.apart(output, name, inputs.self_scale, "self_scale");
  check.apart(output, name, inputs.bias, "bias");
}

}  // namespace

void run(const AggregateUpdatePlan& plan, const AggregateUpdateInputs& inputs,
         const AggregateUpdateOutputs& outputs, Stream stream, Workspace workspace,
         const DenseWorkspace* products) {
  const auto& record = PlanAccess::record<AggregateUpdateRecord>(plan);
  const AggregateUpdateOptions& options = record.options;
  const Shapes shapes(record);
  const Checker check("aggregate_update", options.device);
  check.matrix(inputs.x, "x", shapes.x());
  check.matrix(inputs.weight, "weight", shapes.weight());
  check_part(check, "root_weight", "root", inputs.root_weight, options.root, shapes.weight());
  check_part(check, "self_scale", "self_scale", inputs.self_scale, options.self_scale,
             shapes.one());
  check_part(check, "bias", "bias", inputs.bias, options.bias, shapes.bias());
  check.matrix(outputs.y, "y", shapes.y());
  check_part(check, "aggregated", "keep_aggregated", outputs.aggregated, options.keep_aggregated,
             shapes.aggregated());
  check_apart(check, outputs.y, "y", inputs);
  check_apart(check, outputs.aggregated, "aggregated", inputs);
  check.apart(outputs.y, "y", outputs.aggregated, "aggregated");
  if (plans_only()) return;
  const OnDevice current(options.device);
  const Dropout dropout{options.dropout, inputs.random, inputs.clock};
  AggregateUpdateCall call;
  call.x = inputs.x;
  call.weight = inputs.weight;
  call.root_weight = inputs.root_weight;
  call.self_scale = inputs.self_scale;
  call.bias = inputs.bias;
  call.formula = {options.activation, options.slope, options.alpha, dropout.active(),
                  dropout.constants()};
  call.y = outputs.y;
  call.aggregated = outputs.aggregated;
  call.products = products;
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->run(call, stream, use.view());
}

namespace {

/// What the gradients need, and where they go.
void check_gradients(const Checker& check, const Shapes& shapes,
                     const AggregateUpdateOptions& options, const AggregateUpdateGradInputs& inputs,
                     const AggregateUpdateGradOutputs& outputs) {
  check.matrix(inputs.grad_y, "grad_y", shapes.y());
  check.optional_matrix(outputs.grad_bias, "grad_bias", shapes.bias());
  if (!outputs.grad_x.absent()) {
    check.matrix(outputs.grad_x, "grad_x", shapes.x());
    check.matrix(inputs.weight, "weight", shapes.weight());
    check_part(check, "root_weight", "root", inputs.root_weight, options.root, shapes.weight());
    check_part(check, "self_scale", "self_scale", inputs.self_scale, options.self_scale,
               shapes.one());
  }
  if (!outputs.grad_weight.absent()) {
    check.matrix(outputs.grad_weight, "grad_weight", shapes.weight());
    check.matrix(inputs.aggregated, "aggregated", shapes.aggregated());
  }
  if (!outputs.grad_root_weight.absent()) {
    check_part(check, "grad_root_weight", "root", outputs.grad_root_weight, options.root,
               shapes.weight());
    check.matrix(inputs.x, "x", shapes.x());
  }
  const std::pair<const char*, Operand> written[] = {
      {"grad_x", outputs.grad_x},
      {"grad_weight", outputs.grad_weight},
      {"grad_root_weight", outputs.grad_root_weight},
      {"grad_bias", outputs.grad_bias},
  };
  for (const auto& [name, output] : written) {
    check.apart(output, name, inputs.grad_y, "grad_y");
    check.apart(output, name, inputs.weight, "weight");
    check.apart(output, name, inputs.root_weight, "root_weight");
    check.apart(output, name, inputs.aggregated, "aggregated");
    check.apart(output, name, inputs.x, "x");
    for (const auto& [other_name, other] : written) {
      if (other_name != name) check.apart(output, name, other, other_name);
    }
  }
}

}  // namespace

void run_backward(const AggregateUpdatePlan& plan, const AggregateUpdateGradInputs& inputs,
                  const AggregateUpdateGradOutputs& outputs, Stream stream, Workspace workspace,
                  const DenseWorkspace* products) {
  require_backward(plan);
  const auto& record = PlanAccess::record<AggregateUpdateRecord>(plan);
  const AggregateUpdateOptions& options = record.options;
  const Checker check("aggregate_update backward", options.device);
  check_gradients(check, Shapes(record), options, inputs, outputs);
  if (plans_only()) return;
  const OnDevice current(options.device);
  if (!outputs.grad_x.absent()) {
    AggregateUpdateCall call;
    call.x = inputs.grad_y;
    call.weight = inputs.weight;
    call.root_weight = inputs.root_weight;
    call.self_scale = inputs.self_scale;
    call.y = outputs.grad_x;
    call.products = products;
    const WorkspaceUse use(*record.workspace, workspace, stream);
    record.grad_x->run(call, stream, use.view());
  }
  const DenseOps& dense = dense_ops(options.device);
  const bool allows_tf32 = options.precision == Precision::tf32;
  if (!outputs.grad_weight.absent() || !outputs.grad_bias.absent()) {
    dense.linear_backward({inputs.aggregated,
                           {},
                           inputs.grad_y,
                           outputs.grad_weight,
                           outputs.grad_bias,
                           {},
                           allows_tf32},
                          stream, products);
  }
  if (!outputs.grad_root_weight.absent()) {
    dense.linear_backward(
        {inputs.x, {}, inputs.grad_y, outputs.grad_root_weight, {}, {}, allows_tf32}, stream,
        products);
  }
}

}  // namespace tessera::ops
