// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/forms.hpp"

#include <fmt/format.h>

#include "ops/plan/registry.hpp"
#include "ops/spmm/cpu.hpp"
#include "ops/spmm/cuda/scatter/cost.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

/// On one core, by timings of cora, pubmed and generated graphs.
constexpr double ns_per_sorted_edge = 12;

FormCosts predict_on_cpu(const SpmmProblem& problem, double passes) {
  const auto edges = static_cast<double>(problem.edges->num_edges());
  FormCosts costs;
  costs.scatter_us = passes * predict_spmm_by_edges_us(problem);
  costs.reduce_us = passes * predict_spmm_by_rows_us(*problem.edges, problem.features);
  costs.conversion_us = passes * edges * ns_per_sorted_edge * 1e-3;
  return costs;
}

/// Why edges must become rows, whatever that costs; empty where they need not.
std::string why_by_rows(const SpmmKernel& scatter, const SpmmProblem& problem,
                        const SpmmOptions& options) {
  const std::string why_not = scatter.why_not(problem);
  if (!why_not.empty()) return why_not;
  if (!options.kernel.empty()) return "another kernel was asked for";
  if (!options.backward_kernel.empty()) return "another kernel was asked for backwards";
  if (!options.allow_nondeterministic) return "scattered sums depend on timing";
  if (options.strict && !scatter.info.strict) return "not as exact as sums in fp32";
  return {};
}

}  // namespace

const SpmmKernel& scatter_kernel(DeviceKind device) {
  const std::string name = device == DeviceKind::cuda ? "spmm/cuda/scatter" : "spmm/cpu/scatter";
  for (const SpmmKernel& kernel : spmm_kernels()) {
    if (kernel.info.name == name) return kernel;
  }
  throw Error(ErrorCode::internal, "no kernel is called " + name, "spmm");
}

FormCosts predict_forms(const SpmmProblem& problem, bool backward) {
  const double passes = backward ? 2 : 1;
  FormCosts costs = problem.device.kind == DeviceKind::cpu
                        ? predict_on_cpu(problem, passes)
                        : predict_forms_on(device_traits(problem.device), problem, passes);
  if (problem.edges->knows_graph()) costs.conversion_us = 0;
  return costs;
}

FormChoice choose_form(const SpmmProblem& problem, const SpmmOptions& options) {
  const SpmmKernel& scatter = scatter_kernel(options.device.kind);
  const std::string& name = scatter.info.name;
  FormChoice choice;
  // A pattern that other kernels match as well asks for none in particular.
  if (options.kernel == name) {
    std::string why_not = scatter.why_not(problem);
    if (why_not.empty() && options.strict && !scatter.info.strict) {
      why_not = "not as exact as sums in fp32";
    }
    if (!why_not.empty()) {
      throw Error(ErrorCode::unsupported, fmt::format("{} cannot do it: {}", name, why_not),
                  "kernel", "name another kernel, or none");
    }
    if (options.backward && !options.backward_kernel.empty() && options.backward_kernel != name) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} forward and {} backward", name, options.backward_kernel),
                  "backward_kernel", "name the same kernel, or none");
    }
    choice.scatters = true;
    choice.why = {fmt::format("{}: asked for", name), {{name, "chosen"}}};
    return choice;
  }
  const std::string by_rows = why_by_rows(scatter, problem, options);
  if (!by_rows.empty()) {
    choice.why = {fmt::format("rows are made of the edges first: {}", by_rows),
                  {{name, by_rows}, {"rows", "chosen"}}};
    return choice;
  }
  const FormCosts costs = predict_forms(problem, options.backward);
  const double per_epoch =
      costs.reduce_us + costs.conversion_us / static_cast<double>(options.epochs);
  choice.scatters = costs.scatter_us < per_epoch;
  choice.why.summary = fmt::format(
      "{}: {:.1f} us per epoch, beside {:.1f} by rows and {:.1f} to make them for {} epochs",
      choice.scatters ? "edges as they are" : "rows are made of the edges first", costs.scatter_us,
      costs.reduce_us, costs.conversion_us, options.epochs);
  choice.why.candidates = {{name, choice.scatters ? "chosen" : "slower", costs.scatter_us},
                           {"rows", choice.scatters ? "slower" : "chosen", per_epoch}};
  return choice;
}

}  // namespace tessera::ops
