// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/dense/dense_ops.hpp"

namespace tessera::ops {

/// How each call runs on a GPU, which is the current one: in the folder of its op, under cuda/.
struct CudaDenseRun {
  Device device;
  Stream stream = {};
  const DenseWorkspace* workspace = nullptr;

  void run(const GemmCall& call) const;
  void run(const LinearCall& call) const;
  void run(const LinearGradCall& call) const;
  void run(const FillCall& call) const;
  void run(const CopyCall& call) const;
  void run(const TransposeCall& call) const;
  void run(const AddScaledCall& call) const;
  void run(const ScaleRowsCall& call) const;
  void run(const DotCall& call) const;
  void run(const ActivationCall& call) const;
  void run(const ActivationGradCall& call) const;
  void run(const UnitRowsCall& call) const;
  void run(const UnitRowsGradCall& call) const;
  void run(const BatchNormCall& call) const;
  void run(const BatchNormGradCall& call) const;
  void run(const LossCall& call) const;
  void run(const EvaluationCall& call) const;
  void run(const RoundingCall& call) const;
  void run(const HeadDotsCall& call) const;
  void run(const HeadDotsGradCall& call) const;
  void run(const HeadMeanCall& call) const;
  void run(const HeadMeanGradCall& call) const;
  void run(const OptimiserCall& call) const;
  void run(const ClipCall& call) const;
  void run(const AverageCall& call) const;
  void run(const AdvanceCall& call) const;

  /// As `DenseOps` has them.
  bool chains(const ChainCall& call) const;
  static std::size_t longest_chain();
  void run_chain(std::span<const ChainCall> calls) const;
};

/// Made at the first call for a GPU, then kept.
const DenseOps& cuda_dense_ops(Device device);

}  // namespace tessera::ops
