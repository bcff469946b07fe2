// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cost.hpp"
#include "ops/aggregate_update/kernel.hpp"
#include "ops/dense/dense_ops.hpp"
#include "ops/plan/check.hpp"
#include "ops/plan/cost_fits.hpp"
#include "ops/spmm/trial.hpp"
#ifdef TESSERA_WITH_CUDA
#include "ops/aggregate_update/cuda/kernels.hpp"
#endif

namespace tessera::ops {

SpmmProblem sums_problem(const AggregateUpdateProblem& problem, std::int64_t width) {
  const AggregateUpdateOptions& options = problem.options;
  SpmmProblem sums;
  sums.graph = problem.graph;
  sums.reduction = options.reduction;
  sums.precision = options.precision;
  sums.features = width;
  sums.pass = problem.pass;
  sums.edge_values_at_run = false;
  sums.set_place(options.place());
  sums.epilogue.residual = options.self;
  sums.epilogue.residual_scale = options.self_scale;
  return sums;
}

namespace {

/// How spmm may choose its kernel.
PlanOptions stage_options(const AggregateUpdateProblem& problem) {
  PlanOptions options = problem.options;
  options.kernel.clear();
  return options;
}

/// The narrower rows are gathered. Sums that are kept are those of X.
bool sums_first(const AggregateUpdateProblem& problem) {
  return problem.keeps_sums() || problem.gathered() <= problem.written();
}

SpmmProblem staged_sums(const AggregateUpdateProblem& problem) {
  if (sums_first(problem)) return sums_problem(problem, problem.gathered());
  SpmmProblem sums = sums_problem(problem, problem.written());
  // The sums come last: they finish their rows themselves, unless a product is still to be added.
  const AggregateUpdateOptions& options = problem.options;
  if (!problem.is_forward() || options.root) return sums;
  sums.epilogue.bias = options.bias;
  sums.epilogue.activation = options.activation;
  sums.epilogue.slope = options.slope;
  sums.epilogue.alpha = options.alpha;
  sums.epilogue.dropout = options.dropout;
  return sums;
}

/// Sums and products one after another, with a matrix between them.
class StagedAggregateUpdate final : public PreparedAggregateUpdate {
 public:
  StagedAggregateUpdate(const AggregateUpdateProblem& problem, const SpmmProblem& sums,
                        const PlanOptions& options)
      : problem_(problem), sums_(make_choice<SpmmTrial>(spmm_kernels(), sums, options)) {
    const bool first = sums_first(problem);
    const std::int64_t rows = first ? problem.num_targets() : problem.num_sources();
    const std::int64_t width = first ? problem.gathered() : problem.written();
    if (!problem.keeps_sums()) {
      const auto bytes = static_cast<std::int64_t>(bytes_per_element(problem.options.precision));
      between_ = workspace_.add<std::byte>(checked_area(rows, width) * bytes);
    }
    between_shape_ = Operand(nullptr, storage_of(problem.options.precision), problem.options.device,
                             rows, width);
    of_sums_ = workspace_.add_for({sums_.prepared->workspace()});
  }

  void run(const AggregateUpdateCall& call, Stream stream,
           const WorkspaceView& workspace) const override {
    Operand between = call.aggregated;
    if (!problem_.keeps_sums()) {
      between = between_shape_;
      between.data = between_.in(workspace);
    }
    const DenseOps& dense = dense_ops(problem_.options.device);
    if (sums_first(problem_)) {
      add_up(call, call.x, between, false, stream, workspace);
      multiply(call, between, call.weight, 0, call.bias, call.y, stream);
      if (problem_.options.root) multiply(call, call.x, call.root_weight, 1, {}, call.y, stream);
      if (!call.formula.does_nothing()) {
        dense.run(ActivationCall{call.y, {}, call.formula, call.y}, stream);
      }
      return;
    }
    multiply(call, call.x, call.weight, 0, {}, between, stream);
    add_up(call, between, call.y, !problem_.options.root, stream, workspace);
    if (!problem_.options.root) return;
    multiply(call, call.x, call.root_weight, 1, {}, call.y, stream);
    if (!call.bias.absent() || !call.formula.does_nothing()) {
      dense.run(ActivationCall{call.y, call.bias, call.formula, call.y}, stream);
    }
  }

