// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/array.hpp"

namespace tessera::io {

/// Texts as NumPy keeps them ("<U7"), which it loads without pickle: each as wide as the longest,
/// four bytes a character. Bytes that are no UTF-8 become U+FFFD. Where a few long ones would make
/// the array a gibibyte or more of padding, it is an `unsupported` error that names the array.
NamedArray text_array(std::string name, const std::vector<std::string_view>& texts);

}  // namespace tessera::io
