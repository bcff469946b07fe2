// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/loss/targets.hpp"
#include "ops/row_ranges.hpp"
#include "ops/wide_rows.hpp"

namespace tessera::ops {
namespace {

/// -log softmax(logits)[label]; leaves the softmax in `probabilities`, which may be the memory of
/// `logits`, or null.
template <class T>
double row_loss(const T* logits, std::int64_t classes, std::int64_t label, T* probabilities) {
  const auto wanted = static_cast<double>(logits[label]);
  T largest = logits[0];
  for (std::int64_t j = 1; j < classes; ++j) largest = std::max(largest, logits[j]);
  double sum = 0;
  for (std::int64_t j = 0; j < classes; ++j) {
    const T power = std::exp(logits[j] - largest);
    sum += static_cast<double>(power);
    if (probabilities != nullptr) probabilities[j] = power;
  }
  if (probabilities != nullptr) {
    const auto factor = static_cast<T>(1 / sum);
    for (std::int64_t j = 0; j < classes; ++j) probabilities[j] *= factor;
  }
  return std::log(sum) + static_cast<double>(largest) - wanted;
}

template <class T>
double cross_entropy(MatrixView<const T> logits, const LossTargets::State& chosen,
                     MatrixView<T> gradient) {
  using W = Wide<T>;
  const Buffer<std::int32_t>& times = chosen.times;
  const bool wants_gradient = gradient.data != nullptr;
  const auto add_rows = [&](std::int64_t begin, std::int64_t end, double* sum) {
    for_wide_rows<T>(begin, end, logits.cols, [&](std::int64_t first, std::int64_t last) {
      const ReadRows<T> read(logits, first, last);
      const WrittenRows<T> written(gradient, first, last);
      for (std::int64_t i = first; i < last; ++i) {
        W* const row = wants_gradient ? written.rows().row(i - first) : nullptr;
        if (times[i] == 0) {
          if (wants_gradient) std::fill_n(row, gradient.cols, W{0});
          continue;
        }
        const std::int64_t label = chosen.labels[i];
        *sum += times[i] * row_loss(read.rows().row(i - first), logits.cols, label, row);
        if (!wants_gradient) continue;
        row[label] -= W{1};
        const auto share = static_cast<W>(times[i] / chosen.count);
        for (std::int64_t j = 0; j < gradient.cols; ++j) row[j] *= share;
      }
    });
  };
  return sum_over_rows(logits.rows, 1, add_rows)[0] / chosen.count;
}

template <class T>
double binary_cross_entropy(MatrixView<const T> logits, const LossTargets::State& chosen,
                            MatrixView<T> gradient) {
  using W = Wide<T>;
  const Buffer<std::int32_t>& times = chosen.times;
  const MatrixView<const float> targets(chosen.targets.data(), chosen.rows, chosen.cols);
  const bool wants_gradient = gradient.data != nullptr;
  const auto add_rows = [&](std::int64_t begin, std::int64_t end, double* sum) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* const row = wants_gradient ? gradient.row(i) : nullptr;
      if (times[i] == 0) {
        if (wants_gradient) std::fill_n(row, gradient.cols, T(W{0}));
        continue;
      }
      double row_sum = 0;
      const auto share = static_cast<W>(times[i] / chosen.count);
      for (std::int64_t j = 0; j < logits.cols; ++j) {
        const W z = logits(i, j);
        const auto target = static_cast<W>(targets(i, j));
        // Written with exp(-|z|), which cannot overflow.
        const W power = std::exp(-std::abs(z));
        row_sum += static_cast<double>(std::max(z, W{0}) - z * target + std::log1p(power));
        if (!wants_gradient) continue;
        const W sigmoid = (z < 0 ? power : W{1}) / (W{1} + power);
        row[j] = T((sigmoid - target) * share);
      }
      *sum += times[i] * row_sum;
    }
  };
  return sum_over_rows(logits.rows, 1, add_rows)[0] / chosen.count;
}

}  // namespace

void CpuDenseOps::loss(ConstOperand logits, const LossTargets::State& targets, Operand grad_logits,
                       double* value, Stream stream, const DenseWorkspace* workspace,
                       Operand grad_sums) const {
  *value = visit_floating(logits.type, [&](auto element) {
    using T = decltype(element);
    return targets.is_binary ? binary_cross_entropy(logits.as<T>(), targets, grad_logits.as<T>())
                             : cross_entropy(logits.as<T>(), targets, grad_logits.as<T>());
  });
  if (grad_sums.absent()) return;
  activate_backward(grad_logits, {}, {}, grad_logits, {}, grad_sums, stream, workspace, {});
}

}  // namespace tessera::ops
