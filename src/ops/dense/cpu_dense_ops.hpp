// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/dense/dense_ops.hpp"

/// How each call runs on the CPU: in the folder of its op, in cpu.cpp.
namespace tessera::ops {

void run_on_cpu(const GemmCall& call);
void run_on_cpu(const LinearCall& call);
void run_on_cpu(const LinearGradCall& call);
void run_on_cpu(const FillCall& call);
void run_on_cpu(const CopyCall& call);
void run_on_cpu(const TransposeCall& call);
void run_on_cpu(const AddScaledCall& call);
void run_on_cpu(const ScaleRowsCall& call);
void run_on_cpu(const DotCall& call);
void run_on_cpu(const ActivationCall& call);
void run_on_cpu(const ActivationGradCall& call);
void run_on_cpu(const UnitRowsCall& call);
void run_on_cpu(const UnitRowsGradCall& call);
void run_on_cpu(const BatchNormCall& call);
void run_on_cpu(const BatchNormGradCall& call);
void run_on_cpu(const LossCall& call);
void run_on_cpu(const EvaluationCall& call);
void run_on_cpu(const RoundingCall& call);
void run_on_cpu(const HeadDotsCall& call);
void run_on_cpu(const HeadDotsGradCall& call);
void run_on_cpu(const HeadMeanCall& call);
void run_on_cpu(const HeadMeanGradCall& call);
void run_on_cpu(const OptimiserCall& call);
void run_on_cpu(const ClipCall& call);
void run_on_cpu(const AverageCall& call);
void run_on_cpu(const AdvanceCall& call);

}  // namespace tessera::ops
