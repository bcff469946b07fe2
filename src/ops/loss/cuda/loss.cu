// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/dense/dense_workspace.hpp"
#include "ops/loss/cuda/kept_rows.cuh"
#include "ops/loss/cuda/rows.cuh"
#include "ops/loss/number_cost.hpp"
#include "ops/loss/targets.hpp"

namespace tessera::ops {
namespace {

/// What the kernels need of the targets.
struct Wanted {
  std::int64_t rows, cols;
  double count;
  WantedShares<float> shares;
  NumberCost<float> cost;
  const float* weights;
  const std::int32_t* labels;
  const float* targets;
};

/// How much a row counts, and its class.
struct Chosen {
  float weight = 0;
  std::int32_t label = 0;
};

template <class T, int width, bool aligned>
__device__ void clear_row(cuda::RowTeam<width, aligned> team, cuda::Rows<T> gradient) {
  team.end = team.cols;
  const float zeros[width] = {};
  team.each([&](const cuda::Elements<width, aligned>& place) { place.store(zeros, gradient); });
}

/// Where the loss goes, and the sums of the gradient's columns, which may be absent.
template <class T>
struct LossResults {
  double* value;
  T* sums;
};

/// Adds what all threads of the grid found, each lane of a team for its columns.
template <class T, int width, int kept>
__device__ void add_results(const Wanted& wanted, int lanes, double loss,
                            GradientSums<T, width, kept>& sums, const LossResults<T>& results,
                            const cuda::Workspace& workspace) {
  using Sums = GradientSums<T, width, kept>;
  constexpr bool may_sum = Sums::count > 0;
  const bool has_sums = may_sum && results.sums != nullptr;
  const int thread = static_cast<int>(threadIdx.x);
  const int of_block = 1 + (has_sums ? Sums::count * lanes : 0);
  double* const partials = workspace.partials;
  double* const own = partials + blockIdx.x * static_cast<unsigned>(of_block);
  double whole[1] = {loss};
  cuda::add_across_block(whole, 1);
  if (thread == 0) own[0] = whole[0];
  if constexpr (may_sum) {
    if (has_sums) {
      cuda::add_across_block(sums.values, lanes);
      if (thread < lanes) {
#pragma unroll
        for (int i = 0; i < Sums::count; ++i) own[1 + i * lanes + thread] = sums.values[i];
      }
    }
  }
  if (!cuda::is_last_block(workspace.counters, gridDim.x)) return;
  whole[0] = 0;
  for (int block = thread; block < static_cast<int>(gridDim.x); block += cuda::sum_threads) {
    whole[0] += __ldcg(partials + block * of_block);
  }
  cuda::add_across_block(whole, 1);
  if (thread == 0) *results.value = whole[0] / wanted.count;
  if constexpr (may_sum) {
    if (!has_sums) return;
#pragma unroll
    for (double& value : sums.values) value = 0;
    for (int block = thread / lanes; block < static_cast<int>(gridDim.x);
         block += cuda::sum_threads / lanes) {
      const double* const part = partials + block * of_block + 1 + thread % lanes;
#pragma unroll
      for (int i = 0; i < Sums::count; ++i) sums.values[i] += __ldcg(part + i * lanes);
    }
    cuda::add_across_block(sums.values, lanes);
    if (thread >= lanes) return;
#pragma unroll
    for (int i = 0; i < Sums::count; ++i) {
      const int col = (thread + i / width * lanes) * width + i % width;
      if (col < wanted.cols) {
        results.sums[col] = cuda::narrow<T>(static_cast<float>(sums.values[i]));
      }
    }
  }
}

template <LossForm form, class T, int width, bool aligned, int kept>
__global__ __launch_bounds__(cuda::sum_threads, row_blocks) void add_losses(
    const Wanted wanted, int lanes, cuda::Rows<const T> logits, cuda::Rows<T> gradient,
    const LossResults<T> results, const cuda::Workspace workspace) {
  cuda::begin_overlapped();
  constexpr bool is_of_classes = form == LossForm::classes;
  double total = 0;
  GradientSums<T, width, kept> sums;
  const auto chosen = [&](std::int64_t row) {
    return Chosen{__ldg(wanted.weights + row), is_of_classes ? __ldg(wanted.labels + row) : 0};
  };
  const auto counts = [](const Chosen& chosen) { return chosen.weight > 0; };
  for_team_rows<T, width, aligned, kept>(
      wanted.rows, wanted.cols, lanes, logits, chosen, counts,
      [&](const TeamRow<T, width, aligned, kept>& row, const Chosen& of_row) {
        const bool has_part = counts(of_row);
        if (!has_part && gradient.data != nullptr && row.team().row < wanted.rows) {
          clear_row(row.team(), gradient);
        }
        if (!__any_sync(~0u, has_part)) return;
        const auto share = static_cast<float>(of_row.weight / wanted.count);
        double loss = 0;
        const cuda::Rows<const float> targets{wanted.targets, wanted.cols};
        if constexpr (is_of_classes) {
          loss = static_cast<double>(
              row_cross_entropy(row, of_row.label, wanted.shares, share, gradient, sums));
        } else if constexpr (form == LossForm::binary) {
          loss = row_elements(row, share, targets, gradient, sums, BinaryElement{});
        } else {
          loss = row_elements(row, share, targets, gradient, sums, NumberElement{wanted.cost});
        }
        if (has_part && (!is_of_classes || row.team().lane == 0)) total += of_row.weight * loss;
      });
  add_results(wanted, lanes, total, sums, results, workspace);
}

/// Of classes, where the lanes of a team keep a row. What a row counts is read two rows
/// ahead, and the row itself one.
template <class T, int width, int kept>
__global__ __launch_bounds__(cuda::sum_threads, row_blocks) void add_kept_losses(
    const Wanted wanted, int lanes, cuda::Rows<const T> logits, cuda::Rows<T> gradient,
    const LossResults<T> results, const cuda::Workspace workspace) {
  using Row = KeptRow<T, width, kept>;
  cuda::begin_overlapped();
  const int thread = static_cast<int>(threadIdx.x), teams = cuda::sum_threads / lanes;
  const auto cols = static_cast<int>(wanted.cols);
  const std::int64_t step = std::int64_t{gridDim.x} * teams;
  cuda::RowTeam<width, true> team;
  team.lanes = lanes;
  team.lane = thread % lanes;
  team.cols = cols;
  const auto chosen = [&](std::int64_t row) {
    return row < wanted.rows ? Chosen{__ldg(wanted.weights + row), __ldg(wanted.labels + row)}
                             : Chosen{};
  };
  const auto fetch = [&](std::int64_t row, const Chosen& of_row) {
    Row fetched;
    fetched.fetch(logits.data + row * logits.stride, of_row.weight > 0, cols, team.lane, lanes);
    return fetched;
  };
  const auto share_of_row = static_cast<float>(1 / wanted.count);
  double total = 0;
  RecentSums<T, width, kept> sums;
  std::int64_t first = std::int64_t{blockIdx.x} * teams;
  std::int64_t at = first + thread / lanes;
  Chosen now = chosen(at), next = chosen(at + step);
  Row row = fetch(at, now);
  for (; first < wanted.rows; first += step, at += step) {
    const Chosen after = chosen(at + 2 * step);
    const Row row_after = fetch(at + step, next);
    float values[Row::count];
    row.widen_to(values, cols, team.lane, lanes);
    const bool has_part = now.weight > 0;
    const float loss = kept_cross_entropy<width, kept>(team, now.label, wanted.shares,
                                                       now.weight * share_of_row, values);
    if (has_part && team.lane == 0) {
      total += static_cast<double>(now.weight) * static_cast<double>(loss);
    }
    if (gradient.data != nullptr) {
#pragma unroll
      for (float& value : values) value = has_part ? value : 0.0f;
      if (at < wanted.rows) {
        Row::store(values, gradient.data + at * gradient.stride, cols, team.lane, lanes);
      }
      sums.add(values);
    }
    row = row_after;
    now = next;
    next = after;
  }
  add_results(wanted, lanes, total, sums.all(), results, workspace);
}

template <LossForm form, class T, int width, bool aligned, int kept>
constexpr auto loss_kernel() {
  if constexpr (form != LossForm::classes || kept == 0) {
    return add_losses<form, T, width, aligned, kept>;
  } else {
    return add_kept_losses<T, width, kept>;
  }
}

/// Whether the sums of the columns were found, too.
template <LossForm form, class T>
bool launch(const Wanted& wanted, const cuda::Extent& extent, cuda::Rows<const T> logits,
            cuda::Rows<T> gradient, const LossResults<T>& results, const cuda::Workspace& workspace,
            Stream stream) {
  bool finds_sums = false;
  with_row_shape<T>(extent, [&](auto width, auto aligned, auto kept, int lanes) {
    finds_sums = decltype(kept)::value > 0;
    const auto kernel = loss_kernel<form, T, decltype(width)::value, decltype(aligned)::value,
                                    decltype(kept)::value>();
    cuda::launch_overlapped(kernel, row_grid(wanted.rows, lanes), cuda::sum_threads, stream, wanted,
                            lanes, logits, gradient, results, workspace);
  });
  return finds_sums;
}

template <class T>
auto launch_of(LossForm form) {
  switch (form) {
    case LossForm::binary: return launch<LossForm::binary, T>;
    case LossForm::numbers: return launch<LossForm::numbers, T>;
    default: return launch<LossForm::classes, T>;
  }
}

}  // namespace

void CudaDenseRun::run(const LossCall& call) const {
  const LossTargets::State& targets = *call.targets;
  const Wanted wanted{targets.rows,
                      targets.cols,
                      targets.count,
                      WantedShares<float>::of(targets),
                      NumberCost<float>::of(targets),
                      targets.weights.data(),
                      targets.labels.data(),
                      targets.targets.data()};
  bool finds_sums = true;
  {
    const DenseWorkspaceUse use(workspace, "loss", device, stream);
    if (const ChainCall alone = call; chains(alone)) return run_chain({&alone, 1});
    const cuda::Workspace parts = cuda::workspace_in(use.data());
    cuda::visit_type(call.x.type, [&]<class T>(T) {
      const auto x = rows_of<T>(call.x);
      const auto gradient = rows_of<T>(call.grad_x);
      const cuda::Rows<const float> wanted_rows{wanted.targets, wanted.cols};
      const auto extent =
          cuda::Extent{call.x.rows, call.x.cols}.with(x).with(gradient).with(wanted_rows);
      finds_sums = launch_of<T>(targets.form)(
          wanted, extent, x, gradient, {call.value, values_of<T>(call.grad_sums)}, parts, stream);
    });
  }
  if (finds_sums || call.grad_sums.absent()) return;
  run(ActivationGradCall{call.grad_x, {}, {}, call.grad_x, {}, call.grad_sums});
}

}  // namespace tessera::ops
