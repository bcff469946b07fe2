// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/ops/loss.hpp"

#include "ops/dense_check.hpp"
#include "ops/loss/chosen_rows.hpp"
#include "ops/row_ranges.hpp"

namespace tessera::ops {
namespace {

constexpr Checker check("binary_cross_entropy");

void check_targets(MatrixView<const float> targets, const Buffer<std::int32_t>& times) {
  for_row_ranges(targets.rows, targets.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (times[i] == 0) continue;
      for (std::int64_t j = 0; j < targets.cols; ++j) {
        const float target = targets(i, j);
        if (target != 0 && target != 1) {
          check.fail(fmt::format("targets[{}][{}] is {}, expected 0 or 1", i, j, target));
        }
      }
    }
  });
}

template <class T>
double run(MatrixView<const T> logits, MatrixView<const float> targets,
           const Buffer<std::int32_t>& times, double count, MatrixView<T> gradient) {
  const bool wants_gradient = gradient.data != nullptr;
  const auto add_rows = [&](std::int64_t begin, std::int64_t end, double* sum) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* const row = wants_gradient ? gradient.row(i) : nullptr;
      if (times[i] == 0) {
        if (wants_gradient) std::fill_n(row, gradient.cols, T{0});
        continue;
      }
      double row_sum = 0;
      const auto share = static_cast<T>(times[i] / count);
      for (std::int64_t j = 0; j < logits.cols; ++j) {
        const T z = logits(i, j);
        const auto target = static_cast<T>(targets(i, j));
        // Written with exp(-|z|), which cannot overflow.
        const T power = std::exp(-std::abs(z));
        row_sum += static_cast<double>(std::max(z, T{0}) - z * target + std::log1p(power));
        if (!wants_gradient) continue;
        const T sigmoid = (z < 0 ? power : T{1}) / (T{1} + power);
        row[j] = (sigmoid - target) * share;
      }
      *sum += times[i] * row_sum;
    }
  };
  return sum_over_rows(logits.rows, 1, add_rows)[0] / count;
}

}  // namespace

double binary_cross_entropy(ConstOperand logits, MatrixView<const float> targets,
                            std::span<const std::int64_t> rows, Operand grad_logits, Device device,
                            Stream) {
  require_available(device);
  check.floating(logits, "logits");
  check.matrix(targets, "targets", Precision::fp32, logits.rows, logits.cols);
  check.optional_matrix(grad_logits, "grad_logits", logits.precision, logits.rows, logits.cols);
  check.apart_or_same(grad_logits, "grad_logits", logits, "logits");
  check.apart(grad_logits, "grad_logits", targets, "targets");
  const Buffer<std::int32_t> times = multiplicities(check, rows, logits.rows);
  check_targets(targets, times);
  const double count =
      std::max(1.0, static_cast<double>(rows.size()) * static_cast<double>(logits.cols));
  return visit_floating(logits.precision, [&](auto element) {
    using T = decltype(element);
    return run(logits.as<T>(), targets, times, count, grad_logits.as<T>());
  });
}

}  // namespace tessera::ops
