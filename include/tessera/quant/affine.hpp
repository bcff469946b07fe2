// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"

/// Numbers as codes of few bits: x = lower + scale * code.
namespace tessera::quant {

inline constexpr int max_bits = 16;

enum class Rounding {
  nearest,  ///< 2^bits - 1 steps from the lower to the upper bound, each number to the nearest
  floor,    ///< 2^bits steps, each number down; a code stands for the middle of its step (QGTC)
};

/// What has a range of its own.
enum class Granularity {
  tensor,   ///< all numbers together
  columns,  ///< every column
  classes,  ///< every class of rows, such as the vertices of about equal degree
};

/// Where the bounds come from.
enum class Calibration {
  range,       ///< the least and the greatest number
  percentile,  ///< the least range that has `share` of the numbers, as much left out at both ends
  bounds,      ///< those given
};

const char* to_string(Rounding rounding) noexcept;
const char* to_string(Granularity granularity) noexcept;
const char* to_string(Calibration calibration) noexcept;

/// Classes of rows, numbered from 0.
struct RowClasses {
  std::vector<std::int32_t> of_row;
  std::int32_t count = 0;

  friend bool operator==(const RowClasses&, const RowClasses&) = default;
};

/// Rows by degree (Degree-Quant): class c has the degrees [2^c - 1, 2^(c + 1) - 1), the last all
/// above, and classes without rows are left out. At most `most` of them.
RowClasses degree_classes(const Graph& graph, int most = 8);

struct QuantOptions {
  int bits = 8;
  Rounding rounding = Rounding::nearest;
  Granularity granularity = Granularity::tensor;
  Calibration calibration = Calibration::range;
  double share = 0.999;  ///< percentile
  double lower = 0;      ///< bounds
  double upper = 1;
  RowClasses classes = {};  ///< classes: one per row
};

/// How numbers become codes and codes numbers: one lower bound and one scale for everything, for
/// each column, or for each class of rows.
struct Affine {
  int bits = 8;
  Rounding rounding = Rounding::nearest;
  Granularity granularity = Granularity::tensor;
  std::vector<float> lower = {};
  std::vector<float> scale = {};
  RowClasses classes = {};

  std::uint32_t max_code() const noexcept { return (1u << bits) - 1; }
  /// Which lower bound and scale an element has.
  std::size_t range_of(std::int64_t row, std::int64_t col) const noexcept {
    if (granularity == Granularity::tensor) return 0;
    if (granularity == Granularity::columns) return static_cast<std::size_t>(col);
    return static_cast<std::size_t>(classes.of_row[static_cast<std::size_t>(row)]);
  }
  /// What code 0 of a range stands for.
  float zero(std::size_t range) const noexcept {
    return rounding == Rounding::floor ? lower[range] + 0.5f * scale[range] : lower[range];
  }

  /// Throws `invalid_argument` or `bad_data` unless bits, bounds, scales and classes are possible.
  void validate() const;

  friend bool operator==(const Affine&, const Affine&) = default;
};

/// One line: bits, rounding, ranges.
std::ostream& operator<<(std::ostream& out, const Affine& affine);

/// Throws `invalid_argument` unless 1 <= bits <= 16. `what` names them.
void check_bits(int bits, const std::string& what);

/// Finds the ranges. A number that is not finite, a range of no width, and bits that no code can
/// have are errors.
Affine calibrate(MatrixView<const float> x, const QuantOptions& options);

/// Codes of numbers; those outside of the range become its ends. A number that is not a number is
/// an error.
void quantise(MatrixView<const float> x, const Affine& affine, MatrixView<std::uint16_t> codes);
Matrix<std::uint16_t> quantise(MatrixView<const float> x, const Affine& affine);

/// Numbers of codes.
void dequantise(MatrixView<const std::uint16_t> codes, const Affine& affine, MatrixView<float> x);
Matrix<float> dequantise(MatrixView<const std::uint16_t> codes, const Affine& affine);

}  // namespace tessera::quant
