// SPDX-License-Identifier: Apache-2.0
#include "tessera/step/rounder.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/elementwise.hpp"

namespace tessera::step {

Rounder::Rounder(int bits, Placement placement) : bits_(bits), place_(placement.place()) {
  if (bits == 0 || bytes_per_element(placement.precision) >= sizeof(float)) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{} bits of numbers that are stored as {}", bits, to_string(placement.precision)),
      "model", "use fp32, or all bits");
}

void Rounder::round(ops::ConstOperand x, ops::RoundingRange range, ops::ConstOperand row_scale,
                    ops::Operand y, Stream stream) {
  const std::int64_t needed = range == ops::RoundingRange::matrix ? 1
                              : range == ops::RoundingRange::rows ? x.rows
                                                                  : x.cols;
  if (has_ranges_ && needed != num_ranges_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} ranges were given where {} are needed", num_ranges_, needed),
                "quantised model",
                "give features in the form of the training (dense or sparse), or find the "
                "ranges anew (--calibrate)");
  }
  const bool searches = !has_ranges_ && !search_.keeps_all() && range != ops::RoundingRange::rows;
  if (!has_ranges_) {
    num_ranges_ = needed;
    if (ranges_.size() < num_ranges_ * 2) ranges_ = Buffer<float>(num_ranges_ * 2, place_);
  }
  if (searches) search(x, range, row_scale, stream);
  if (has_ranges_ || searches) {
    const MatrixView<const float> ranges = matrix_in(ranges_, num_ranges_, 2);
    return ops::round_within(x, bits_, range, ranges, y, x.device, stream, row_scale);
  }
  ops::round_to_codes(x, bits_, range, matrix_in(ranges_, num_ranges_, 2), y, x.device, stream,
                      row_scale);
}

void Rounder::search(ops::ConstOperand x, ops::RoundingRange range, ops::ConstOperand row_scale,
                     Stream stream) {
  const auto in_this_process = [&](const ops::ConstOperand& matrix) {
    Matrix<float> numbers(matrix.rows, matrix.cols);
    if (!matrix.absent()) ops::download(matrix, numbers.view(), matrix.device, stream);
    return numbers;
  };
  const Matrix<float> numbers = in_this_process(x), scales = in_this_process(row_scale);
  const std::vector<float> found =
      find_ranges(numbers, range, row_scale.absent() ? nullptr : scales.data(), search_);
  copy_bytes(ranges_.data(), found.data(), found.size() * sizeof(float), ranges_.device(), stream);
  synchronise(ranges_.device(), stream);
}

std::vector<float> Rounder::last_ranges() const {
  std::vector<float> ranges(static_cast<std::size_t>(num_ranges_ * 2));
  const Device device = ranges_.device();
  copy_bytes(ranges.data(), ranges_.data(), ranges.size() * sizeof(float), device);
  synchronise(device);
  return ranges;
}

void Rounder::set_ranges(const std::vector<float>& ranges) {
  num_ranges_ = std::ssize(ranges) / 2;
  ranges_ = Buffer<float>(num_ranges_ * 2, place_);
  copy_bytes(ranges_.data(), ranges.data(), ranges.size() * sizeof(float), place_.device,
             place_.stream);
  has_ranges_ = true;
}

}  // namespace tessera::step
