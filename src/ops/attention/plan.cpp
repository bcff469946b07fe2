// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/attention.hpp"

#include "ops/attention/kernel.hpp"
#include "ops/attention/trial.hpp"
#include "ops/check.hpp"

namespace tessera::ops {

const char* to_string(AttentionForm form) noexcept {
  switch (form) {
    case AttentionForm::gat: return "gat";
    case AttentionForm::gatv2: return "gatv2";
    case AttentionForm::dot: return "dot";
  }
  return "unknown";
}

struct AttentionPlan::State {
  AttentionProblem problem;
  const AttentionKernel* kernel = nullptr;
  Explanation explanation;
  std::unique_ptr<const PreparedAttention> prepared;
  std::optional<PlanWorkspace> workspace;  ///< the last member: see there
};

const Graph& AttentionPlan::graph() const noexcept { return state_->problem.graph; }
const AttentionOptions& AttentionPlan::options() const noexcept { return state_->problem.options; }
const KernelInfo& AttentionPlan::kernel() const noexcept { return state_->kernel->info; }
std::int64_t AttentionPlan::workspace_bytes() const noexcept {
  return state_->workspace->bytes() + state_->prepared->own_bytes();
}
Explanation AttentionPlan::explain() const { return state_->explanation; }

namespace {

[[noreturn]] void reject(const std::string& problem, const char* where) {
  throw Error(ErrorCode::invalid_argument, problem, where);
}

void check_options(const AttentionOptions& options) {
  check_features(options.features);
  if (options.heads < 1) reject(fmt::format("{} heads", options.heads), "heads");
  if (options.features % options.heads != 0) {
    reject(fmt::format("{} features are no multiple of {} heads", options.features, options.heads),
           "features");
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    reject(fmt::format("dropout of {} is not in [0, 1]", options.dropout), "dropout");
  }
  if (!std::isfinite(options.negative_slope)) {
    reject(fmt::format("slope of {} is not finite", options.negative_slope), "negative_slope");
  }
}

/// The shapes of one problem.
struct Shapes {
  explicit Shapes(const AttentionProblem& problem)
      : options(problem.options),
        rows(problem.graph.num_rows()),
        cols(problem.graph.num_cols()),
        score_cols(options.form == AttentionForm::gat ? options.heads : options.features) {}

  ElementType type() const { return storage_of(options.precision); }
  Expected target() const { return {type(), rows, score_cols}; }
  Expected source() const { return {type(), cols, score_cols}; }
  Expected value() const { return {type(), cols, options.features}; }
  Expected vector() const { return {type(), 1, options.features}; }
  Expected output() const { return {type(), rows, options.features}; }
  Expected log_sum() const {
    const bool wide = type() == ElementType::fp64;
    return {wide ? ElementType::fp64 : ElementType::fp32, rows, options.heads};
  }

