// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/attention_kept.hpp"

#include "ops/attention/kernel.hpp"
#include "ops/attention/trial.hpp"
#include "ops/plan/check.hpp"
#include "ops/plan/expected.hpp"
#include "ops/plan/plan_record.hpp"
#include "ops/plan/planning_scope.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/expected.hpp"

namespace tessera::ops {

const char* to_string(AttentionForm form) noexcept {
  switch (form) {
    case AttentionForm::gat: return "gat";
    case AttentionForm::gatv2: return "gatv2";
    case AttentionForm::dot: return "dot";
    case AttentionForm::cosine: return "cosine";
  }
  return "unknown";
}

namespace {

/// One kernel has both passes.
using AttentionRecord = KernelRecord<AttentionOptions, PreparedAttention>;

std::string no_part(AttentionForm form, const char* part) {
  return fmt::format("form {} has no {}", to_string(form), part);
}

void check_cosine(const Graph& graph, const AttentionOptions& options) {
  if (options.heads != 1) {
    refuse(fmt::format("attention by cosines has one head, not {}", options.heads), "heads");
  }
  if (graph.num_rows() != graph.num_cols()) {
    refuse(fmt::format("attention by cosines needs a square graph, not {} x {}", graph.num_rows(),
                       graph.num_cols()),
           "graph");
  }
}

void check_options(const Graph& graph, const AttentionOptions& options) {
  check_plan_options(options, options.precision);
  check_enum("form", options.form, AttentionForm::cosine);
  check_features(options.features);
  if (options.heads < 1) refuse(fmt::format("{} heads", options.heads), "heads");
  if (options.form == AttentionForm::cosine) check_cosine(graph, options);
  if (options.features % options.heads != 0) {
    refuse(fmt::format("{} features are no multiple of {} heads", options.features, options.heads),
           "features");
  }
  if (options.edge_terms && options.form == AttentionForm::cosine) {
    refuse(no_part(options.form, "terms of edges"), "edge_terms");
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    refuse(fmt::format("dropout of {} is not in [0, 1]", options.dropout), "dropout");
  }
  if (!std::isfinite(options.negative_slope)) {
    refuse(fmt::format("slope of {} is not finite", options.negative_slope), "negative_slope");
  }
}

Decision backward_of(const AttentionRecord& record) {
  const char* const other = record.forward->backward_kernel();
  if (other == nullptr) return by_same_kernel(record);
  return Decision(
      {fmt::format("{}: {} has no backward pass of its own", other, record.kernel->name), {}});
}

/// The shapes of one plan.
struct Shapes {
  explicit Shapes(const AttentionRecord& record)
      : options(record.options),
        rows(record.graph.num_rows()),
        cols(record.graph.num_cols()),
        edges(record.graph.num_edges()),
        score_cols(options.form == AttentionForm::gat ? options.heads : options.features) {}

  ElementType type() const { return storage_of(options.precision); }
  Expected target() const { return {type(), rows, score_cols}; }
  Expected source() const { return {type(), cols, score_cols}; }
  Expected value() const { return {type(), cols, options.features}; }
  Expected vector() const { return {type(), 1, is_cosine() ? 1 : options.features}; }
  bool is_cosine() const { return options.form == AttentionForm::cosine; }
  bool has_vector() const { return is_cosine() || options.form == AttentionForm::gatv2; }
  Expected output() const { return {type(), rows, options.features}; }
  Expected log_sum() const {
    const bool wide = type() == ElementType::fp64;
    return {wide ? ElementType::fp64 : ElementType::fp32, rows, options.heads};
  }
  Expected kept(std::int64_t numbers) const { return {log_sum().type, 1, numbers}; }
  Expected inverse_lengths() const { return {log_sum().type, 1, cols}; }
  Expected edge_term() const {
    return {type(), edges, options.form == AttentionForm::gatv2 ? options.features : options.heads};
  }

