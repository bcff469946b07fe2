// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/spmm.hpp"

#include <cmath>

#include <fmt/format.h>

#include "ops/check.hpp"
#include "ops/check_options.hpp"
#include "ops/plan_only.hpp"
#include "ops/planning_scope.hpp"
#include "ops/spmm/record.hpp"
#include "ops/spmm/trial.hpp"
#include "ops/spmm/weights_fit.hpp"
#include "tessera/core/error.hpp"

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
  throw Error(ErrorCode::invalid_argument, "unknown reduction '" + text + "'", "",
              "use sum, mean, max or min");
}

void check_values_were_planned(const SpmmOptions& options) {
  if (options.edge_values_at_run) return;
  throw Error(ErrorCode::invalid_argument, "the plan takes no edge values", "edge_values",
              "plan with edge_values_at_run");
}

void check_epilogue(const SpmmOptions& options) {
  const SpmmEpilogue& epilogue = options.epilogue;
  const auto refuse = [](const std::string& what, const char* how) {
    throw Error(ErrorCode::invalid_argument, what, "epilogue", how);
  };
  if (!(epilogue.dropout >= 0 && epilogue.dropout <= 1)) {
    refuse(fmt::format("dropout is {}", epilogue.dropout), "use a share from 0 to 1");
  }
  if (!std::isfinite(epilogue.slope) || !std::isfinite(epilogue.alpha)) {
    refuse(fmt::format("slope is {}, alpha is {}", epilogue.slope, epilogue.alpha),
           "use finite numbers");
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
      "use fp32 for 16-bit features, or 16 bits for fp32");
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
  problem.edge_values_expected = options.edge_values_expected;
  if (pass == SpmmPass::forward) problem.epilogue = options.epilogue;
  return problem;
}

SpmmPlan plan_spmm(const Graph& graph, const SpmmOptions& options) {
  check_plan_options(options, options.precision);
  check_enum("reduction", options.reduction, Reduction::min);
  check_features(options.features);
  if (options.edge_values_expected && !options.edge_values_at_run) {
    throw Error(ErrorCode::invalid_argument, "edge values are expected but not planned for",
                "edge_values_expected", "plan with edge_values_at_run");
  }
  const bool picks = options.reduction == Reduction::max || options.reduction == Reduction::min;
  if (picks && graph.has_repeated_edges()) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} over repeated edges has no single winner", to_string(options.reduction)),
        "reduction", "build the graph with duplicates 'first'");
  }
  auto record = std::make_shared<SpmmRecord>();
  record->graph = graph;
  record->options = options;
  const SpmmProblem problem = spmm_problem(graph, options, SpmmPass::forward);
  check_epilogue(options);
  const PlanningScope planning(graph, options, options.backward);
  check_weights_fit(problem);
  auto choice = make_choice<SpmmTrial>(spmm_kernels(), problem, options);
  record->kernel = &choice.kernel->info;
  record->decision = std::move(choice.decision);
  record->forward = std::move(choice.prepared);
  WorkspaceNeed need = record->forward->workspace();
  if (options.backward) {
    plan_gradients(*record);
    need.cover(record->grad_x->workspace());
  }
  record->workspace.emplace(need, options.place(), options.own_workspace);
  return PlanAccess::make(std::shared_ptr<const SpmmRecord>(std::move(record)));
}

namespace {

/// An operand of the epilogue: there if and only if the plan has it.
void check_part(const Checker& check, const char* name, const ConstOperand& operand, bool planned,
                const Expected& expected, const SpmmOutputs& outputs) {
  if (!planned) {
    if (operand.absent()) return;
    throw Error(ErrorCode::invalid_argument, fmt::format("the plan takes no {}", name), name,
                fmt::format("plan with epilogue.{}", name));
  }
  check.matrix(operand, name, expected);
  check.apart(outputs.y, "y", operand, name);
}

}  // namespace

void run(const SpmmPlan& plan, const SpmmInputs& inputs, const SpmmOutputs& outputs, Stream stream,
         Workspace workspace) {
  const auto& record = PlanAccess::record<SpmmRecord>(plan);
  const Graph& graph = record.graph;
  const SpmmOptions& options = record.options;
  const ElementType type = storage_of(options.precision);
  const SpmmEpilogue& epilogue = options.epilogue;
  const ElementType output_type = storage_of(epilogue.output.value_or(options.precision));
  const Checker check("spmm", options.device);
  check.matrix(inputs.x, "x", {type, graph.num_cols(), options.features});
  check.matrix(outputs.y, "y", {output_type, graph.num_rows(), options.features});
  check.apart(outputs.y, "y", inputs.x, "x");
  check_part(check, "bias", inputs.bias, epilogue.bias, {type, 1, options.features}, outputs);
  check_part(check, "residual", inputs.residual, epilogue.residual,
             {type, graph.num_rows(), options.features}, outputs);
  if (!inputs.edge_values.absent()) {
    check_values_were_planned(options);
    check.matrix(inputs.edge_values, "edge_values", {type, graph.num_edges(), 1});
    check.apart(outputs.y, "y", inputs.edge_values, "edge_values");
  }
  const Operand winners = outputs.winners;
  if (!winners.absent()) {
    if (options.reduction != Reduction::max && options.reduction != Reduction::min) {
      throw Error(ErrorCode::invalid_argument,
                  std::string("a ") + to_string(options.reduction) + " has no winners", "winners",
                  "ask for winners with max or min only");
    }
    check.matrix(winners, "winners", {ElementType::int32, graph.num_rows(), options.features});
  }
  if (plans_only()) return;
  const OnDevice current(options.device);
  const Dropout dropout{epilogue.dropout, inputs.random, inputs.clock};
  const ActivationFormula formula = {epilogue.activation, epilogue.slope, epilogue.alpha,
                                     dropout.active(), dropout.constants()};
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->run({inputs.x,
                       inputs.edge_values,
                       {},
                       outputs.y,
                       outputs.winners,
                       inputs.bias,
                       inputs.residual,
                       formula},
                      stream, use.view());
}

}  // namespace tessera::ops
