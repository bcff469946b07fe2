// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"
#include "ops/dense_workspace.hpp"
#include "ops/loss/cuda/rows.cuh"
#include "ops/loss/targets.hpp"

namespace tessera::ops {
namespace {

/// What the kernels need of the targets.
struct Wanted {
  std::int64_t rows, cols;
  double count;
  const std::int32_t* times;
  const std::int32_t* labels;
  const float* targets;
};

/// How often a row was chosen, and its class.
struct Chosen {
  std::int32_t times = 0;
  std::int32_t label = 0;
};

template <class T, int width, bool aligned>
__device__ void clear_row(const cuda::RowTeam<width, aligned>& team, cuda::Rows<T> gradient) {
  const float zeros[width] = {};
  team.each([&](const cuda::Elements<width, aligned>& place) { place.store(zeros, gradient); });
}

template <bool is_binary, class T, int width, bool aligned, int kept>
__global__ __launch_bounds__(cuda::sum_threads) void add_losses(const Wanted wanted, int lanes,
                                                                cuda::Rows<const T> logits,
                                                                cuda::Rows<T> gradient,
                                                                double* value,
                                                                const cuda::Workspace workspace) {
  cuda::begin_overlapped();
  double total = 0;
  const auto chosen = [&](std::int64_t row) {
    return Chosen{__ldg(wanted.times + row), is_binary ? 0 : __ldg(wanted.labels + row)};
  };
  for_team_rows<width, aligned>(
      wanted.rows, wanted.cols, lanes, chosen,
      [&](cuda::RowTeam<width, aligned>& team, const Chosen& row) {
        const bool counts = row.times > 0;
        if (!counts && gradient.data != nullptr && team.row < wanted.rows) {
          team.end = wanted.cols;
          clear_row(team, gradient);
        }
        if (!__any_sync(~0u, counts)) return;
        team.end = counts ? wanted.cols : 0;
        const auto share = static_cast<float>(row.times / wanted.count);
        const TeamRow<T, width, aligned, kept> values(team, logits);
        double loss = 0;
        if constexpr (is_binary) {
          loss = row_binary(values, share, {wanted.targets, wanted.cols}, gradient);
        } else {
          loss = row_cross_entropy(values, row.label, share, gradient);
        }
        if (counts && (is_binary || team.lane == 0)) total += row.times * loss;
      });
  const double count = wanted.count;
  cuda::add_across_grid(total, workspace, [&](double sum) { *value = sum / count; });
}

template <bool is_binary, class T>
void run(const Wanted& wanted, const cuda::Extent& extent, cuda::Rows<const T> logits,
         cuda::Rows<T> gradient, double* value, const cuda::Workspace& workspace, Stream stream) {
  with_row_shape<T>(extent, [&](auto width, auto aligned, auto kept, int lanes) {
    cuda::launch_overlapped(add_losses<is_binary, T, decltype(width)::value,
                                       decltype(aligned)::value, decltype(kept)::value>,
                            cuda::sum_grid(wanted.rows, cuda::sum_threads / lanes),
                            cuda::sum_threads, stream, wanted, lanes, logits, gradient, value,
                            workspace);
  });
}

}  // namespace

void CudaDenseOps::loss(ConstOperand logits, const LossTargets::State& targets, Operand grad_logits,
                        double* value, Stream stream, const DenseWorkspace* workspace) const {
  const cuda_backend::CurrentDevice current(device_.index);
  const Wanted wanted{targets.rows,         targets.cols,          targets.count,
                      targets.times.data(), targets.labels.data(), targets.targets.data()};
  const DenseWorkspaceUse use(workspace, "loss", device_, stream);
  const cuda::Workspace parts = cuda::workspace_in(use.data());
  cuda::visit_type(logits.type, [&](auto element) {
    using T = decltype(element);
    const auto x = rows_of<T>(logits);
    const auto gradient = rows_of<T>(grad_logits);
    const auto extent = cuda::Extent{logits.rows, logits.cols}.with(x).with(gradient);
    const auto chosen = targets.is_binary ? run<true, T> : run<false, T>;
    chosen(wanted, extent, x, gradient, value, parts, stream);
  });
}

}  // namespace tessera::ops
