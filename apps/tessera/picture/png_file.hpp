// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "picture/picture.hpp"

namespace tessera::app::picture {

/// A PNG of these bytes, row after row from the top: numbers of colours in the palette, or, without
/// one, red, green and blue of each pixel.
std::string png_file(int width, int height, std::span<const std::uint8_t> bytes,
                     std::span<const Colour> palette = {});

/// How the files start, and what says that Tessera made them.
inline constexpr char png_signature[] = "\x89PNG\r\n\x1a\n";
inline constexpr char maker[] = "made by tessera";

}  // namespace tessera::app::picture
