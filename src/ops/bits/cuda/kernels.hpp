// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "ops/bits/cuda/aggregate.hpp"
#include "ops/bits/kernel.hpp"
#include "ops/bits/store.hpp"
#include "ops/cuda/cuda_kernel.hpp"

/// The CUDA kernels of bit products. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_bit_gemm_kernels(std::vector<BitKernel>& table);
void append_cuda_byte_rows(std::vector<BitKernel>& table);
void append_cuda_wide_aggregate(std::vector<BitKernel>& table);
void append_cuda_byte_windows(std::vector<BitKernel>& table);
void append_cuda_byte_lists(std::vector<BitKernel>& table);

/// What both ops ask before anything else; empty where nothing speaks against a GPU.
std::string why_not_on_gpu(const BitProblem& problem);

inline BitRows rows_of(const quant::BitTensorView<const std::uint32_t>& tensor) {
  return {tensor.words, tensor.plane_words(), tensor.words_per_row, tensor.rows, tensor.bits};
}

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
  /// After the product.
  void finish(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
              const WorkspaceView& workspace, const OwnCodes& own = {}) const;

  /// What a product that finishes by itself is given.
  BitResult result(const BitInputs& inputs, const BitOutputs& outputs,
                   const OwnCodes& own = {}) const;

  BitOptions options_;
  WorkspaceNeed need_;

 private:
  Buffer<float> lower_, step_, inverse_;
  bool quick_;
  bool direct_;
  WorkspacePart<std::int32_t> sums_;
};

/// Sums of codes of up to 8 bits, which kernels take as bytes.
class CudaByteSums : public CudaBits {
 public:
  explicit CudaByteSums(const BitProblem& problem);
  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const final;

 protected:
  /// Adds the codes of every row's sources and does with the sums what `out` says.
  virtual void sum(const BitInputs& inputs, const OwnCodes& codes, const AggregateResult& out,
                   Stream stream, const WorkspaceView& workspace) const = 0;
  /// Bytes of a row.
  std::int64_t width() const { return padded_bytes(options_.cols); }

 private:
  WorkspacePart<std::uint8_t> codes_;  ///< those of B, where planes come
};

/// For kernels of `CudaByteSums`.
std::string why_not_bytes(const BitProblem& problem);

}  // namespace tessera::ops
