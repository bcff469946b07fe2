// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/evaluation/targets.hpp"
#include "ops/loss/targets.hpp"
#include "ops/row_ranges.hpp"
#include "ops/wide_rows.hpp"

namespace tessera::ops {
namespace {

constexpr std::int64_t num_counts = 6;  ///< right and wrong of each part

/// The class of the highest logit; -1 where one is not a number.
template <class T>
std::int64_t predicted(const T* logits, std::int64_t classes) {
  std::int64_t best = -1;
  for (std::int64_t k = 0; k < classes; ++k) {
    if (std::isnan(static_cast<Wide<T>>(logits[k]))) return -1;
    if (best < 0 || logits[k] > logits[best]) best = k;
  }
  return best;
}

/// Right and wrong answers of one row.
template <class T>
PartCounts count_row(const T* logits, const EvaluationTargets::State& targets, std::int64_t row) {
  if (!targets.is_binary) {
    const bool right = predicted(logits, targets.cols) == targets.choices[row].label;
    return {right ? 1 : 0, right ? 0 : 1};
  }
  PartCounts counts;
  for (std::int64_t k = 0; k < targets.cols; ++k) {
    const bool said = logits[k] > 0;
    const bool is = targets.targets[row * targets.cols + k] > 0;
    counts.right += said && is ? 1 : 0;
    counts.wrong += said != is ? 1 : 0;
  }
  return counts;
}

}  // namespace

void CpuDenseOps::evaluate(ConstOperand logits, const EvaluationTargets::State& targets,
                           EvaluationNumbers* numbers, Stream stream,
                           const DenseWorkspace* workspace) const {
  const Buffer<double> sums = visit_floating(logits.type, [&](auto element) {
    const auto x = logits.as<decltype(element)>();
    return sum_over_rows(
        logits.rows, num_counts, [&](std::int64_t begin, std::int64_t end, double* counts) {
          for (std::int64_t i = begin; i < end; ++i) {
            const EvaluatedRow& chosen = targets.choices[i];
            const std::int32_t times[] = {chosen.train, chosen.validation, chosen.test};
            if (times[0] + times[1] + times[2] == 0) continue;
            const PartCounts row = count_row(x.row(i), targets, i);
            for (int part = 0; part < 3; ++part) {
              counts[2 * part] += static_cast<double>(times[part] * row.right);
              counts[2 * part + 1] += static_cast<double>(times[part] * row.wrong);
            }
          }
        });
  });
  const auto part = [&](std::int64_t i) {
    return PartCounts{static_cast<std::int64_t>(sums[2 * i]),
                      static_cast<std::int64_t>(sums[2 * i + 1])};
  };
  *numbers = {part(0), part(1), part(2), 0};
  loss(logits, targets.validation->state(), {}, &numbers->validation_loss, stream, workspace, {});
}

}  // namespace tessera::ops
