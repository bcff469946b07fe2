// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// The kernel of gather-apply-scatter on a device.
const SpmmKernel& scatter_kernel(DeviceKind device);

/// What an epoch of a plan on edges in no order should take, in either form.
struct FormCosts {
  double scatter_us = 0;
  double reduce_us = 0;      ///< without the conversion
  double conversion_us = 0;  ///< once: rows of the edges, and a plan on them
};

/// `problem` is of the forward pass.
FormCosts predict_forms(const SpmmProblem& problem, bool backward);

/// Which form a plan on edges in no order has, and why.
struct FormChoice {
  bool scatters = false;
  Explanation why;
};

/// A default plan never scatters. Where sums may depend on timing, the cost model decides by degree
/// and width, and by how often the rows would be used that have to be made first.
FormChoice choose_form(const SpmmProblem& problem, const SpmmOptions& options);

}  // namespace tessera::ops
