// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/activation/rows.hpp"
#include "ops/rows/scales.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// Where rows of `num_rows` are reduced on the CPU, in the precision of the sums, and what becomes
/// of them then: an epilogue, and rounding where Y cannot hold them.
template <class T>
class RowFinisher {
  using S = SumOf<T>;

 public:
  /// `rounds`: whether plain rows are rounded here, not by the code that reduces them.
  RowFinisher(const SpmmProblem& problem, std::int64_t num_rows, bool rounds)
      : plain_(problem.is_plain()),
        features_(problem.features),
        bias_(plain_ ? 0 : features_),
        wide_((rounds || !plain_) &&
                      bytes_per_element(problem.output()) != static_cast<int>(sizeof(S))
                  ? checked_area(num_rows, features_)
                  : 0) {}

  std::int64_t bytes() const noexcept {
    return (bias_.size() + wide_.size()) * static_cast<std::int64_t>(sizeof(S));
  }

  /// Once per run: where its rows are reduced.
  Operand begin(const SpmmCall& call) const {
    for (std::int64_t j = 0; j < bias_.size(); ++j) {
      bias_[j] = call.bias.absent() ? S(0) : static_cast<S>(call.bias.as<T>()(0, j));
    }
    Operand rows = call.y;
    if (wide_.empty()) return rows;
    rows.data = wide_.data();
    rows.stride = features_;
    return rows;
  }

  /// Rows [begin, end), which are complete.
  void finish(const SpmmCall& call, const Operand& rows, std::int64_t begin,
              std::int64_t end) const {
    S* const first = static_cast<S*>(rows.data) + begin * rows.stride;
    if (!plain_) finish_in_place(call, first, rows.stride, begin, end);
    for (std::int64_t i = begin; i < end && !wide_.empty(); ++i) {
      Bfloat16* const stored = call.y.as<Bfloat16>().row(i);
      const S* const row = first + (i - begin) * rows.stride;
      for (std::int64_t j = 0; j < features_; ++j) stored[j] = Bfloat16(static_cast<float>(row[j]));
    }
  }

 private:
  void finish_in_place(const SpmmCall& call, S* first, std::int64_t stride, std::int64_t begin,
                       std::int64_t end) const {
    const S factor = call.residual_scale.absent()
                         ? S(1)
                         : S(1) + static_cast<S>(call.residual_scale.as<T>()(0, 0));
    for (std::int64_t i = begin; i < end && !call.residual.absent(); ++i) {
      const T* const residual = call.residual.as<T>().row(i);
      S* const row = first + (i - begin) * stride;
      for (std::int64_t j = 0; j < features_; ++j) row[j] += factor * static_cast<S>(residual[j]);
    }
    ActivationFormula formula = call.formula;
    formula.dropout = formula.dropout.at_present();
    const MatrixView<S> rows = {first, end - begin, features_, stride};
    activate_forward(formula, activation_rows<S>(rows, bias_, begin, rows));
  }

  bool plain_;
  std::int64_t features_;
  mutable Buffer<S> bias_;
  mutable Buffer<S> wide_;  ///< reduced rows, where Y cannot hold them
};

}  // namespace tessera::ops