  const AttentionOptions& options;
  std::int64_t rows, cols, edges, score_cols;
};

/// The scores of cosines are made of values alone.
void check_no_scores(const Shapes& shapes, const ConstOperand& target, const ConstOperand& source) {
  if (!target.absent()) refuse(no_part(shapes.options.form, "target"), "target");
  if (!source.absent()) refuse(no_part(shapes.options.form, "source"), "source");
}

void check_inputs(const Checker& check, const Shapes& shapes, const AttentionInputs& inputs) {
  if (shapes.is_cosine()) {
    check_no_scores(shapes, inputs.target, inputs.source);
  } else {
    check.matrix(inputs.target, "target", shapes.target());
    check.matrix(inputs.source, "source", shapes.source());
  }
  check.matrix(inputs.value, "value", shapes.value());
  if (shapes.has_vector()) check.matrix(inputs.vector, "vector", shapes.vector());
  if (shapes.options.edge_terms) {
    check.matrix(inputs.edge_term, "edge_term", shapes.edge_term());
  } else if (!inputs.edge_term.absent()) {
    refuse("a term for each edge, but the plan has none", "edge_term");
  }
}

void check_apart_from_inputs(const Checker& check, const char* name, const Operand& output,
                             const AttentionInputs& inputs) {
  check.apart(output, name, inputs.target, "target");
  check.apart(output, name, inputs.source, "source");
  check.apart(output, name, inputs.value, "value");
  check.apart(output, name, inputs.vector, "vector");
  check.apart(output, name, inputs.edge_term, "edge_term");
}

/// The gradients that are present, with their names and shapes.
void check_gradients(const Checker& check, const Shapes& shapes,
                     const AttentionGradOutputs& gradients) {
  if (shapes.is_cosine()) check_no_scores(shapes, gradients.target, gradients.source);
  check.optional_matrix(gradients.target, "gradient of target", shapes.target());
  check.optional_matrix(gradients.source, "gradient of source", shapes.source());
  check.optional_matrix(gradients.value, "gradient of value", shapes.value());
  check.optional_matrix(gradients.vector, "gradient of vector", shapes.vector());
  if (!gradients.vector.absent() && !shapes.has_vector()) {
    refuse(no_part(shapes.options.form, "vector"), "vector");
  }
  if (gradients.scale != nullptr &&
      (shapes.options.form != AttentionForm::dot || shapes.options.edge_terms)) {
    refuse(shapes.options.edge_terms ? "no gradient of a scale beside terms of edges"
                                     : no_part(shapes.options.form, "scale"),
           "scale");
  }
  check.optional_matrix(gradients.edge_term, "gradient of edge_term", shapes.edge_term());
  if (!gradients.edge_term.absent() && !shapes.options.edge_terms) {
    refuse("the gradient of a term for each edge, but the plan has none", "edge_term");
  }
}

std::span<const AttentionKernel> kernels_for(const AttentionOptions& options) {
  return options.edge_terms ? staged_attention_kernels() : attention_kernels();
}

}  // namespace

AttentionPlan plan_attention(const Graph& graph, const AttentionOptions& options) {
  check_options(graph, options);
  auto record = std::make_shared<AttentionRecord>();
  record->graph = graph;
  record->options = options;
  const bool short_windows =
      (options.form == AttentionForm::dot || options.form == AttentionForm::gatv2) &&
      bytes_per_element(options.precision) == 2;
  const PlanningScope planning(graph, options, options.backward, short_windows);
  auto choice =
      make_choice<AttentionTrial>(kernels_for(options), AttentionProblem{graph, options}, options);
  record->forward = record->take(choice);
  record->has_backward = options.backward;
  for (auto& [name, decision] : record->forward->stages()) {
    record->decision.add_child(name, std::move(decision));
  }
  if (options.backward) record->decision.add_child("backward", backward_of(*record));
  const WorkspaceNeed need = record->forward->workspace();
  return PlanAccess::finish(std::move(record), need);
}

Explanation expected(const Graph& graph, const AttentionOptions& options,
                     const DeviceProfile& gpu) {
  const ExpectedOn there(gpu);
  const auto on_gpu = on_a_gpu(options);
  check_options(graph, on_gpu);
  const PlanningScope planning(graph, on_gpu, on_gpu.backward, true);
  return there.choice(kernels_for(on_gpu), AttentionProblem{graph, on_gpu}, on_gpu);
}

std::int64_t kept_numbers(const AttentionPlan& plan) {
  const auto& record = PlanAccess::record<AttentionRecord>(plan);
  return record.has_backward ? record.forward->kept_numbers() : 0;
}

void run(const AttentionPlan& plan, const AttentionInputs& inputs, const AttentionOutputs& outputs,
         Stream stream, Workspace workspace) {
  run_keeping(plan, inputs, outputs, {}, stream, workspace);
}

void run_keeping(const AttentionPlan& plan, const AttentionInputs& inputs,
                 const AttentionOutputs& outputs, Operand kept, Stream stream,
                 Workspace workspace) {
  const auto& record = PlanAccess::record<AttentionRecord>(plan);
  const Shapes shapes(record);
  const Checker check("attention", record.options.device);
  check_inputs(check, shapes, inputs);
  check.matrix(outputs.output, "output", shapes.output());
  check_apart_from_inputs(check, "output", outputs.output, inputs);
  check.optional_matrix(outputs.inverse_lengths, "inverse_lengths", shapes.inverse_lengths());
  check_apart_from_inputs(check, "inverse_lengths", outputs.inverse_lengths, inputs);
  if (!outputs.log_sum.absent()) {
    check.matrix(outputs.log_sum, "log_sum", shapes.log_sum());
    check_apart_from_inputs(check, "log_sum", outputs.log_sum, inputs);
    check.apart(outputs.log_sum, "log_sum", outputs.output, "output");
  }
  check.optional_matrix(kept, "kept", shapes.kept(kept_numbers(plan)));
  check_apart_from_inputs(check, "kept", kept, inputs);
  check.apart(kept, "kept", outputs.output, "output");
  check.apart(kept, "kept", outputs.log_sum, "log_sum");
  if (plans_only()) return;
  const OnDevice current(record.options.device);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  // A row of no numbers is none, wherever it lies.
  auto* const numbers = static_cast<float*>(kept.cols > 0 ? kept.data : nullptr);
  record.forward->run_keeping(inputs, outputs, numbers, stream, use.view());
}

void run_backward(const AttentionPlan& plan, const AttentionInputs& inputs, ConstOperand output,
                  ConstOperand log_sum, ConstOperand grad_output,
                  const AttentionGradOutputs& gradients, Stream stream, Workspace workspace) {
  run_backward_kept(plan, inputs, output, log_sum, {}, grad_output, gradients, stream, workspace);
}

void run_backward_kept(const AttentionPlan& plan, const AttentionInputs& inputs,
                       ConstOperand output, ConstOperand log_sum, ConstOperand kept,
                       ConstOperand grad_output, const AttentionGradOutputs& gradients,
                       Stream stream, Workspace workspace) {
  require_backward(plan);
  const auto& record = PlanAccess::record<AttentionRecord>(plan);
  const Shapes shapes(record);
  const Checker check("attention backward", record.options.device);
  check_inputs(check, shapes, inputs);
  check.matrix(output, "output", shapes.output());
  check.matrix(log_sum, "log_sum", shapes.log_sum());
  check.optional_matrix(inputs.inverse_lengths, "inverse_lengths", shapes.inverse_lengths());
  check.optional_matrix(kept, "kept", shapes.kept(kept_numbers(plan)));
  check.matrix(grad_output, "gradient of output", shapes.output());
  check_gradients(check, shapes, gradients);
  for (const Operand& gradient : {gradients.target, gradients.source, gradients.value,
                                  gradients.vector, gradients.edge_term}) {
    check_apart_from_inputs(check, "gradient", gradient, inputs);
    check.apart(gradient, "gradient", output, "output");
    check.apart(gradient, "gradient", log_sum, "log_sum");
    check.apart(gradient, "gradient", kept, "kept");
    check.apart(gradient, "gradient", grad_output, "gradient of output");
  }
  if (plans_only()) return;
  const OnDevice current(record.options.device);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  const auto* const numbers = static_cast<const float*>(kept.cols > 0 ? kept.data : nullptr);
  record.forward->run_backward_kept(inputs, output, log_sum, numbers, grad_output, gradients,
                                    stream, use.view());
}

void attention_weights(const AttentionPlan& plan, const AttentionInputs& inputs,
                       ConstOperand log_sum, Operand weights, Stream stream, Workspace workspace) {
  const auto& record = PlanAccess::record<AttentionRecord>(plan);
  const Shapes shapes(record);
  const Checker check("attention_weights", record.options.device);
  check_inputs(check, shapes, inputs);
  check.matrix(log_sum, "log_sum", shapes.log_sum());
  check.matrix(weights, "weights", {shapes.type(), record.graph.num_edges(), record.options.heads});
  check_apart_from_inputs(check, "weights", weights, inputs);
  check.apart(weights, "weights", log_sum, "log_sum");
  if (plans_only()) return;
  const OnDevice current(record.options.device);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->weights(inputs, log_sum, weights, stream, use.view());
}

}  // namespace tessera::ops
