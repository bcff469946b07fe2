// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"
#include "ops/dense_workspace.hpp"
#include "ops/evaluation/targets.hpp"
#include "ops/loss/cuda/rows.cuh"

namespace tessera::ops {
namespace {

static_assert(cuda::sum_threads == cuda::team_threads);

/// What the kernel needs of the targets.
struct Known {
  std::int64_t rows, cols;
  double validation_count;
  const EvaluatedRow* choices;
  const float* targets;
};

/// Whether the highest logit of a row is the label's: the lowest column among ties. Every lane of
/// the team gets the answer.
template <class T, int width, bool aligned>
__device__ bool predicts(const cuda::RowTeam<width, aligned>& team, std::int32_t label,
                         cuda::Rows<const T> logits) {
  constexpr std::int64_t nowhere = INT64_MAX;
  float highest = -INFINITY;
  std::int64_t best = nowhere;
  int is_number = 1;
  team.each([&](const cuda::Elements<width, aligned>& place) {
    float values[width];
    place.load(logits, values);
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
  for (int distance = team.lanes / 2; distance > 0; distance /= 2) {
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
template <class T, int width, bool aligned>
__device__ int2 count_answers(const cuda::RowTeam<width, aligned>& team, cuda::Rows<const T> logits,
                              cuda::Rows<const float> targets) {
  int2 counts = make_int2(0, 0);
  team.each([&](const cuda::Elements<width, aligned>& place) {
    float values[width], wanted[width];
    place.load(logits, values);
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

/// A team goes over rows that are a grid apart, as in a loss.
template <bool is_binary, class T, int width, bool aligned>
__global__ __launch_bounds__(cuda::sum_threads) void add_answers(const Known known, int lanes,
                                                                 cuda::Rows<const T> logits,
                                                                 EvaluationNumbers* numbers,
                                                                 const cuda::Workspace workspace) {
  cuda::begin_overlapped();
  const int teams = cuda::sum_threads / lanes;
  cuda::RowTeam<width, aligned> team;
  team.lanes = lanes;
  team.lane = static_cast<int>(threadIdx.x) % lanes;
  team.cols = known.cols;
  const bool speaks = is_binary || team.lane == 0;  // for its team, or for itself
  double totals[num_sums] = {};
  // Lanes of a warp leave the loop together: what goes over a team needs all of them.
  for (std::int64_t first = std::int64_t{blockIdx.x} * teams; first < known.rows;
       first += std::int64_t{gridDim.x} * teams) {
    team.row = first + static_cast<int>(threadIdx.x) / lanes;
    const EvaluatedRow chosen =
        team.row < known.rows ? known.choices[team.row] : EvaluatedRow{0, 0, 0, 0};
    team.end = chosen.train + chosen.validation + chosen.test > 0 ? known.cols : 0;
    int2 counts = make_int2(0, 0);
    if constexpr (is_binary) {
      counts = count_answers(team, logits, {known.targets, known.cols});
    } else {
      const bool right = predicts(team, chosen.label, logits);
      counts = make_int2(right ? 1 : 0, right ? 0 : 1);
    }
    if (speaks) {
      const int times[] = {chosen.train, chosen.validation, chosen.test};
#pragma unroll
      for (int part = 0; part < 3; ++part) {
        totals[2 * part] += static_cast<double>(times[part]) * counts.x;
        totals[2 * part + 1] += static_cast<double>(times[part]) * counts.y;
      }
    }
    if (!__any_sync(~0u, chosen.validation > 0)) continue;
    team.end = chosen.validation > 0 ? known.cols : 0;
    double loss = 0;
    if constexpr (is_binary) {
      loss = row_binary<T>(team, 0, logits, {known.targets, known.cols}, {});
    } else {
      loss = row_cross_entropy<T>(team, chosen.label, 0, logits, {});
    }
    if (speaks && chosen.validation > 0) totals[6] += chosen.validation * loss;
  }
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
void run(const Known& known, const cuda::Extent& extent, cuda::Rows<const T> logits,
         EvaluationNumbers* numbers, const cuda::Workspace& workspace, Stream stream) {
  constexpr int chunk = cuda::chunk<T>;
  const bool chunks = extent.aligned && extent.cols % chunk == 0;
  const int width = chunks ? chunk : 1;
  const int lanes = cuda::team_lanes((known.cols + width - 1) / width);
  const auto kernel =
      chunks ? add_answers<is_binary, T, chunk, true> : add_answers<is_binary, T, 1, false>;
  cuda::launch_overlapped(kernel, cuda::sum_grid(known.rows, cuda::sum_threads / lanes),
                          cuda::sum_threads, stream, known, lanes, logits, numbers, workspace);
}

}  // namespace

void CudaDenseOps::evaluate(ConstOperand logits, const EvaluationTargets::State& targets,
                            EvaluationNumbers* numbers, Stream stream,
                            const DenseWorkspace* workspace) const {
  const cuda_backend::CurrentDevice current(device_.index);
  const Known known{targets.rows, targets.cols, targets.validation_count, targets.choices.data(),
                    targets.targets.data()};
  const DenseWorkspaceUse use(workspace, "evaluate", device_, stream);
  const cuda::Workspace parts = cuda::workspace_in(use.data());
  cuda::visit_type(logits.type, [&](auto element) {
    using T = decltype(element);
    const auto x = rows_of<T>(logits);
    const auto extent = cuda::Extent{logits.rows, logits.cols}.with(x);
    const auto chosen = targets.is_binary ? run<true, T> : run<false, T>;
    chosen(known, extent, x, numbers, parts, stream);
  });
}

}  // namespace tessera::ops
