// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/spmm/forms.hpp"

namespace tessera::ops {

/// What adding every edge to its target should take, of edges in no order or of a graph.
double predict_scatter_us(const SpmmProblem& problem, const DeviceTraits& traits);

/// Both forms on edges in no order.
FormCosts predict_forms_on(const DeviceTraits& traits, const SpmmProblem& problem, double passes);

}  // namespace tessera::ops
