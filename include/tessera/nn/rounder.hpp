// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/nn/context.hpp"
#include "tessera/nn/tensor.hpp"
#include "tessera/ops/rounding.hpp"

namespace tessera::nn {

/// Tensors as codes of so many bits would give them back (ops/rounding.hpp). With 0 bits it leaves
/// everything as it is.
class Rounder {
 public:
  Rounder(int bits, Placement placement) : bits_(bits), rounded_(placement) {}

  bool rounds() const noexcept { return bits_ > 0; }
  int bits() const noexcept { return bits_; }

  /// The tensor itself, or a rounded copy that lives until the next call.
  const Tensor& operator()(const Tensor& x, const Context& context,
                           ops::RoundingRange range = ops::RoundingRange::matrix);
  void in_place(Tensor& x, const Context& context,
                ops::RoundingRange range = ops::RoundingRange::matrix);

 private:
  MatrixView<float> ranges(const Tensor& x, ops::RoundingRange range);

  int bits_;
  Tensor rounded_;
  Buffer<float> ranges_;
};

}  // namespace tessera::nn
