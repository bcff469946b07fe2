// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/widened.hpp"
#include "ops/edge_softmax/kernel.hpp"
#include "ops/plan/cost_fits.hpp"
#include "ops/plan/tuning.hpp"
#include "ops/sddmm/kernel.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {
namespace {

struct StagedCoefficients {
  double copy_launch_us;
  double copied_bytes_per_us;
  double dropped_bytes_per_us;
  double stage_us;       ///< per stage, beside what its op takes
  double one_head;       ///< times what ops take alone: what one leaves in caches is not its own
  double several_heads;  ///< the same for more than one head

  void scale(DeviceRatio ratio) {
    copied_bytes_per_us *= ratio.memory;
    dropped_bytes_per_us *= ratio.memory;
  }
};

constexpr Fitted<StagedCoefficients> coefficients = {
    fitted_on_h200("2026-11-16", "copies and dropout of a few sizes, stages of 22 cases"),
    {.copy_launch_us = 3,
     .copied_bytes_per_us = 1.3e6,
     .dropped_bytes_per_us = 3.5e6,
     .stage_us = 5,
     .one_head = 1.2,
     .several_heads = 2.1}};

/// Numbers of all edges and heads.
double edge_numbers(const AttentionProblem& problem) {
  return static_cast<double>(problem.graph.num_edges()) *
         static_cast<double>(problem.options.heads);
}

/// How the stages may choose their kernels.
PlanOptions stage_options(const AttentionProblem& problem) {
  PlanOptions options = problem.options;
  options.kernel.clear();
  options.allow_nondeterministic = false;
  return options;
}

/// Those of targets and sources, and of output gradients and values.
SddmmProblem dot_products(const AttentionProblem& problem) {
  SddmmProblem dots;
  dots.graph = problem.graph.with_values({}).with_scales({}, {});
  dots.precision = problem.options.precision;
  dots.features = problem.options.features;
  dots.heads = problem.options.heads;
  dots.set_place(problem.options.place());
  return dots;
}

/// Over the sources of a target, or over the targets of a source.
SpmmProblem weighted_sums(const AttentionProblem& problem, SpmmPass pass) {
  SpmmProblem sums;
  sums.graph = problem.graph.with_values({}).with_scales({}, {});
  sums.precision = problem.options.precision;
  sums.features = problem.options.features;
  sums.pass = pass;
  sums.heads = problem.options.heads;
  sums.set_place(problem.options.place());
  sums.edge_values_expected = true;
  sums.own_weights_at_run = false;
  return sums;
}

EdgeSoftmaxProblem softmax_of_rows(const AttentionProblem& problem) {
  EdgeSoftmaxProblem softmax{problem.graph, {}};
  static_cast<PlanOptions&>(softmax.options) = stage_options(problem);
  softmax.options.precision = problem.options.precision;
  softmax.options.heads = problem.options.heads;
  return softmax;
}

double predict_fp32_us(const AttentionProblem& problem) {
  const StagedCoefficients fit = coefficients.on(device_traits(problem.options.device));
  const PlanOptions options = stage_options(problem);
  const double dots = fastest_us(sddmm_kernels(), dot_products(problem), options);
  const double softmax = fastest_us(edge_softmax_kernels(), softmax_of_rows(problem), options);
  const auto sums = [&](SpmmPass pass) {
    return fastest_us(spmm_kernels(), weighted_sums(problem, pass), options);
  };
  const auto stages_us = [&](int num_stages, double ops_us) {
    return num_stages * fit.stage_us +
           (problem.options.heads == 1 ? fit.one_head : fit.several_heads) * ops_us;
  };
  const double dropping = problem.options.dropout > 0
                              ? 2 * edge_numbers(problem) * sizeof(float) / fit.dropped_bytes_per_us
                              : 0;
  const double by_rows = sums(SpmmPass::forward);
  const double forward = dots + softmax + dropping + by_rows;
  if (!problem.options.backward) return stages_us(3, forward);
  // Gradients of weights take about what a softmax does.
  return stages_us(
      9, forward + 2 * dots + softmax + dropping + by_rows + 2 * sums(SpmmPass::backward));
}

}  // namespace

double predict_widening_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  constexpr double bytes_of_element = 2 + 4;
  constexpr double copies = 4;
  const StagedCoefficients fit = coefficients.on(traits);
  const PassSizes sizes = sizes_of(problem);
  return copies * fit.copy_launch_us +
         2 * sizes.vertices * sizes.features * bytes_of_element / fit.copied_bytes_per_us;
}

std::string why_not_staged(const AttentionProblem& problem) {
  constexpr double most_bytes = 16e9;  // of the two arrays of edges x heads
  if (problem.options.form != AttentionForm::dot) return "dot products only";
  if (problem.options.edge_terms) return "no terms of edges";
  if (problem.options.precision == Precision::fp64) return "fp64 exists on the CPU only";
  const double bytes = 2 * edge_numbers(problem) * sizeof(float);
  if (bytes > most_bytes) return fmt::format("edges would take {:.1f} GB", bytes / 1e9);
  return {};
}

double predict_staged_us(const AttentionProblem& problem) {
  const bool copies = bytes_per_element(problem.options.precision) == 2;
  return fitted_us(
      cost_fits::attention_staged,
      predict_fp32_us(in_fp32(problem)) +
          (copies ? predict_widening_us(problem, device_traits(problem.options.device)) : 0));
}

}  // namespace tessera::ops
