// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/spmm.hpp"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "ops/check.hpp"
#include "ops/spmm/kernel.hpp"
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

void check_values_were_planned(bool edge_values_at_run) {
  if (edge_values_at_run) return;
  throw Error(ErrorCode::invalid_argument, "the plan takes no edge values", "edge_values",
              "plan with edge_values_at_run");
}

bool expects_edge_values(const SpmmOptions& options) {
  if (options.edge_values_expected && !options.edge_values_at_run) {
    throw Error(ErrorCode::invalid_argument, "edge values are expected but not planned for",
                "edge_values_expected", "plan with edge_values_at_run");
  }
  return options.edge_values_expected;
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

struct SpmmPlan::State {
  SpmmProblem problem;
  SpmmOptions options;
  const SpmmKernel* kernel = nullptr;
  Explanation explanation;
  std::unique_ptr<const PreparedSpmm> prepared;
  std::optional<PlanWorkspace> workspace;  ///< the last member: see there
};

const Graph& SpmmPlan::graph() const noexcept { return state_->problem.graph; }
const SpmmOptions& SpmmPlan::options() const noexcept { return state_->options; }
const KernelInfo& SpmmPlan::kernel() const noexcept { return state_->kernel->info; }
Explanation SpmmPlan::explain() const { return state_->explanation; }
std::int64_t SpmmPlan::workspace_bytes() const noexcept {
  return state_->workspace->bytes() + state_->prepared->own_bytes();
}

SpmmPlan plan_spmm(const Graph& graph, const SpmmOptions& options) {
  check_features(options.features);
  auto state = std::make_shared<SpmmPlan::State>();
  state->problem = {graph, options.reduction, options.precision, options.features};
  state->problem.set_place(options.place());
  state->problem.edge_values_at_run = options.edge_values_at_run;
  state->problem.edge_values_expected = expects_edge_values(options);
  check_weights_fit(state->problem);
  check_epilogue(options);
  state->problem.epilogue = options.epilogue;
  state->options = options;
  auto choice = make_choice<SpmmTrial>(spmm_kernels(), state->problem, options);
  state->kernel = choice.kernel;
  state->explanation = std::move(choice.explanation);
  state->prepared = std::move(choice.prepared);
  state->workspace.emplace(state->prepared->workspace(), options.place(), options.own_workspace);
  synchronise(options.device, options.stream);
  return SpmmPlan(std::move(state));
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
  const Graph& graph = plan.graph();
  const SpmmOptions& options = plan.options();
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
    check_values_were_planned(options.edge_values_at_run);
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
  const OnDevice current(options.device);
  const Dropout dropout{epilogue.dropout, inputs.random, inputs.clock};
  const ActivationFormula formula = {epilogue.activation, epilogue.slope, epilogue.alpha,
                                     dropout.active(), dropout.constants()};
  const WorkspaceUse use(*plan.state().workspace, workspace, stream);
  plan.state().prepared->run({inputs.x,
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
