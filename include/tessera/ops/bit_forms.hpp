// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How products of bits end: see bits.hpp.
namespace tessera::ops {

enum class BitActivation { none, relu, tanh };

const char* to_string(BitActivation activation) noexcept;

/// What a run gives.
enum class BitOutput {
  sums32,   ///< S as int32; where it may not fit, planning is an error
  sums64,   ///< S as int64
  values,   ///< v as fp32
  rows,     ///< v as codes, packed along each row: the left operand of the next product
  columns,  ///< v as codes, packed along each column: the right operand
  bytes,    ///< v as codes of up to 8 bits, a byte each: what bit_aggregate gathers
};

const char* to_string(BitOutput output) noexcept;

}  // namespace tessera::ops
