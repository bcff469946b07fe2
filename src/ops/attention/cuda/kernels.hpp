// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "ops/attention/kernel.hpp"

/// The CUDA kernels of attention. Only in a build with CUDA.
namespace tessera::ops {

/// The kernel by rows, for those that have but one pass of their own.
std::unique_ptr<const PreparedAttention> prepare_rows_attention(const AttentionProblem& problem);

void append_cuda_rows_attention(std::vector<AttentionKernel>& table);
void append_cuda_tall_attention(std::vector<AttentionKernel>& table);
void append_cuda_short_attention(std::vector<AttentionKernel>& table);
void append_cuda_pairs_attention(std::vector<AttentionKernel>& table);
void append_cuda_packed_attention(std::vector<AttentionKernel>& table);
void append_cuda_heads_attention(std::vector<AttentionKernel>& table);
void append_cuda_fused_attention(std::vector<AttentionKernel>& table);
void append_cuda_staged_attention(std::vector<AttentionKernel>& table);

}  // namespace tessera::ops
