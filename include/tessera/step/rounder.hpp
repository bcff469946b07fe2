// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tessera/ops/rounding.hpp"
#include "tessera/step/range_search.hpp"
#include "tessera/step/tensor.hpp"

namespace tessera::step {

/// Matrices as codes of so many bits would give them back (ops/rounding.hpp). With 0 bits it leaves
/// everything as it is.
class Rounder {
 public:
  Rounder(int bits, Placement placement);

  bool rounds() const noexcept { return bits_ > 0; }
  int bits() const noexcept { return bits_; }

  /// y = x rounded; both may be the same memory. `row_scale`: of the rows before they become codes
  /// (ops/rounding.hpp); absent: 1.
  void round(ops::ConstOperand x, ops::RoundingRange range, ops::ConstOperand row_scale,
             ops::Operand y, Stream stream);

  /// The ranges of the last call, two numbers each; none before the first. Waits for the device.
  std::vector<float> last_ranges() const;
  /// From now on calls take these ranges and find none. A call that needs another number of them
  /// is an error.
  void set_ranges(const std::vector<float>& ranges);
  /// Where ranges that are not given come from; those of rows, which are weights, always have all
  /// numbers. Others than these are found by waiting for the device.
  void set_search(const RangeSearch& search) { search_ = search; }

 private:
  void search(ops::ConstOperand x, ops::RoundingRange range, ops::ConstOperand row_scale,
              Stream stream);

  int bits_;
  Place place_;
  Buffer<float> ranges_;
  std::int64_t num_ranges_ = 0;  ///< of the last call
  bool has_ranges_ = false;      ///< that are given
  RangeSearch search_;
};

}  // namespace tessera::step
