// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/gaussian.hpp"

#include <algorithm>
#include <cmath>

#include "ops/dense/row_ranges.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/gaussian/kernels.hpp"
#include "ops/plan/check.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/elementwise.hpp"

namespace tessera::ops {
namespace {

void check_halves(const Checker& check, ConstOperand x, ConstOperand y, const char* name) {
  check.floating(x, "x");
  check.that(x.cols % 2 == 0, "x has an odd number of columns, expected means and deviations");
  check.matrix(y, name, {x.type, x.rows, x.cols / 2});
}

/// Where there is a clock, with its step.
Random present(const GaussianDraw& draw) {
  if (draw.clock == nullptr) return draw.random;
  return draw.random.at_step(static_cast<std::uint32_t>(draw.clock->step));
}

double clamped(double log_deviation) { return std::min(log_deviation, most_log_deviation); }

void draw_on_cpu(ConstOperand x, const Random& random, Operand y) {
  visit_stored(x.type, [&]<class T>() {
    const MatrixView<const T> from = x.as<T>();
    const MatrixView<T> to = y.as<T>();
    for_each_row(to.rows, to.cols, [&](std::int64_t i) {
      for (std::int64_t j = 0; j < to.cols; ++j) {
        const double deviation = std::exp(clamped(static_cast<double>(from(i, to.cols + j))));
        const double noise = random.normal(static_cast<std::uint64_t>(i * to.cols + j));
        to(i, j) = rounded_to<T>(static_cast<double>(from(i, j)) + noise * deviation);
      }
    });
  });
}

void differentiate_on_cpu(const GaussianGradient& gradient, const Random& random) {
  visit_stored(gradient.x.type, [&]<class T>() {
    const MatrixView<const T> x = gradient.x.as<T>();
    const MatrixView<const T> grad_y = gradient.grad_y.as<T>();
    const MatrixView<T> grad_x = gradient.grad_x.as<T>();
    const std::int64_t width = grad_y.cols;
    const auto sum = sum_each_row(x.rows, 1, [&](std::int64_t i, double* divergence) {
      for (std::int64_t j = 0; j < width; ++j) {
        const auto mean = static_cast<double>(x(i, j));
        const auto given = static_cast<double>(x(i, width + j));
        const double logarithm = clamped(given), deviation = std::exp(logarithm);
        const double noise = random.normal(static_cast<std::uint64_t>(i * width + j));
        const auto arriving = static_cast<double>(grad_y(i, j));
        grad_x(i, j) = rounded_to<T>(arriving + gradient.weight * mean);
        const double of_logarithm =
            arriving * noise * deviation + gradient.weight * (deviation * deviation - 1);
        grad_x(i, width + j) = rounded_to<T>(given > most_log_deviation ? 0 : of_logarithm);
        *divergence -= 0.5 * (1 + 2 * logarithm - mean * mean - deviation * deviation);
      }
    });
    *gradient.value += gradient.weight * sum[0];
  });
}

}  // namespace

void gaussian(ConstOperand x, const GaussianDraw& draw, Operand y, Device device, Stream stream) {
  require_available(device);
  const Checker check("gaussian", device);
  check_halves(check, x, y, "y");
  check.apart(y, "y", x, "x");
  if (plans_only() || y.rows == 0 || y.cols == 0) return;
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) {
    return gaussian_on_gpu(x, constants_of(draw), y, device, stream);
  }
#endif
  static_cast<void>(stream);
  draw_on_cpu(x, present(draw), y);
}

void gaussian_mean(ConstOperand x, Operand y, Device device, Stream stream) {
  const Checker check("gaussian_mean", device);
  check_halves(check, x, y, "y");
  ConstOperand means = x;
  means.cols = y.cols;
  copy(means, y, device, stream);
}

void gaussian_backward(ConstOperand x, const GaussianDraw& draw, ConstOperand grad_y, double weight,
                       Operand grad_x, double* value, Device device, Stream stream,
                       const DenseWorkspace* workspace) {
  require_available(device);
  const Checker check("gaussian_backward", device);
  check_halves(check, x, grad_y, "grad_y");
  check.matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.apart(grad_x, "grad_x", {{x, "x"}, {grad_y, "grad_y"}});
  check.that(value != nullptr, "the value of the divergence has no place");
  if (plans_only() || x.rows == 0 || x.cols == 0) return;
  const GaussianGradient gradient{x, grad_y, grad_x, weight / static_cast<double>(x.rows), value};
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) {
    return gaussian_backward_on_gpu(gradient, constants_of(draw), device, stream, workspace);
  }
#endif
  static_cast<void>(stream);
  static_cast<void>(workspace);
  differentiate_on_cpu(gradient, present(draw));
}

}  // namespace tessera::ops
