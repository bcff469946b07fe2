// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/ops/bits.hpp"

#include "ops/bits/finish.hpp"

namespace tessera::ops {

/// Rows of sums that are finished together: a word of packed columns has as many.
inline constexpr std::int64_t block_rows = 32;

/// The parts of a run's epilogue; ranges are those of the plan, wherever they lie.
BitFinish make_finish(const BitOptions& options, const BitEpilogue& epilogue, const float* lower,
                      const float* step, const OwnCodes& own = {});

/// Where the sums of a run on the CPU go.
class BitStore {
 public:
  /// `a`: the operand on the left, of bit_gemm.
  BitStore(const BitOptions& options, quant::BitTensorView<const std::uint32_t> a,
           const BitEpilogue& epilogue, const BitOutputs& outputs, const OwnCodes& own = {});

  /// `sums` has `cols` numbers for each row from `first_row` on, at most `block_rows` of them.
  /// `first_row` is a multiple of `block_rows`.
  void operator()(std::int64_t first_row, const std::int64_t* sums) const;
  /// Clears what is behind the last row or column of a bit tensor.
  void clear_padding() const;

 private:
  const BitOptions& options_;
  quant::BitTensorView<const std::uint32_t> a_;
  const BitOutputs& outputs_;
  BitFinish finish_;
};

}  // namespace tessera::ops
