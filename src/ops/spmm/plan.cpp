// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/spmm.hpp"

#include <fmt/format.h>

#include "ops/plan/check.hpp"
#include "ops/plan/expected.hpp"
#include "ops/plan/planning_scope.hpp"
#include "ops/spmm/record.hpp"
#include "ops/spmm/row_order.hpp"
#include "ops/spmm/trial.hpp"
#include "tessera/core/error.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/detail/ops/predicted_spmm.hpp"
#include "tessera/ops/expected.hpp"

namespace tessera::ops {

const char* to_string(Reduction reduction) noexcept {
  switch (reduction) {
    case Reduction::sum: return "sum";
    case Reduction::mean: return "mean";
    case Reduction::max: return "max";
    case Reduction::min: return "min";
  }
  return "unknown";
}

Reduction parse_reduction(const std::string& text) {
  for (const Reduction reduction :
       {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min}) {
    if (text == to_string(reduction)) return reduction;
  }
  refuse("unknown reduction '" + text + "'", "", "use sum, mean, max or min");
}

void check_values_were_planned(const SpmmOptions& options) {
  if (options.edge_values_at_run) return;
  refuse("the plan takes no edge values", "edge_values", "plan with edge_values_at_run");
}

namespace {

void check_heads(const Graph& graph, const SpmmOptions& options) {
  if (options.heads == 1) return;
  const char* const where = "heads";
  if (options.heads < 1 || options.features % options.heads != 0) {
    refuse(fmt::format("{} features do not divide into {} heads", options.features, options.heads),
           where, "use a number that divides the features");
  }
  if (options.reduction != Reduction::sum) {
    refuse(fmt::format("a {} has one value per edge", to_string(options.reduction)), where,
           "use a sum");
  }
  if (!options.edge_values_at_run) {
    refuse("values for each head come with runs", where, "plan with edge_values_at_run");
  }
  if (graph.has_values() || graph.has_row_scale() || graph.has_col_scale()) {
    refuse("a graph with weights of its own", where, "multiply the values by them");
  }
  if (options.epilogue != SpmmEpilogue{} || options.backward_epilogue != SpmmEpilogue{}) {
    refuse("sums with values for each head are stored as they are", where,
           "plan without an epilogue");
  }
}

void check_backward_epilogue(const SpmmOptions& options) {
  const SpmmEpilogue& epilogue = options.backward_epilogue;
  const char* const where = "backward_epilogue";
  SpmmEpilogue residual_alone;
  residual_alone.residual = epilogue.residual;
  residual_alone.residual_scale = epilogue.residual && epilogue.residual_scale;
  if (epilogue != residual_alone) {
    refuse("more than a residual and its scale", where, "apply the rest to dX yourself");
  }
  const bool adds = options.reduction == Reduction::sum || options.reduction == Reduction::mean;
  if (epilogue.residual && !adds) {
    refuse("the gradient of a max or min takes no residual", where, "add it to dX yourself");
  }
}

}  // namespace

void check_epilogue(const SpmmOptions& options) {
  check_backward_epilogue(options);
  const SpmmEpilogue& epilogue = options.epilogue;
  const char* const where = "epilogue";
  check_activation(epilogue, where);
  if (epilogue.residual_scale && !epilogue.residual) {
    refuse("a scale of no residual", where, "plan with a residual, or without its scale");
  }
  const Precision output = epilogue.output.value_or(options.precision);
  if (output == options.precision) return;
  const bool narrow = bytes_per_element(options.precision) == 2;
  const bool to_narrow = bytes_per_element(output) == 2;
  const bool from_full =
      options.precision == Precision::fp32 || options.precision == Precision::tf32;
  if (narrow ? output == Precision::fp32 : from_full && to_narrow) return;
  refuse(
      fmt::format("{} features cannot become {}", to_string(options.precision), to_string(output)),
      where, "use fp32 for 16-bit features, or 16 bits for fp32");
}

SpmmProblem spmm_problem(const Graph& graph, const SpmmOptions& options, SpmmPass pass) {
  SpmmProblem problem;
  problem.graph = graph;
  problem.reduction = options.reduction;
  problem.precision = options.precision;
  problem.features = options.features;
  problem.pass = pass;
  problem.set_place(options.place());
  problem.edge_values_at_run = options.edge_values_at_run;
  problem.heads = options.heads;
  problem.edge_values_expected = options.edge_values_expected || options.heads > 1;
  problem.own_weights_at_run = options.heads == 1;
  problem.epochs = options.epochs;
  problem.epilogue = pass == SpmmPass::forward ? options.epilogue : options.backward_epilogue;
  return problem;
}

void check_options(const SpmmOptions& options) {
  check_plan_options(options, options.precision);
  check_enum("reduction", options.reduction, Reduction::min);
  check_features(options.features);
  if (options.edge_values_expected && !options.edge_values_at_run) {
    refuse("edge values are expected but not planned for", "edge_values_expected",
           "plan with edge_values_at_run");
  }
}

namespace {

void check_on(const Graph& graph, const SpmmOptions& options) {
  check_options(options);
  check_heads(graph, options);
  check_epilogue(options);
  if (has_winners(options.reduction) && graph.has_repeated_edges()) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} over repeated edges has no single winner", to_string(options.reduction)),
        "reduction", "build the graph with duplicates 'first'");
  }
}

}  // namespace

