// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/normed_gradient.cuh"
#include "ops/gemm/cuda/normed_weight.cuh"

namespace tessera::ops {

void run_normed_gradient(const NormedLaunch& launch, Stream stream) {
  const bool reads_columns = launch.x_columns.numbers != nullptr;
  const bool factors = launch.gradient.data == nullptr;
  launch_splits(reads_columns
                    ? (factors ? normed_gradient<true, true> : normed_gradient<true, false>)
                    : (factors ? normed_gradient<false, true> : normed_gradient<false, false>),
                normed_threads, NormedLayout::bytes, launch, stream);
}

void run_normed_weight(const NormedLaunch& launch, Stream stream) {
  launch_splits(launch.in <= 64   ? normed_weight<0>
                : launch.in <= 80 ? normed_weight<16>
                                  : normed_weight<32>,
                weight_threads, WeightLayout::bytes, launch, stream);
}

}  // namespace tessera::ops
