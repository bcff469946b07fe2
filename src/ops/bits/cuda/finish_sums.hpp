// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/bits/finish.hpp"
#include "tessera/core/device.hpp"

namespace tessera::ops {

/// What becomes of 32-bit sums on a GPU, rows x cols without gaps.
struct FinishLaunch {
  const std::int32_t* sums = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  BitFinish finish;
};

/// Packed codes: as quant::BitTensorView, of which the GPU's compiler needs no more.
struct PackedCodes {
  std::uint32_t* words = nullptr;
  int bits = 1;
  std::int64_t padded_rows = 0;
  std::int64_t words_per_row = 0;
};

/// What a product makes of its sums by itself.
enum class BitResultKind { values, rows, columns, bytes, sums };
struct BitResult {
  BitResultKind kind = BitResultKind::values;
  BitFinish finish;
  float* values = nullptr;  ///< one of these, or packed codes
  std::uint8_t* bytes = nullptr;
  std::int32_t* sums = nullptr;
  std::int64_t stride = 0;  ///< of what is not packed
  PackedCodes codes;        ///< along rows or columns
};

void finish_values(const FinishLaunch& launch, float* values, std::int64_t stride, Stream stream);
/// Zeros fill rows up to multiples of 16.
void finish_bytes(const FinishLaunch& launch, std::uint8_t* bytes, std::int64_t stride,
                  Stream stream);
void finish_codes(const FinishLaunch& launch, const PackedCodes& codes, bool by_rows,
                  Stream stream);

}  // namespace tessera::ops
