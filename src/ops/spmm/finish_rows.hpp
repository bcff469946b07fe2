// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/activation/kernels.hpp"
#include "ops/scales.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// The epilogue on the CPU, of reduced rows in the precision of the sums.
template <class T>
class RowFinisher {
  using S = SumOf<T>;

 public:
  explicit RowFinisher(const SpmmProblem& problem)
      : features_(problem.features), bias_(problem.is_plain() ? 0 : problem.features) {}

  std::int64_t bytes() const noexcept {
    return bias_.size() * static_cast<std::int64_t>(sizeof(S));
  }

  /// Once per run: zeros where there is no bias.
  void take_bias(const SpmmCall& call) const {
    for (std::int64_t j = 0; j < bias_.size(); ++j) {
      bias_[j] = call.bias.absent() ? S(0) : static_cast<S>(call.bias.as<T>()(0, j));
    }
  }

  /// Rows [begin, end) of sums, row 0 at `sums`, in place.
  void finish(const SpmmCall& call, S* sums, std::int64_t stride, std::int64_t begin,
              std::int64_t end) const {
    S* const first = sums + begin * stride;
    const S factor = call.residual_scale.absent()
                         ? S(1)
                         : S(1) + static_cast<S>(call.residual_scale.as<T>()(0, 0));
    for (std::int64_t i = begin; i < end && !call.residual.absent(); ++i) {
      const T* const residual = call.residual.as<T>().row(i);
      S* const row = first + (i - begin) * stride;
      for (std::int64_t j = 0; j < features_; ++j) row[j] += factor * static_cast<S>(residual[j]);
    }
    ActivationRows<S> all;
    all.rows = end - begin;
    all.cols = features_;
    all.first_element = static_cast<std::uint64_t>(begin * features_);
    all.x = first;
    all.x_stride = stride;
    all.bias = bias_.data();
    all.output = first;
    all.output_stride = stride;
    ActivationFormula formula = call.formula;
    formula.dropout = formula.dropout.at_present();
    if constexpr (std::is_same_v<S, double>) {
      activation().forward_fp64(formula, all);
    } else {
      activation().forward_fp32(formula, all);
    }
  }

  /// The same rows, rounded into y.
  void store_bf16(const SpmmCall& call, const S* sums, std::int64_t stride, std::int64_t begin,
                  std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i) {
      Bfloat16* const stored = call.y.as<Bfloat16>().row(i);
      const S* const row = sums + i * stride;
      for (std::int64_t j = 0; j < features_; ++j) stored[j] = Bfloat16(static_cast<float>(row[j]));
    }
  }

 private:
  std::int64_t features_;
  mutable Buffer<S> bias_;
};

}  // namespace tessera::ops
