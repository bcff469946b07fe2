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

/// IEEE's 16-bit float. Rounds to nearest, ties to even; what is too large becomes infinite.
struct Float16 {
  std::uint16_t bits;

  Float16() = default;
  explicit Float16(float value) noexcept {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = wide & 0x7FFFFFFFu;
    std::uint32_t narrow = 0;
    if (magnitude > 0x7F800000u) {
      narrow = 0x7E00u;
    } else if (magnitude >= 0x47800000u) {  // 2^16
      narrow = 0x7C00u;
    } else if (magnitude < 0x38800000u) {  // 2^-14: a multiple of 2^-24, as floats around 0.5 are
      narrow = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    } else {
      narrow = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
    }
    bits = static_cast<std::uint16_t>(narrow | ((wide >> 16) & 0x8000u));
  }
  operator float() const noexcept {
    const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
    const std::uint32_t fraction = bits & 0x3FFu;
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
      return sign == 0 ? magnitude : -magnitude;
    }
    const std::uint32_t wide_exponent = exponent == 0x1Fu ? 0xFFu : exponent + 112;
    return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
  }
};

/// How features and edge values are stored; sums are always at least fp32.
enum class Precision { fp64, fp32, tf32, bf16, fp16 };

const char* to_string(Precision precision) noexcept;
Precision parse_precision(const std::string& text);
std::size_t bytes_per_element(Precision precision) noexcept;

}  // namespace tessera
