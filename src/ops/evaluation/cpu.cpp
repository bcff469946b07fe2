// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/evaluation/targets.hpp"
#include "ops/loss/targets.hpp"
#include "ops/plan/check.hpp"

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

void run_on_cpu(const EvaluationCall& call) {
  const EvaluationTargets::State& targets = *call.targets;
  const Buffer<double> sums = visit_stored(call.x.type, [&]<class T>() {
    const auto x = call.x.as<T>();
    return sum_each_row(x.rows, num_counts, [&](std::int64_t i, double* counts) {
      const EvaluatedRow& chosen = targets.choices[i];
      const std::int32_t times[] = {chosen.train, chosen.validation, chosen.test};
      if (times[0] + times[1] + times[2] == 0) return;
      const PartCounts row = count_row(x.row(i), targets, i);
      for (int part = 0; part < 3; ++part) {
        counts[2 * part] += static_cast<double>(times[part] * row.right);
        counts[2 * part + 1] += static_cast<double>(times[part] * row.wrong);
      }
    });
  });
  const auto part = [&](std::int64_t i) {
    return PartCounts{static_cast<std::int64_t>(sums[2 * i]),
                      static_cast<std::int64_t>(sums[2 * i + 1])};
  };
  *call.numbers = {part(0), part(1), part(2), 0};
  run_on_cpu(LossCall{call.x, &targets.validation->state(), {}, &call.numbers->validation_loss});
}

}  // namespace tessera::ops
