// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/quant/affine.hpp"
#include "tessera/quant/bit_tensor.hpp"

namespace tessera::train {

/// Features as codes, vertices x features in memory of this process, to be filled again and again:
/// the codes that `ops::round_to_codes` rounds to.
class BitFeatures {
 public:
  BitFeatures(std::int64_t vertices, const quant::Affine& range, std::int64_t features);

  /// Features as they came. With `row_normalise`, `row_scale` gets what each row has to be
  /// multiplied by after it was rounded, as `train::row_normalise` does.
  void take(MatrixView<const float> x, bool row_normalise);
  void take(const Graph& sparse, bool row_normalise);
  /// Rows times `row_scale`; empty: 1.
  void take_scaled(MatrixView<const float> x, std::span<const float> row_scale);

  quant::BitTensorView<const std::uint32_t> codes() const;
  /// One number per vertex; empty where no row was normalised.
  std::span<const float> row_scale() const noexcept { return row_scale_.span(); }

 private:
  quant::BitTensorView<std::uint32_t> view();
  double take_row(const float* x, float scale, std::int64_t row);

  quant::Affine range_;
  quant::BitTensor shape_;
  Buffer<std::uint32_t> words_;
  Buffer<float> row_scale_;
};

}  // namespace tessera::train
