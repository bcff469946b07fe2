// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "tessera/ops/pairs.hpp"

namespace tessera::ops {

/// What a score, or the difference of two, adds to a loss, and the derivative.
template <class Number>
struct PairTerm {
  Number value, slope;
};

/// The terms of a loss, on every device.
template <class Number>
class PairTerms {
 public:
  constexpr explicit PairTerms(const PairLossOptions& options)
      : is_margin_(options.kind == PairLossKind::margin),
        margin_(static_cast<Number>(options.margin)),
        other_(static_cast<Number>(options.smoothing / 2)) {}

  /// Of a score by itself.
  constexpr PairTerm<Number> of_score(Number score, bool is_positive) const {
    return logistic(score, is_positive ? 1 - other_ : other_);
  }

  /// Of a negative beside its positive: the slope is that of the negative's score.
  constexpr PairTerm<Number> of_both(Number positive, Number negative) const {
    if (!is_margin_) return logistic(negative - positive, other_);
    const Number above = margin_ + negative - positive;
    return above < 0 ? PairTerm<Number>{0, 0} : PairTerm<Number>{above, 1};
  }

 private:
  /// The cross-entropy of sigmoid(x) where `yes` of the answer should be yes: written with
  /// exp(-|x|), which cannot overflow.
  static constexpr PairTerm<Number> logistic(Number x, Number yes) {
    const Number power = std::exp(-std::abs(x));
    const Number sigmoid = (x < 0 ? power : Number{1}) / (1 + power);
    // What is wanted of the answer that x speaks against; 0 times what is too large is no number.
    const Number against = x < 0 ? yes : 1 - yes;
    return {(against == 0 ? Number{0} : std::abs(x) * against) + std::log1p(power), sigmoid - yes};
  }

  bool is_margin_;
  Number margin_, other_;
};

}  // namespace tessera::ops
