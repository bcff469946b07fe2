// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/core/types.hpp"

namespace tessera::io {

enum class MatrixField { pattern, real, integer };
enum class MatrixSymmetry { general, symmetric, skew_symmetric };

/// The banner and the size line of a Matrix Market file, and where the entries begin.
struct MatrixHeader {
  MatrixField field = MatrixField::pattern;
  MatrixSymmetry symmetry = MatrixSymmetry::general;
  VertexId rows = 0;
  VertexId cols = 0;
  std::int64_t entries = 0;
  std::string_view body;
};

inline constexpr std::string_view matrix_market_banner = "%%MatrixMarket";

MatrixHeader parse_matrix_header(std::string_view text, const std::string& path);

}  // namespace tessera::io
