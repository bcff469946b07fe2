// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/plan/check.hpp"
#include "tessera/detail/ops/bit_chain.hpp"

/// What a run of a bit product checks. Texts are made only where something is wrong: a run of a
/// small product takes a few microseconds.
namespace tessera::ops {

/// `words`: of every row; 0: as many as a bit tensor has.
void check_tensor(const Checker& check, const quant::BitTensorView<const std::uint32_t>& tensor,
                  const char* name, Device device, int bits, std::int64_t rows, std::int64_t depth,
                  std::int64_t words = 0);
/// Rows that begin at multiples of 16 bytes.
void check_bytes(const Checker& check, const MatrixView<const std::uint8_t>& bytes,
                 const char* name, Device device, std::int64_t rows, std::int64_t cols);
void check_epilogue(const Checker& check, const BitOptions& options, const BitEpilogue& parts);
void check_starts(const Checker& check, const MatrixView<const std::int32_t>& starts,
                  const BitOptions& options);
/// Sources themselves only where they lie in this process's memory.
void check_lists(const Checker& check, const BitInputs& inputs, const BitOptions& options);
void check_outputs(const Checker& check, const BitOptions& options, const BitOutputs& outputs);

/// Vertices that a kernel of chains takes through all steps together.
inline constexpr std::int64_t chain_part_rows = 128;
/// What kernels of chains ask before anything else: whole parts, codes of up to 8 bits.
bool chain_fits(const BitChainProblem& problem, std::int64_t most_width);

/// What a run of a chain checks.
class ChainCheck {
 public:
  explicit ChainCheck(const BitChainProblem& problem);
  void operator()(const BitChainInputs& inputs, const MatrixView<float>& values) const;

 private:
  BitOptions options_;  ///< of the blocks
  bool lists_;
  bool first_sums_;
  std::int64_t in_, out_;
  int bits_;  ///< of the features
};

}  // namespace tessera::ops
