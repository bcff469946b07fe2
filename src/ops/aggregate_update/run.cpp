// SPDX-License-Identifier: Apache-2.0
#include "core/on_device.hpp"
#include "ops/aggregate_update/kernel.hpp"
#include "ops/dense/dense_ops.hpp"
#include "ops/plan/check.hpp"
#include "tessera/detail/ops/plan_only.hpp"

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
  check.part(inputs.root_weight, "root_weight", options.root, shapes.weight(), "root");
  check.part(inputs.self_scale, "self_scale", options.self_scale, shapes.one(), "self_scale");
  check.part(inputs.bias, "bias", options.bias, shapes.bias(), "bias");
  check.matrix(outputs.y, "y", shapes.y());
  check.part(outputs.aggregated, "aggregated", options.keep_aggregated, shapes.aggregated(),
             "keep_aggregated");
  for (const auto& [output, name] :
       {Named{outputs.y, "y"}, Named{outputs.aggregated, "aggregated"}}) {
    check.apart(output, name,
                {{inputs.x, "x"},
                 {inputs.weight, "weight"},
                 {inputs.root_weight, "root_weight"},
                 {inputs.self_scale, "self_scale"},
                 {inputs.bias, "bias"}});
  }
  check.apart(outputs.y, "y", outputs.aggregated, "aggregated");
  if (plans_only()) return;
  const OnDevice current(options.device);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->run(
      {inputs.x, inputs.weight, inputs.root_weight, inputs.self_scale, inputs.bias,
       formula_of(options, inputs.random, inputs.clock), outputs.y, outputs.aggregated, products},
      stream, use.view());
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
    check.part(inputs.root_weight, "root_weight", options.root, shapes.weight(), "root");
    check.part(inputs.self_scale, "self_scale", options.self_scale, shapes.one(), "self_scale");
  }
  if (!outputs.grad_weight.absent()) {
    check.matrix(outputs.grad_weight, "grad_weight", shapes.weight());
    check.matrix(inputs.aggregated, "aggregated", shapes.aggregated());
  }
  if (!outputs.grad_root_weight.absent()) {
    check.part(outputs.grad_root_weight, "grad_root_weight", options.root, shapes.weight(), "root");
    check.matrix(inputs.x, "x", shapes.x());
  }
  const Named written[] = {{outputs.grad_x, "grad_x"},
                           {outputs.grad_weight, "grad_weight"},
                           {outputs.grad_root_weight, "grad_root_weight"},
                           {outputs.grad_bias, "grad_bias"}};
  for (const auto& [output, name] : written) {
    check.apart(output, name,
                {{inputs.grad_y, "grad_y"},
                 {inputs.weight, "weight"},
                 {inputs.root_weight, "root_weight"},
                 {inputs.aggregated, "aggregated"},
                 {inputs.x, "x"}});
    for (const auto& [other, other_name] : written) {
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
    const WorkspaceUse use(*record.workspace, workspace, stream);
    record.backward->run({.x = inputs.grad_y,
                          .weight = inputs.weight,
                          .root_weight = inputs.root_weight,
                          .self_scale = inputs.self_scale,
                          .y = outputs.grad_x,
                          .products = products},
                         stream, use.view());
  }
  const DenseOps& dense = dense_ops(options.device);
  const bool allows_tf32 = options.precision == Precision::tf32;
  if (!outputs.grad_weight.absent() || !outputs.grad_bias.absent()) {
    dense.run(LinearGradCall{inputs.aggregated,
                             {},
                             inputs.grad_y,
                             outputs.grad_weight,
                             outputs.grad_bias,
                             {},
                             allows_tf32},
              stream, products);
  }
  if (!outputs.grad_root_weight.absent()) {
    dense.run(
        LinearGradCall{inputs.x, {}, inputs.grad_y, outputs.grad_root_weight, {}, {}, allows_tf32},
        stream, products);
  }
}

}  // namespace tessera::ops
