// SPDX-License-Identifier: Apache-2.0
#include "tessera/quant/affine.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::quant {
namespace {

constexpr std::int64_t row_grain = 256;

void require(bool holds, const std::string& problem, const std::string& where) {
  if (!holds) throw Error(ErrorCode::bad_data, problem, where, "calibrate again");
}

void check_shape(const Affine& affine, std::int64_t rows, std::int64_t cols) {
  if (affine.granularity == Granularity::columns &&
      static_cast<std::int64_t>(affine.scale.size()) != cols) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} columns, but ranges of {}", cols, affine.scale.size()),
                "quantisation", "use the ranges of a matrix with as many columns");
  }
  if (affine.granularity == Granularity::classes &&
      static_cast<std::int64_t>(affine.classes.of_row.size()) != rows) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} rows, but classes of {}", rows, affine.classes.of_row.size()),
                "quantisation", "give every row a class");
  }
}

[[noreturn]] void not_a_number(std::int64_t row, std::int64_t col) {
  throw Error(ErrorCode::invalid_argument, "not a number, which has no code",
              fmt::format("row {}, column {}", row, col), "clean the numbers first");
}

}  // namespace

const char* to_string(Rounding rounding) noexcept {
  return rounding == Rounding::nearest ? "nearest" : "floor";
}

const char* to_string(Granularity granularity) noexcept {
  switch (granularity) {
    case Granularity::tensor: return "tensor";
    case Granularity::columns: return "columns";
    case Granularity::classes: return "classes";
  }
  return "?";
}

const char* to_string(Calibration calibration) noexcept {
  switch (calibration) {
    case Calibration::range: return "range";
    case Calibration::percentile: return "percentile";
    case Calibration::bounds: return "bounds";
  }
  return "?";
}

void check_bits(int bits, const std::string& what) {
  if (bits >= 1 && bits <= max_bits) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} bits", bits), what,
              fmt::format("use 1 to {}", max_bits));
}

void Affine::validate() const {
  check_bits(bits, "quantisation");
  require(rounding == Rounding::nearest || rounding == Rounding::floor, "an unknown rounding",
          "rounding");
  require(granularity == Granularity::tensor || granularity == Granularity::columns ||
              granularity == Granularity::classes,
          "ranges of unknown things", "granularity");
  require(lower.size() == scale.size(), "not a lower bound for every scale", "lower");
  require(granularity != Granularity::tensor || scale.size() == 1, "not one range", "scale");
  for (std::size_t i = 0; i < scale.size(); ++i) {
    require(std::isfinite(scale[i]) && scale[i] > 0,
            fmt::format("a scale of {}, which is not positive", scale[i]), "scale");
    require(std::isfinite(lower[i]), "a bound that is not finite", "lower");
  }
  require(granularity == Granularity::classes || classes.of_row.empty(),
          "classes of rows without ranges for them", "classes");
  if (granularity != Granularity::classes) return;
  require(classes.count == static_cast<std::int32_t>(scale.size()), "not a range for every class",
          "classes");
  for (const std::int32_t c : classes.of_row) {
    require(c >= 0 && c < classes.count, fmt::format("class {} of {}", c, classes.count),
            "classes");
  }
}

std::ostream& operator<<(std::ostream& out, const Affine& affine) {
  out << fmt::format("{} bits, {}", affine.bits, to_string(affine.rounding));
  if (affine.granularity == Granularity::tensor && affine.scale.size() == 1) {
    return out << fmt::format(", from {:g} in steps of {:g}", affine.lower[0], affine.scale[0]);
  }
  return out << fmt::format(", ranges for {} {}", affine.scale.size(),
                            to_string(affine.granularity));
}

RowClasses degree_classes(const Graph& graph, int most) {
  if (most < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("at most {} classes", most),
                "degree_classes", "allow 1 or more");
  }
  const auto& offsets = graph.row_offsets();
  RowClasses classes;
  classes.of_row.resize(static_cast<std::size_t>(graph.num_rows()));
  std::vector<std::int32_t> number(static_cast<std::size_t>(most), -1);
  std::vector<bool> used(static_cast<std::size_t>(most), false);
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    auto degree = static_cast<std::uint64_t>(offsets[row + 1] - offsets[row]) + 1;
    std::int32_t c = 0;
    while (degree > 1 && c + 1 < most) {
      degree /= 2;
      ++c;
    }
    classes.of_row[static_cast<std::size_t>(row)] = c;
    used[static_cast<std::size_t>(c)] = true;
  }
  for (std::size_t c = 0; c < used.size(); ++c) {
    if (used[c]) number[c] = classes.count++;
  }
  for (std::int32_t& c : classes.of_row) c = number[static_cast<std::size_t>(c)];
  return classes;
}

void quantise(MatrixView<const float> x, const Affine& affine, MatrixView<std::uint16_t> codes) {
  affine.validate();
  check_shape(affine, x.rows, x.cols);
  const auto last = static_cast<float>(affine.max_code());
  parallel_for(x.rows, row_grain, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < x.cols; ++j) {
      const std::size_t range = affine.range_of(i, j);
      const float value = x(i, j);
      if (std::isnan(value)) not_a_number(i, j);
      const float steps = (value - affine.lower[range]) / affine.scale[range];
      const float whole =
          affine.rounding == Rounding::floor ? std::floor(steps) : std::nearbyint(steps);
      codes(i, j) = static_cast<std::uint16_t>(std::clamp(whole, 0.0f, last));
    }
  });
}

Matrix<std::uint16_t> quantise(MatrixView<const float> x, const Affine& affine) {
  Matrix<std::uint16_t> codes(x.rows, x.cols);
  quantise(x, affine, MatrixView<std::uint16_t>(codes.data(), x.rows, x.cols));
  return codes;
}

void dequantise(MatrixView<const std::uint16_t> codes, const Affine& affine, MatrixView<float> x) {
  affine.validate();
  check_shape(affine, codes.rows, codes.cols);
  parallel_for(codes.rows, row_grain, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < codes.cols; ++j) {
      const std::size_t range = affine.range_of(i, j);
      x(i, j) = affine.zero(range) + affine.scale[range] * static_cast<float>(codes(i, j));
    }
  });
}

Matrix<float> dequantise(MatrixView<const std::uint16_t> codes, const Affine& affine) {
  Matrix<float> x(codes.rows, codes.cols);
  dequantise(codes, affine, x.view());
  return x;
}

}  // namespace tessera::quant
