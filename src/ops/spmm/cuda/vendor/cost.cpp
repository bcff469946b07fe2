// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/vendor/cost.hpp"

#include <algorithm>
#include <array>

#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct CusparseCoefficients {
  double launch_us;
  double least_edge_bytes;  ///< a shorter row takes as long as one of so many bytes
  double gathered_bytes_per_us;
  double row_bytes;  ///< more, for each row of Y
  double moved_bytes_per_us;

  CusparseCoefficients scaled(DeviceRatio ratio) const {
    CusparseCoefficients scaled = *this;
    scaled.gathered_bytes_per_us *= ratio.processors;
    scaled.moved_bytes_per_us *= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<CusparseCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-15", "all three algorithms of CUDA 13.0 on a few graphs, by eye"),
      {.launch_us = 14,
       .least_edge_bytes = 128,
       .gathered_bytes_per_us = 7e6,
       .row_bytes = 64,
       .moved_bytes_per_us = 2e6}}}};

}  // namespace

double predict_cusparse_us(const SpmmProblem& problem, const DeviceTraits& traits) {
  const CusparseCoefficients fit = coefficients_for(coefficients, traits);
  const double rows =
      problem.pass == SpmmPass::forward ? problem.graph.num_rows() : problem.graph.num_cols();
  const auto edges = static_cast<double>(problem.graph.num_edges());
  const double bytes = static_cast<double>(problem.features) *
                       static_cast<double>(bytes_per_element(problem.precision));
  return fit.launch_us + edges * std::max(bytes, fit.least_edge_bytes) / fit.gathered_bytes_per_us +
         rows * (bytes + fit.row_bytes) / fit.moved_bytes_per_us;
}

}  // namespace tessera::ops
