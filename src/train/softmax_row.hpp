// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tessera::train {

/// What a row of logits makes of its classes: shares that sum to 1, in double. Where a logit is not
/// a number no share is one.
class SoftmaxRow {
 public:
  SoftmaxRow(const float* logits, std::int64_t classes)
      : highest_(static_cast<double>(*std::max_element(logits, logits + classes))) {
    for (std::int64_t k = 0; k < classes; ++k) {
      sum_ += std::exp(static_cast<double>(logits[k]) - highest_);
    }
  }

  double share(float logit) const { return std::exp(static_cast<double>(logit) - highest_) / sum_; }
  double highest_share() const { return 1 / sum_; }
  /// -log(share), which is exact where the share is too small for a double.
  double loss(float logit) const {
    return std::log(sum_) - (static_cast<double>(logit) - highest_);
  }

 private:
  double highest_;
  double sum_ = 0;
};

/// The probability of a yes, of one label of several.
inline double sigmoid(float logit) { return 1 / (1 + std::exp(-static_cast<double>(logit))); }

/// -log of the probability that the right answer was given.
inline double sigmoid_loss(float logit, bool yes) {
  const double x = yes ? -static_cast<double>(logit) : static_cast<double>(logit);
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

}  // namespace tessera::train
