// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/loss/number_cost.hpp"
#include "ops/loss/targets.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// -log softmax(logits), where it is wanted; leaves the softmax in `probabilities`, which may be
/// the memory of `logits`, or null.
template <class T>
double row_loss(const T* logits, std::int64_t classes, std::int64_t label,
                const WantedShares<double>& shares, T* probabilities) {
  T largest = logits[0];
  for (std::int64_t j = 1; j < classes; ++j) largest = std::max(largest, logits[j]);
  const auto below = [&](std::int64_t j) {
    return static_cast<double>(largest) - static_cast<double>(logits[j]);
  };
  double missed = below(label);
  if (shares.of_other > 0) {
    double all = 0;
    for (std::int64_t j = 0; j < classes; ++j) all += below(j);
    missed = shares.of_other * (all - missed) + shares.of_label * missed;
  }
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
  return std::log(sum) + missed;
}

template <class T>
double cross_entropy(MatrixView<const T> logits, const LossTargets::State& chosen,
                     MatrixView<T> gradient) {
  using W = Wide<T>;
  const Buffer<float>& weights = chosen.weights;
  const bool wants_gradient = gradient.data != nullptr;
  const auto shares = WantedShares<double>::of(chosen);
  const auto of_label = static_cast<W>(1 - chosen.smoothing);
  const auto of_all = static_cast<W>(shares.of_other);
  const auto add_rows = [&](std::int64_t begin, std::int64_t end, double* sum) {
    for_wide_rows<T>(begin, end, logits.cols, [&](std::int64_t first, std::int64_t last) {
      const ReadRows<T> read(logits, first, last);
      const WrittenRows<T> written(gradient, first, last);
      for (std::int64_t i = first; i < last; ++i) {
        W* const row = wants_gradient ? written.rows().row(i - first) : nullptr;
        if (weights[i] == 0) {
          if (wants_gradient) std::fill_n(row, gradient.cols, W{0});
          continue;
        }
        const std::int64_t label = chosen.labels[i];
        *sum += weights[i] * row_loss(read.rows().row(i - first), logits.cols, label, shares, row);
        if (!wants_gradient) continue;
        row[label] -= of_label;
        const auto share = static_cast<W>(weights[i] / chosen.count);
        for (std::int64_t j = 0; j < gradient.cols; ++j) row[j] = (row[j] - of_all) * share;
      }
    });
  };
  return sum_over_rows(logits.rows, 1, add_rows)[0] / chosen.count;
}

template <class T>
double binary_cross_entropy(MatrixView<const T> logits, const LossTargets::State& chosen,
                            MatrixView<T> gradient) {
  using W = Wide<T>;
  const Buffer<float>& weights = chosen.weights;
  const MatrixView<const float> targets(chosen.targets.data(), chosen.rows, chosen.cols);
  const bool wants_gradient = gradient.data != nullptr;
  // Stored targets are rounded to fp32.
  const W no = static_cast<W>(chosen.smoothing / 2), yes = static_cast<W>(1 - chosen.smoothing / 2);
  const auto sum = sum_each_row(logits.rows, 1, [&](std::int64_t i, double* sums) {
    T* const row = wants_gradient ? gradient.row(i) : nullptr;
    if (weights[i] == 0) {
      if (wants_gradient) std::fill_n(row, gradient.cols, T(W{0}));
      return;
    }
    double row_sum = 0;
    const auto share = static_cast<W>(weights[i] / chosen.count);
    for (std::int64_t j = 0; j < logits.cols; ++j) {
      const W z = logits(i, j);
      const W target = targets(i, j) > 0.5f ? yes : no;
      // Written with exp(-|z|), which cannot overflow.
      const W power = std::exp(-std::abs(z));
      row_sum += static_cast<double>(std::max(z, W{0}) - z * target + std::log1p(power));
      if (!wants_gradient) continue;
      const W sigmoid = (z < 0 ? power : W{1}) / (W{1} + power);
      row[j] = T((sigmoid - target) * share);
    }
    *sums += weights[i] * row_sum;
  });
  return sum[0] / chosen.count;
}

template <class T>
double number_losses(MatrixView<const T> predicted, const LossTargets::State& chosen,
                     MatrixView<T> gradient) {
  const Buffer<float>& weights = chosen.weights;
  const MatrixView<const float> targets(chosen.targets.data(), chosen.rows, chosen.cols);
  const bool wants_gradient = gradient.data != nullptr;
  const auto cost = NumberCost<double>::of(chosen);
  const auto sum = sum_each_row(predicted.rows, 1, [&](std::int64_t i, double* sums) {
    T* const row = wants_gradient ? gradient.row(i) : nullptr;
    const double share = weights[i] / chosen.count;
    for (std::int64_t j = 0; j < predicted.cols; ++j) {
      const double target = targets(i, j);
      const bool has_part = weights[i] != 0 && !std::isnan(target);
      double slope = 0;
      if (has_part) {
        const double difference = static_cast<double>(predicted(i, j)) - target;
        *sums += weights[i] * cost(difference, slope);
      }
      if (wants_gradient) row[j] = T(static_cast<Wide<T>>(slope * share));
    }
  });
  return sum[0] / chosen.count;
}

template <class T>
auto loss_of(LossForm form) {
  switch (form) {
    case LossForm::binary: return binary_cross_entropy<T>;
    case LossForm::numbers: return number_losses<T>;
    default: return cross_entropy<T>;
  }
}

}  // namespace

void run_on_cpu(const LossCall& call) {
  *call.value = visit_stored(call.x.type, [&]<class T>() {
    const auto chosen = loss_of<T>(call.targets->form);
    return chosen(call.x.as<T>(), *call.targets, call.grad_x.as<T>());
  });
  if (call.grad_sums.absent()) return;
  run_on_cpu(ActivationGradCall{call.grad_x, {}, {}, call.grad_x, {}, call.grad_sums});
}

}  // namespace tessera::ops
