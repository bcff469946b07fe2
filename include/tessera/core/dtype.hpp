// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera {

/// A 16-bit float with fp32's range: the upper half of an fp32. Rounds to nearest, ties to even;
/// not-a-number stays so.
struct Bfloat16 {
  std::uint16_t bits;

  Bfloat16() = default;
  explicit Bfloat16(float value) noexcept {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (wide & 0x7FFFFFFFu) > 0x7F800000u;
    bits = static_cast<std::uint16_t>(is_nan ? (wide >> 16) | 0x40u
                                             : (wide + 0x7FFFu + ((wide >> 16) & 1u)) >> 16);
  }
  operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// How features and edge values are stored; sums are always at least fp32.
enum class Precision { fp64, fp32, tf32, bf16, fp16 };

const char* to_string(Precision precision) noexcept;
Precision parse_precision(const std::string& text);
std::size_t bytes_per_element(Precision precision) noexcept;

}  // namespace tessera
