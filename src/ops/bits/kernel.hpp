// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tessera/ops/bits.hpp"

#include "ops/plan/registry.hpp"
#include "ops/plan/workspace.hpp"

namespace tessera::ops {

struct BitProblem {
  Graph graph;  ///< of bit_aggregate; empty in bit_gemm
  BitOptions options;
  /// The A of bit_gemm where it stays.
  std::shared_ptr<const quant::BitTensor> a = {};
  bool aggregates = false;
  /// The edges come with the runs.
  bool has_lists() const { return aggregates && options.block > 0; }

  /// The bits that the greatest sum can have.
  int sum_bits() const;
};

/// What a row of bit_gemm's A has.
inline std::int64_t depth_of_a(const BitOptions& options) {
  return options.block > 0 ? options.block : options.depth;
}
/// Whether values become codes.
inline bool gives_codes(BitOutput output) {
  return output == BitOutput::rows || output == BitOutput::columns || output == BitOutput::bytes;
}
inline bool gives_sums(BitOutput output) {
  return output == BitOutput::sums32 || output == BitOutput::sums64;
}
/// Bytes that a row of so many codes takes.
inline std::int64_t padded_bytes(std::int64_t cols) { return (cols + 15) / 16 * 16; }
/// Rows of an A in blocks that begin at the same column.
inline constexpr std::int64_t rows_of_start = 64;

/// What a plan keeps of a kernel. Operands have been checked.
class PreparedBits {
 public:
  virtual ~PreparedBits() = default;
  virtual void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
                   const WorkspaceView& workspace) const = 0;
  virtual WorkspaceNeed workspace() const { return {}; }
};

using BitKernel = Kernel<BitProblem, PreparedBits>;

/// Every kernel of this build.
std::span<const BitKernel> bit_gemm_kernels();
std::span<const BitKernel> bit_aggregate_kernels();
std::span<const BitKernel> bit_lists_kernels();

}  // namespace tessera::ops
