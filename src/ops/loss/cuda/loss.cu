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

static_assert(cuda::sum_threads == cuda::team_threads);

/// What the kernels need of the targets.
struct Wanted {
  std::int64_t rows, cols;
  double count;
  const std::int32_t* times;
  const std::int32_t* labels;
  const float* targets;
};

template <class T, int width, bool aligned>
__device__ void clear_row(const cuda::RowTeam<width, aligned>& team, cuda::Rows<T> gradient) {
  const float zeros[width] = {};
  team.each([&](const cuda::Elements<width, aligned>& place) { place.store(zeros, gradient); });
}

/// A team goes over rows that are a grid apart, so that the number of sums does not grow with them.
template <bool is_binary, class T, int width, bool aligned>
__global__ __launch_bounds__(cuda::sum_threads) void add_losses(const Wanted wanted, int lanes,
                                                                cuda::Rows<const T> logits,
                                                                cuda::Rows<T> gradient,
                                                                double* value,
                                                                const cuda::Workspace workspace) {
  cuda::begin_overlapped();
  const int teams = cuda::sum_threads / lanes;
  cuda::RowTeam<width, aligned> team;
  team.lanes = lanes;
  team.lane = static_cast<int>(threadIdx.x) % lanes;
  team.cols = wanted.cols;
  double total = 0;
  // Lanes of a warp leave the loop together: sums over a team need all of them.
  for (std::int64_t first = std::int64_t{blockIdx.x} * teams; first < wanted.rows;
       first += std::int64_t{gridDim.x} * teams) {
    team.row = first + static_cast<int>(threadIdx.x) / lanes;
    const std::int32_t times = team.row < wanted.rows ? wanted.times[team.row] : 0;
    team.end = times > 0 ? wanted.cols : 0;
    const auto share = static_cast<float>(times / wanted.count);
    double loss = 0;
    if constexpr (is_binary) {
      loss = row_binary(team, share, logits, {wanted.targets, wanted.cols}, gradient);
    } else {
      const std::int32_t label = times > 0 ? wanted.labels[team.row] : -1;
      loss = row_cross_entropy(team, label, share, logits, gradient);
      if (team.lane != 0) loss = 0;
    }
    if (times > 0) {
      total += times * loss;
    } else if (gradient.data != nullptr && team.row < wanted.rows) {
      team.end = wanted.cols;
      clear_row(team, gradient);
    }
  }
  const double count = wanted.count;
  cuda::add_across_grid(total, workspace, [&](double sum) { *value = sum / count; });
}

template <bool is_binary, class T>
void run(const Wanted& wanted, const cuda::Extent& extent, cuda::Rows<const T> logits,
         cuda::Rows<T> gradient, double* value, const cuda::Workspace& workspace, Stream stream) {
  constexpr int chunk = cuda::chunk<T>;
  const bool chunks = extent.aligned && extent.cols % chunk == 0;
  const int width = chunks ? chunk : 1;
  const int lanes = cuda::team_lanes((wanted.cols + width - 1) / width);
  const auto kernel =
      chunks ? add_losses<is_binary, T, chunk, true> : add_losses<is_binary, T, 1, false>;
  cuda::launch_overlapped(kernel, cuda::sum_grid(wanted.rows, cuda::sum_threads / lanes),
                          cuda::sum_threads, stream, wanted, lanes, logits, gradient, value,
                          workspace);
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
