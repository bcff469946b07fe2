// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/core/memory.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// A matrix of made-up numbers between 0.5 and 1 on any device: what kernels are timed with. Zeros
/// would not do: they cost a GPU less power, and so let it run faster.
class ScratchOperand {
 public:
  ScratchOperand() = default;
  ScratchOperand(Precision precision, std::int64_t rows, std::int64_t cols, const Place& place);

  operator Operand() noexcept { return operand_; }
  operator ConstOperand() const noexcept { return operand_; }

 private:
  Buffer<std::byte> memory_;
  Operand operand_;
};

}  // namespace tessera::ops