  std::int64_t own_bytes() const noexcept override { return sums_.prepared->own_bytes(); }
  std::vector<std::pair<const char*, Decision>> stages() const override {
    return {{"sums", sums_.decision}};
  }

 private:
  void add_up(const AggregateUpdateCall& call, const ConstOperand& x, const Operand& y,
              bool finishes, Stream stream, const WorkspaceView& workspace) const {
    SpmmCall sums;
    sums.x = x;
    sums.y = y;
    if (problem_.options.self) sums.residual = x;
    sums.residual_scale = call.self_scale;
    if (finishes) sums.bias = call.bias;
    if (finishes) sums.formula = call.formula;
    sums_.prepared->run(sums, stream, part_for(of_sums_, workspace));
  }

  void multiply(const AggregateUpdateCall& call, const ConstOperand& left,
                const ConstOperand& weight, double beta, const ConstOperand& bias, const Operand& y,
                Stream stream) const {
    const bool allows_tf32 = problem_.options.precision == Precision::tf32;
    dense_ops(problem_.options.device)
        .run(GemmCall{Transpose::no, problem_.is_forward() ? Transpose::yes : Transpose::no, 1,
                      left, weight, beta, y, problem_.gathered(), allows_tf32, bias},
             stream, call.products);
  }

  AggregateUpdateProblem problem_;
  Choice<SpmmKernel> sums_;
  WorkspacePart<std::byte> between_;
  Operand between_shape_;  ///< without memory
  WorkspacePart<std::byte> of_sums_;
};

std::string why_not_cpu(const AggregateUpdateProblem& problem) {
  return why_not_cpu_precision(problem.options.precision);
}

std::string why_not_cuda(const AggregateUpdateProblem& problem) {
  return problem.options.precision == Precision::fp64 ? "fp64 exists on the CPU only" : "";
}

double predicted_us(const AggregateUpdateProblem& problem) {
  const double sums_us = fastest_us(spmm_kernels(), staged_sums(problem), stage_options(problem));
  const double products_us = predicted_products_us(problem);
  if (problem.options.device.kind == DeviceKind::cpu) return sums_us + products_us;
  return counted_us(cost_fits::aggregate_update_staged, 1, {sums_us, products_us});
}

/// Sums by the fastest kernel of spmm, then a product of dense matrices.
AggregateUpdateKernel staged_aggregate_update(DeviceKind device) {
  const bool on_cpu = device == DeviceKind::cpu;
  // Where a plan has to be strict, or exact in what is not finite, so are the sums it chooses.
  return {
      {.name = on_cpu ? "aggregate_update/cpu/staged" : "aggregate_update/cuda/staged",
       .description = "sums by the fastest kernel of spmm and a dense product, one after another",
       .op = "aggregate_update",
       .device = device},
      on_cpu ? why_not_cpu : why_not_cuda,
      predicted_us,
      [](const AggregateUpdateProblem& problem) -> std::unique_ptr<const PreparedAggregateUpdate> {
        return std::make_unique<StagedAggregateUpdate>(problem, staged_sums(problem),
                                                       stage_options(problem));
      }};
}

}  // namespace

std::unique_ptr<const PreparedAggregateUpdate> prepare_occasional_update(
    const AggregateUpdateProblem& problem) {
  SpmmProblem sums = staged_sums(problem);
  sums.occasional = true;
  PlanOptions options = stage_options(problem);
  options.tune = Tune::predicted;
  options.store = nullptr;
  options.stored_only = false;
  return std::make_unique<StagedAggregateUpdate>(problem, sums, options);
}

std::span<const AggregateUpdateKernel> aggregate_update_kernels() {
  static const std::vector<AggregateUpdateKernel> table = [] {
    std::vector<AggregateUpdateKernel> kernels = {staged_aggregate_update(DeviceKind::cpu)};
#ifdef TESSERA_WITH_CUDA
    kernels.push_back(staged_aggregate_update(DeviceKind::cuda));
    append_cuda_fused_aggregate_update(kernels);
    append_cuda_window_aggregate_update(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
