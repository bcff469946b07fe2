// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace tessera::app::picture {

inline constexpr int glyph_columns = 5, glyph_rows = 9;
/// Rows above the baseline; the rest is for letters that reach below it.
inline constexpr int glyph_ascent = 7;
/// From the left edge of one character to that of the next.
inline constexpr int glyph_advance = 6;

/// Nine rows of five bits, the leftmost the highest. What is no printable ASCII is a question
/// mark.
const std::array<std::uint8_t, glyph_rows>& glyph(char character) noexcept;

}  // namespace tessera::app::picture
