// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/rows/cut.hpp"
#include "ops/spmm/cuda/rows/policy.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// The rows that a problem adds up: those of A, or its columns in the backward pass.
struct ProblemRows {
  explicit ProblemRows(const SpmmProblem& problem);

  RowLengths lengths() const { return {offsets.span(), *degrees}; }

  SharedArray<EdgeOffset> offsets;
  std::shared_ptr<const DegreeStatistics> degrees;
};

/// Whether each lane takes one feature of rows that begin on no boundary: those of max and min
/// always, others where a policy has as many lanes as they have features.
bool takes_elements(const SpmmProblem& problem, const RowsPolicy& policy);

/// Lanes that one row of X keeps busy.
std::int64_t lanes_wanted(const SpmmProblem& problem, const RowsPolicy& policy);

/// Whether the lanes of a policy are as many as rows of X need, or take them in parts.
bool lanes_fit(const SpmmProblem& problem, const RowsPolicy& policy);

/// How a policy shares the rows of a problem.
RowsCut rows_cut(const SpmmProblem& problem, const RowsPolicy& policy, const DeviceTraits& traits);
RowsCut rows_cut(const SpmmProblem& problem, const RowLengths& rows, const RowsPolicy& policy,
                 const DeviceTraits& traits);

/// What rows cost the whole GPU among many others. The longer of waiting and gathering counts.
struct RowsUnitCost {
  double row_us = 0;   ///< the share of a row in the start and end of a warp
  double step_us = 0;  ///< a team's step
  double edge_us = 0;  ///< gathering a row of X
  int step = 4;        ///< edges of a team's step
  double power = 1;

  double operator()(double rows, double edges) const;
  RowsUnitCost times(double factor) const {
    return {factor * row_us, factor * step_us, factor * edge_us, step, power};
  }
};
RowsUnitCost rows_unit_cost(const SpmmProblem& problem, const RowsPolicy& policy,
                            const DeviceTraits& traits);

/// Whether a launch of all rows first copies X to rows that fill units of 16 bytes, where its own
/// do not.
bool copies_rows(const SpmmProblem& problem, const RowLengths& rows, const RowsPolicy& policy,
                 const DeviceTraits& traits);

/// How a kernel takes the parts of rows, and what it should take.
struct PartsOfRows {
  RowsPolicy taken;  ///< its policy, or what that does with parts beside each other
  double us = 0;
};
/// Whichever should be faster.
PartsOfRows chosen_parts(const SpmmProblem& problem, const RowLengths& rows,
                         const RowsPolicy& policy, const DeviceTraits& traits);

/// Rows of one launch that has no others; what those take, launch and all, whose matrix has X of as
/// many rows as the problem's.
double predicted_rows_us(const SpmmProblem& problem, const RowLengths& rows,
                         const RowsPolicy& policy, const DeviceTraits& traits);

/// What the row kernel of a policy should take, from the degrees of the rows.
double predicted_rows_us(const SpmmProblem& problem, const RowsPolicy& policy,
                         const DeviceTraits& traits);

}  // namespace tessera::ops