  const AttentionOptions& options;
  std::int64_t rows, cols, score_cols;
};

void check_inputs(const Checker& check, const Shapes& shapes, const AttentionInputs& inputs) {
  check.matrix(inputs.target, "target", shapes.target());
  check.matrix(inputs.source, "source", shapes.source());
  check.matrix(inputs.value, "value", shapes.value());
  if (shapes.options.form == AttentionForm::gatv2) {
    check.matrix(inputs.vector, "vector", shapes.vector());
  }
}

void check_apart_from_inputs(const Checker& check, const char* name, const Operand& output,
                             const AttentionInputs& inputs) {
  check.apart(output, name, inputs.target, "target");
  check.apart(output, name, inputs.source, "source");
  check.apart(output, name, inputs.value, "value");
  check.apart(output, name, inputs.vector, "vector");
}

/// The gradients that are present, with their names and shapes.
void check_gradients(const Checker& check, const Shapes& shapes,
                     const AttentionGradOutputs& gradients) {
  check.optional_matrix(gradients.target, "gradient of target", shapes.target());
  check.optional_matrix(gradients.source, "gradient of source", shapes.source());
  check.optional_matrix(gradients.value, "gradient of value", shapes.value());
  check.optional_matrix(gradients.vector, "gradient of vector", shapes.vector());
  if (!gradients.vector.absent() && shapes.options.form != AttentionForm::gatv2) {
    reject(fmt::format("form {} has no vector", to_string(shapes.options.form)), "vector");
  }
  if (gradients.scale != nullptr && shapes.options.form != AttentionForm::dot) {
    reject(fmt::format("form {} has no scale", to_string(shapes.options.form)), "scale");
  }
}

}  // namespace

AttentionPlan plan_attention(const Graph& graph, const AttentionOptions& options) {
  check_options(options);
  auto state = std::make_shared<AttentionPlan::State>();
  state->problem = {graph, options};
  auto choice = make_choice<AttentionTrial>(attention_kernels(), state->problem, options);
  state->kernel = choice.kernel;
  state->explanation = std::move(choice.explanation);
  state->prepared = std::move(choice.prepared);
  state->explanation.summary += state->prepared->stages();
  state->workspace.emplace(state->prepared->workspace(), options.place(), options.own_workspace);
  synchronise(options.device, options.stream);
  return AttentionPlan(std::move(state));
}

void run(const AttentionPlan& plan, const AttentionInputs& inputs, const AttentionOutputs& outputs,
         Stream stream, Workspace workspace) {
  const Shapes shapes(plan.state().problem);
  const Checker check("attention", plan.options().device);
  check_inputs(check, shapes, inputs);
  check.matrix(outputs.output, "output", shapes.output());
  check_apart_from_inputs(check, "output", outputs.output, inputs);
  if (!outputs.log_sum.absent()) {
    check.matrix(outputs.log_sum, "log_sum", shapes.log_sum());
    check_apart_from_inputs(check, "log_sum", outputs.log_sum, inputs);
    check.apart(outputs.log_sum, "log_sum", outputs.output, "output");
  }
  const OnDevice current(plan.options().device);
  const WorkspaceUse use(*plan.state().workspace, workspace, stream);
  plan.state().prepared->run(inputs, outputs, stream, use.view());
}

void run_backward(const AttentionPlan& plan, const AttentionInputs& inputs, ConstOperand output,
                  ConstOperand log_sum, ConstOperand grad_output,
                  const AttentionGradOutputs& gradients, Stream stream, Workspace workspace) {
  if (!plan.options().backward) {
    throw Error(ErrorCode::invalid_argument, "the plan has no backward pass", "attention",
                "plan with backward");
  }
  const Shapes shapes(plan.state().problem);
  const Checker check("attention backward", plan.options().device);
  check_inputs(check, shapes, inputs);
  check.matrix(output, "output", shapes.output());
  check.matrix(log_sum, "log_sum", shapes.log_sum());
  check.matrix(grad_output, "gradient of output", shapes.output());
  check_gradients(check, shapes, gradients);
  for (const Operand& gradient :
       {gradients.target, gradients.source, gradients.value, gradients.vector}) {
    check_apart_from_inputs(check, "gradient", gradient, inputs);
    check.apart(gradient, "gradient", output, "output");
    check.apart(gradient, "gradient", log_sum, "log_sum");
    check.apart(gradient, "gradient", grad_output, "gradient of output");
  }
  const OnDevice current(plan.options().device);
  const WorkspaceUse use(*plan.state().workspace, workspace, stream);
  plan.state().prepared->run_backward(inputs, output, log_sum, grad_output, gradients, stream,
                                      use.view());
}

void attention_weights(const AttentionPlan& plan, const AttentionInputs& inputs,
                       ConstOperand log_sum, Operand weights, Stream stream, Workspace workspace) {
  const AttentionProblem& problem = plan.state().problem;
  const Shapes shapes(problem);
  const Checker check("attention_weights", plan.options().device);
  check_inputs(check, shapes, inputs);
  check.matrix(log_sum, "log_sum", shapes.log_sum());
  check.matrix(weights, "weights",
               {shapes.type(), problem.graph.num_edges(), problem.options.heads});
  check_apart_from_inputs(check, "weights", weights, inputs);
  check.apart(weights, "weights", log_sum, "log_sum");
  const OnDevice current(plan.options().device);
  const WorkspaceUse use(*plan.state().workspace, workspace, stream);
  plan.state().prepared->weights(inputs, log_sum, weights, stream, use.view());
}

}  // namespace tessera::ops
