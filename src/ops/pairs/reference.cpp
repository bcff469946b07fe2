// SPDX-License-Identifier: Apache-2.0
#include "ops/pairs/reference.hpp"

#include <algorithm>
#include <cmath>

#include "core/exact_sum.hpp"

namespace tessera::ops::reference {
namespace {

/// -(yes log p + (1 - yes) log(1 - p)) of p = 1 / (1 + exp(-x)), without overflow.
double cross_entropy(double x, double yes) {
  return std::max(x, 0.0) - x * yes + std::log1p(std::exp(-std::abs(x)));
}
double slope_of(double x, double yes) { return 1 / (1 + std::exp(-x)) - yes; }

}  // namespace

Matrix<double> of_pairs(PairOp op, const Matrix<double>& sources, const Matrix<double>& targets,
                        MatrixView<const std::int32_t> pairs, std::int64_t heads) {
  const std::int64_t cols = sources.cols();
  Matrix<double> y(pairs.cols, op == PairOp::dot ? heads : cols, 0.0);
  for (std::int64_t k = 0; k < pairs.cols; ++k) {
    for (std::int64_t j = 0; j < cols; ++j) {
      const double source = sources(pairs(0, k), j), target = targets(pairs(1, k), j);
      if (op == PairOp::dot) {
        y(k, j / (cols / heads)) += source * target;
      } else {
        y(k, j) = source + target;
      }
    }
  }
  return y;
}

void of_pairs_backward(PairOp op, const Matrix<double>& sources, const Matrix<double>& targets,
                       MatrixView<const std::int32_t> pairs, const Matrix<double>& grad_y,
                       MatrixView<double> grad_sources, MatrixView<double> grad_targets) {
  const std::int64_t cols = grad_sources.cols;
  for (std::int64_t k = 0; k < pairs.cols; ++k) {
    const std::int64_t source = pairs(0, k), target = pairs(1, k);
    for (std::int64_t j = 0; j < cols; ++j) {
      const double slope = grad_y(k, j / (cols / grad_y.cols()));
      grad_sources(source, j) += op == PairOp::dot ? slope * targets(target, j) : slope;
      grad_targets(target, j) += op == PairOp::dot ? slope * sources(source, j) : slope;
    }
  }
}

double pair_loss(std::span<const double> scores, const PairLossOptions& options,
                 std::span<double> gradient) {
  const auto positives = static_cast<std::size_t>(options.positives);
  const std::size_t negatives = scores.size() - positives;
  const bool compares = options.kind != PairLossKind::bce;
  const std::size_t counted = compares ? negatives : scores.size();
  const double count = static_cast<double>(std::max<std::size_t>(counted, 1));
  const double other = options.smoothing / 2;
  std::fill(gradient.begin(), gradient.end(), 0.0);
  ExactSum loss;
  if (!compares) {
    for (std::size_t k = 0; k < scores.size(); ++k) {
      const double yes = k < positives ? 1 - other : other;
      loss += cross_entropy(scores[k], yes);
      gradient[k] = slope_of(scores[k], yes) / count;
    }
    return loss.value() / count;
  }
  for (std::size_t j = 0; j < negatives; ++j) {
    const std::size_t i = j / (negatives / positives), k = positives + j;
    const double above = scores[k] - scores[i];
    double slope = 0;
    if (options.kind == PairLossKind::margin) {
      loss += std::max(0.0, options.margin + above);
      slope = options.margin + above < 0 ? 0 : 1;
    } else {
      loss += cross_entropy(above, other);
      slope = slope_of(above, other);
    }
    gradient[k] += slope / count;
    gradient[i] -= slope / count;
  }
  return loss.value() / count;
}

}  // namespace tessera::ops::reference
