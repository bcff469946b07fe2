// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/dense/dense_workspace.hpp"
#include "ops/evaluation/targets.hpp"
#include "ops/loss/cuda/rows.cuh"

namespace tessera::ops {
namespace {

/// What the kernel needs of the targets.
struct Known {
  std::int64_t rows, cols;
  double validation_count;
  const EvaluatedRow* choices;
  const float* targets;
};

/// Whether the highest logit of a row is the label's: the lowest column among ties. Every lane of
/// the team gets the answer.
template <class T, int width, bool aligned, int kept>
__device__ bool predicts(const TeamRow<T, width, aligned, kept>& row, std::int32_t label) {
  constexpr std::int64_t nowhere = INT64_MAX;
  float highest = -INFINITY;
  std::int64_t best = nowhere;
  int is_number = 1;
  row.each([&](const cuda::Elements<width, aligned>& place, const float(&values)[width]) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i >= place.count) break;
      if (isnan(values[i])) is_number = 0;
      if (best == nowhere || values[i] > highest) {
        highest = values[i];
        best = place.col + i;
      }
    }
  });
  for (int distance = row.team().lanes / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(~0u, highest, distance);
    const std::int64_t other_best = __shfl_xor_sync(~0u, best, distance);
    is_number &= __shfl_xor_sync(~0u, is_number, distance);
    if (other > highest || (other == highest && other_best < best)) {
      highest = other;
      best = other_best;
    }
  }
  return is_number != 0 && best == label;
}

/// This lane's elements of a row that were rightly found, and those with a wrong answer.
template <class T, int width, bool aligned, int kept>
__device__ int2 count_answers(const TeamRow<T, width, aligned, kept>& row,
                              cuda::Rows<const float> targets) {
  int2 counts = make_int2(0, 0);
  row.each([&](const cuda::Elements<width, aligned>& place, const float(&values)[width]) {
    float wanted[width];
    place.load(targets, wanted);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i >= place.count) break;
      const bool said = values[i] > 0, is = wanted[i] > 0;
      counts.x += said && is ? 1 : 0;
      counts.y += said != is ? 1 : 0;
    }
  });
  return counts;
}

/// Right and wrong of the three parts, and the loss.
constexpr int num_sums = 7;

template <bool is_binary, class T, int width, bool aligned, int kept>
__global__ __launch_bounds__(cuda::sum_threads,
                             row_blocks) void add_answers(const Known known, int lanes,
                                                          cuda::Rows<const T> logits,
                                                          EvaluationNumbers* numbers,
                                                          const cuda::Workspace workspace) {
  cuda::begin_overlapped();
  double totals[num_sums] = {};
  const cuda::Rows<const float> targets{known.targets, known.cols};
  const auto counts = [](const EvaluatedRow& row) {
    return row.train + row.validation + row.test > 0;
  };
  for_team_rows<T, width, aligned, kept>(
      known.rows, known.cols, lanes, logits, [&](std::int64_t row) { return known.choices[row]; },
      counts,
      [&](const TeamRow<T, width, aligned, kept>& row, const EvaluatedRow& chosen) {
        if (!__any_sync(~0u, counts(chosen))) return;
        const bool speaks = is_binary || row.team().lane == 0;  // for its team, or for itself
        int2 answers = make_int2(0, 0);
        if constexpr (is_binary) {
          answers = count_answers(row, targets);
        } else {
          const bool right = predicts(row, chosen.label);
          answers = make_int2(right ? 1 : 0, right ? 0 : 1);
        }
        if (speaks) {
          const int times[] = {chosen.train, chosen.validation, chosen.test};
#pragma unroll
          for (int part = 0; part < 3; ++part) {
            totals[2 * part] += static_cast<double>(times[part]) * answers.x;
            totals[2 * part + 1] += static_cast<double>(times[part]) * answers.y;
          }
        }
        if (!__any_sync(~0u, chosen.validation > 0)) return;
        double loss = 0;
        GradientSums<T, width, kept> no_sums;
        if constexpr (is_binary) {
          loss = row_elements<T>(row, 0, targets, {}, no_sums, BinaryElement{});
        } else {
          loss = static_cast<double>(row_cross_entropy<T>(row, chosen.label, {}, 0, {}, no_sums));
        }
        if (speaks && chosen.validation > 0) totals[6] += chosen.validation * loss;
      });
  const double count = known.validation_count;
  cuda::add_across_grid(totals, workspace, [&](const double(&sums)[num_sums]) {
    const auto part = [&](int i) {
      return PartCounts{static_cast<std::int64_t>(sums[2 * i]),
                        static_cast<std::int64_t>(sums[2 * i + 1])};
    };
    *numbers = EvaluationNumbers{part(0), part(1), part(2), sums[6] / count};
  });
}

template <bool is_binary, class T>
void launch(const Known& known, const cuda::Extent& extent, cuda::Rows<const T> logits,
            EvaluationNumbers* numbers, const cuda::Workspace& workspace, Stream stream) {
  with_row_shape<T>(extent, [&](auto width, auto aligned, auto kept, int lanes) {
    cuda::launch_overlapped(add_answers<is_binary, T, decltype(width)::value,
                                        decltype(aligned)::value, decltype(kept)::value>,
                            row_grid(known.rows, lanes), cuda::sum_threads, stream, known, lanes,
                            logits, numbers, workspace);
  });
}

}  // namespace

void CudaDenseRun::run(const EvaluationCall& call) const {
  const EvaluationTargets::State& targets = *call.targets;
  const Known known{targets.rows, targets.cols, targets.validation_count, targets.choices.data(),
                    targets.targets.data()};
  const DenseWorkspaceUse use(workspace, "evaluate", device, stream);
  const cuda::Workspace parts = cuda::workspace_in(use.data());
  cuda::visit_type(call.x.type, [&]<class T>(T) {
    const auto x = rows_of<T>(call.x);
    const cuda::Rows<const float> wanted{known.targets, known.cols};
    const auto extent = cuda::Extent{call.x.rows, call.x.cols}.with(x).with(wanted);
    const auto chosen = targets.is_binary ? launch<true, T> : launch<false, T>;
    chosen(known, extent, x, call.numbers, parts, stream);
  });
}

}  // namespace tessera::ops
