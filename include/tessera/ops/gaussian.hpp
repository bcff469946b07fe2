// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/core/random.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/step_clock.hpp"

/// Rows that are drawn from normal distributions, as a variational encoder wants them (Kingma and
/// Welling 2014; PyG's VGAE). A row of x says first the means and then the logarithms of the
/// deviations, each as many as a row of y has numbers. A logarithm above 10 counts as 10.
namespace tessera::ops {

inline constexpr double most_log_deviation = 10;

/// Which numbers are drawn: those of a seed, a layer and a step; any device draws the same.
struct GaussianDraw {
  Random random = Random(0);
  const StepClock* clock = nullptr;  ///< if there is one, its step takes the place of `random`'s
};

/// y = mean + noise * exp(log deviation).
void gaussian(ConstOperand x, const GaussianDraw& draw, Operand y, Device device = {},
              Stream stream = {});

/// y = mean.
void gaussian_mean(ConstOperand x, Operand y, Device device = {}, Stream stream = {});

/// The gradient of what follows `gaussian`, of which `grad_y` is known, and of `weight` times the
/// divergence of the rows from the standard normal distribution, the mean over the rows of
/// -1/2 sum(1 + 2 log deviation - mean^2 - deviation^2). Its value is added to `value`, in memory
/// of the device. On a GPU a workspace is needed.
void gaussian_backward(ConstOperand x, const GaussianDraw& draw, ConstOperand grad_y, double weight,
                       Operand grad_x, double* value, Device device = {}, Stream stream = {},
                       const DenseWorkspace* workspace = nullptr);

}  // namespace tessera::ops
