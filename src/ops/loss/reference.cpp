// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/reference.hpp"

#include <algorithm>
#include <cmath>

#include "core/exact_sum.hpp"

namespace tessera::ops::reference {
namespace {

void clear(MatrixView<double> gradient) {
  if (gradient.data == nullptr) return;
  for (std::int64_t i = 0; i < gradient.rows; ++i) {
    for (std::int64_t j = 0; j < gradient.cols; ++j) gradient(i, j) = 0;
  }
}

}  // namespace

double cross_entropy(MatrixView<const double> logits, std::span<const std::int64_t> labels,
                     std::span<const std::int64_t> rows, MatrixView<double> grad_logits,
                     const LossOptions& options) {
  clear(grad_logits);
  const auto weight_of = [&](std::int64_t row) {
    const auto label = static_cast<std::size_t>(labels[static_cast<std::size_t>(row)]);
    return options.class_weights.empty() ? 1 : static_cast<double>(options.class_weights[label]);
  };
  double count = 0;
  for (const std::int64_t row : rows) count += weight_of(row);
  const double of_all = options.smoothing / static_cast<double>(logits.cols);
  ExactSum loss;
  for (const std::int64_t row : rows) {
    const std::int64_t label = labels[static_cast<std::size_t>(row)];
    double largest = logits(row, 0);
    for (std::int64_t j = 1; j < logits.cols; ++j) largest = std::max(largest, logits(row, j));
    double sum = 0;
    for (std::int64_t j = 0; j < logits.cols; ++j) sum += std::exp(logits(row, j) - largest);
    const double share = count == 0 ? 0 : weight_of(row) / count;
    for (std::int64_t j = 0; j < logits.cols; ++j) {
      const double wanted = of_all + (j == label ? 1 - options.smoothing : 0);
      if (wanted > 0) loss += share * wanted * (std::log(sum) + largest - logits(row, j));
      if (grad_logits.data == nullptr) continue;
      const double probability = std::exp(logits(row, j) - largest) / sum;
      grad_logits(row, j) += share * (probability - wanted);
    }
  }
  return loss.value();
}

double binary_cross_entropy(MatrixView<const double> logits, MatrixView<const float> targets,
                            std::span<const std::int64_t> rows, MatrixView<double> grad_logits,
                            double smoothing) {
  clear(grad_logits);
  const double count = static_cast<double>(rows.size()) * static_cast<double>(logits.cols);
  ExactSum loss;
  for (const std::int64_t row : rows) {
    for (std::int64_t j = 0; j < logits.cols; ++j) {
      const double z = logits(row, j);
      const double answer = static_cast<double>(targets(row, j));
      const double target = answer * (1 - smoothing) + smoothing / 2;
      loss += (std::max(z, 0.0) - z * target + std::log1p(std::exp(-std::abs(z)))) / count;
      if (grad_logits.data == nullptr) continue;
      grad_logits(row, j) += (1 / (1 + std::exp(-z)) - target) / count;
    }
  }
  return loss.value();
}

double number_loss(MatrixView<const double> predicted, MatrixView<const float> targets,
                   std::span<const std::int64_t> rows, NumberLoss kind, MatrixView<double> gradient,
                   double huber_delta) {
  clear(gradient);
  double count = 0;
  for (const std::int64_t row : rows) {
    for (std::int64_t j = 0; j < predicted.cols; ++j) count += std::isnan(targets(row, j)) ? 0 : 1;
  }
  ExactSum loss;
  for (const std::int64_t row : rows) {
    for (std::int64_t j = 0; j < predicted.cols; ++j) {
      if (std::isnan(targets(row, j))) continue;
      const double d = predicted(row, j) - static_cast<double>(targets(row, j));
      const double sign = d > 0 ? 1 : d < 0 ? -1 : 0;
      double cost = d * d, slope = 2 * d;
      if (kind == NumberLoss::absolute) {
        cost = std::abs(d);
        slope = sign;
      } else if (kind == NumberLoss::huber) {
        const bool near = std::abs(d) < huber_delta;
        cost = near ? d * d / 2 : huber_delta * (std::abs(d) - huber_delta / 2);
        slope = near ? d : huber_delta * sign;
      }
      loss += cost / count;
      if (gradient.data != nullptr) gradient(row, j) += slope / count;
    }
  }
  return loss.value();
}

}  // namespace tessera::ops::reference