std::shared_ptr<SpmmRecord> planned_on(const Graph& graph, const SpmmOptions& options) {
  check_on(graph, options);
  auto record = std::make_shared<SpmmRecord>();
  record->graph = graph;
  record->num_rows = graph.num_rows();
  record->num_cols = graph.num_cols();
  record->num_edges = graph.num_edges();
  record->options = options;
  SpmmProblem problem = spmm_problem(graph, options, SpmmPass::forward);
  const bool is_16_bit = bytes_per_element(options.precision) == 2;
  const PlanningScope planning(graph, options, options.backward, is_16_bit);
  check_weights_fit(problem);
  problem.reorders = should_reorder(problem, options);
  auto choice = make_choice<SpmmTrial>(spmm_kernels(), problem, options);
  record->forward = record->take(choice);
  if (problem.reorders) {
    record->decision.add_note(note_on_order(problem, record->decision.explain(), options));
  }
  if (options.backward) plan_gradients(*record);
  return record;
}

SpmmPlan finished(std::shared_ptr<SpmmRecord> record) {
  WorkspaceNeed need = record->forward->workspace();
  if (record->grad_x != nullptr) need.cover(record->grad_x->workspace());
  return PlanAccess::finish(std::move(record), need);
}

SpmmPlan plan_spmm(const Graph& graph, const SpmmOptions& options) {
  return finished(planned_on(graph, options));
}

Explanation expected(const Graph& graph, const SpmmOptions& options, const DeviceProfile& gpu) {
  const ExpectedOn there(gpu);
  auto on_gpu = on_a_gpu(options);
  check_on(graph, on_gpu);
  const PlanningScope planning(graph, on_gpu, on_gpu.backward, true);
  const auto pass = [&](SpmmPass which) {
    return there.choice(spmm_kernels(), spmm_problem(graph, on_gpu, which), on_gpu);
  };
  Explanation explanation = pass(SpmmPass::forward);
  if (!options.backward) return explanation;
  std::swap(on_gpu.kernel, on_gpu.backward_kernel);
  add_child(explanation, "backward", pass(SpmmPass::backward));
  return explanation;
}

double predicted_spmm_us(const Graph& graph, const SpmmOptions& options) {
  const PlanningScope planning(graph, options, false);
  return fastest_us(spmm_kernels(), spmm_problem(graph, options, SpmmPass::forward), options);
}

void check_residual(const Checker& check, const SpmmEpilogue& epilogue,
                    const ConstOperand& residual, const ConstOperand& scale,
                    const Expected& expected, const Operand& y) {
  check.part(residual, "residual", epilogue.residual, expected, "epilogue.residual");
  check.part(scale, "residual_scale", epilogue.residual_scale, {expected.type, 1, 1},
             "epilogue.residual_scale");
  check.apart(y, "y", {{residual, "residual"}, {scale, "residual_scale"}});
}

void run(const SpmmPlan& plan, const SpmmInputs& inputs, const SpmmOutputs& outputs, Stream stream,
         Workspace workspace) {
  const auto& record = PlanAccess::record<SpmmRecord>(plan);
  const SpmmOptions& options = record.options;
  const ElementType type = storage_of(options.precision);
  const SpmmEpilogue& epilogue = options.epilogue;
  const ElementType output_type = storage_of(epilogue.output.value_or(options.precision));
  const Checker check("spmm", options.device);
  check.matrix(inputs.x, "x", {type, record.num_cols, options.features});
  check.matrix(outputs.y, "y", {output_type, record.num_rows, options.features});
  check.part(inputs.bias, "bias", epilogue.bias, {type, 1, options.features}, "epilogue.bias");
  check.apart(outputs.y, "y", {{inputs.x, "x"}, {inputs.bias, "bias"}});
  check_residual(check, epilogue, inputs.residual, inputs.residual_scale,
                 {type, record.num_rows, options.features}, outputs.y);
  if (!inputs.edge_values.absent() || (options.heads > 1 && record.num_edges > 0)) {
    check_values_were_planned(options);
    check.matrix(inputs.edge_values, "edge_values", {type, record.num_edges, options.heads});
    check.apart(outputs.y, "y", inputs.edge_values, "edge_values");
  }
  const Operand winners = outputs.winners;
  if (!winners.absent()) {
    if (!has_winners(options.reduction)) {
      refuse(std::string("a ") + to_string(options.reduction) + " has no winners", "winners",
             "ask for winners with max or min only");
    }
    check.matrix(winners, "winners", {ElementType::int32, record.num_rows, options.features});
  }
  if (plans_only()) return;
  const OnDevice current(options.device);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->run({inputs.x,
                       inputs.edge_values,
                       {},
                       outputs.y,
                       outputs.winners,
                       inputs.bias,
                       inputs.residual,
                       inputs.residual_scale,
                       formula_of(epilogue, inputs.random, inputs.clock)},
                      stream, use.view());
}

}  // namespace tessera::ops
