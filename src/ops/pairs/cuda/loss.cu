// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "cuda/search.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/dense_workspace.hpp"
#include "ops/pairs/kernels.hpp"
#include "ops/pairs/loss_formula.hpp"

namespace tessera::ops::on_gpu {
namespace {

template <class T>
struct LossLaunch {
  cuda::Rows<const T> scores;
  cuda::Rows<T> gradient;
  std::int64_t count, positives, per_positive;
  double counted;
  double* value;
  T* gradient_sum;
};

template <class T>
struct Slopes {
  cuda::Rows<T> gradient;
  float share;

  __device__ double write(std::int64_t k, float slope) const {
    if (gradient.data != nullptr)
      gradient.data[k * gradient.stride] = cuda::narrow<T>(slope * share);
    return static_cast<double>(slope * share);
  }
};

/// A thread takes a score, or a positive with its negatives.
template <class T, bool compares>
__global__ __launch_bounds__(cuda::sum_threads) void add_pair_losses(
    const LossLaunch<T> launch, const PairTerms<float> terms, const cuda::Workspace workspace) {
  cuda::begin_overlapped();
  double totals[2] = {};
  const Slopes<T> slopes{launch.gradient, static_cast<float>(1 / launch.counted)};
  const auto score = [&](std::int64_t k) {
    return cuda::widen(launch.scores.data[k * launch.scores.stride]);
  };
  const std::int64_t things = compares ? launch.positives : launch.count;
  for (std::int64_t i = cuda::thread_number(); i < things;
       i += std::int64_t{gridDim.x} * cuda::sum_threads) {
    if constexpr (compares) {
      const float positive = score(i);
      double of_positive = 0;
      const std::int64_t first = launch.positives + i * launch.per_positive;
      for (std::int64_t k = first; k < first + launch.per_positive; ++k) {
        const PairTerm<float> term = terms.of_both(positive, score(k));
        totals[0] += static_cast<double>(term.value);
        of_positive -= static_cast<double>(term.slope);
        totals[1] += slopes.write(k, term.slope);
      }
      totals[1] += slopes.write(i, static_cast<float>(of_positive));
    } else {
      const PairTerm<float> term = terms.of_score(score(i), i < launch.positives);
      totals[0] += static_cast<double>(term.value);
      totals[1] += slopes.write(i, term.slope);
    }
  }
  cuda::add_across_grid(totals, workspace, [&](const double(&sums)[2]) {
    *launch.value = sums[0] / launch.counted;
    if (launch.gradient_sum != nullptr) {
      *launch.gradient_sum = cuda::narrow<T>(static_cast<float>(sums[1]));
    }
  });
}

}  // namespace

void pair_loss(const PairLossCall& call, Device device, Stream stream,
               const DenseWorkspace* workspace) {
  const cuda_backend::CurrentDevice current(device.index);
  const DenseWorkspaceUse use(workspace, "pair_loss", device, stream);
  const cuda::Workspace parts = cuda::workspace_in(use.data());
  const bool compares = call.options.kind != PairLossKind::bce;
  cuda::visit_type(call.scores.type, [&]<class T>(T) {
    const LossLaunch<T> launch{rows_of<T>(call.scores),
                               rows_of<T>(call.gradient),
                               call.scores.rows,
                               call.options.positives,
                               call.per_positive(),
                               call.counted(),
                               call.value,
                               values_of<T>(call.gradient_sum)};
    const std::int64_t things = compares ? launch.positives : launch.count;
    cuda::launch_overlapped(compares ? add_pair_losses<T, true> : add_pair_losses<T, false>,
                            cuda::sum_grid(things, cuda::sum_threads), cuda::sum_threads, stream,
                            launch, PairTerms<float>(call.options), parts);
  });
}

}  // namespace tessera::ops::on_gpu
