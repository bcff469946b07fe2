// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/bits/cuda/finish_sums.hpp"
#include "ops/bits/kernel.hpp"
#include "ops/bits/store.hpp"

/// The CUDA kernels of bit products. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_bit_gemm_kernels(std::vector<BitKernel>& table);
void append_cuda_byte_rows(std::vector<BitKernel>& table);
void append_cuda_wide_aggregate(std::vector<BitKernel>& table);
void append_cuda_byte_windows(std::vector<BitKernel>& table);
void append_cuda_byte_quads(std::vector<BitKernel>& table);
void append_cuda_byte_lists(std::vector<BitKernel>& table);

/// What both ops ask before anything else; empty where nothing speaks against a GPU.
std::string why_not_on_gpu(const BitProblem& problem);

/// Whether kernels of bit_aggregate make the result by themselves.
bool finishes_in_registers(const BitOptions& options);

/// From 32-bit sums to what the plan gives: the sums themselves, or what the epilogue makes of
/// them, in a pass of its own unless the product `finishes` by itself.
class CudaBits : public PreparedBits {
 public:
  explicit CudaBits(const BitProblem& problem, bool finishes = false);
  WorkspaceNeed workspace() const override { return need_; }

 protected:
  struct Sums {
    std::int32_t* data = nullptr;
    std::int64_t stride = 0;
  };
  /// Where the product leaves its sums.
  Sums sums_in(const BitOutputs& outputs, const WorkspaceView& workspace) const;
  /// B as bytes: as it came, or spread out of its planes into `spread`.
  OwnCodes bytes_of_b(const BitInputs& inputs, const WorkspacePart<std::uint8_t>& spread,
                      Stream stream, const WorkspaceView& workspace) const;
  /// After the product.
  void finish(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
              const WorkspaceView& workspace, const OwnCodes& own = {}) const;

  /// What a product that finishes by itself is given.
  BitResult result(const BitInputs& inputs, const BitOutputs& outputs) const;

  BitOptions options_;
  WorkspaceNeed need_;

 private:
  Buffer<float> lower_, step_, inverse_;
  bool quick_;
  bool direct_;
  WorkspacePart<std::int32_t> sums_;
};

}  // namespace tessera::ops
