// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tessera/nn/names.hpp"
#include "tessera/nn/range_search.hpp"
#include "tessera/ops/rounding.hpp"

namespace tessera::nn {

/// Tensors as codes of so many bits would give them back (ops/rounding.hpp). With 0 bits it leaves
/// everything as it is.
class Rounder {
 public:
  Rounder(int bits, Placement placement);

  bool rounds() const noexcept { return bits_ > 0; }
  int bits() const noexcept { return bits_; }

  /// The tensor itself, or a rounded copy that lives until the next call.
  /// `row_scale`: of the rows before they become codes (ops/rounding.hpp); null: 1.
  const Tensor& operator()(const Tensor& x, const Context& context,
                           ops::RoundingRange range = ops::RoundingRange::matrix,
                           const Tensor* row_scale = nullptr);
  void in_place(Tensor& x, const Context& context,
                ops::RoundingRange range = ops::RoundingRange::matrix,
                const Tensor* row_scale = nullptr);

  /// The ranges of the last call, two numbers each; none before the first. Waits for the device.
  std::vector<float> last_ranges() const;
  /// From now on calls take these ranges and find none. A call that needs another number of them
  /// is an error.
  void set_ranges(const std::vector<float>& ranges);
  /// Where ranges that are not given come from; those of rows, which are weights, always have all
  /// numbers. Others than these are found by waiting for the device.
  void set_search(const RangeSearch& search) { search_ = search; }

 private:
  void round(const Tensor& x, ops::RoundingRange range, const Tensor* row_scale, Tensor& y,
             const Context& context);
  void search(const Tensor& x, ops::RoundingRange range, const Tensor* row_scale, Stream stream);

  int bits_;
  Place place_;
  Tensor rounded_;
  Buffer<float> ranges_;
  std::int64_t num_ranges_ = 0;  ///< of the last call
  bool has_ranges_ = false;      ///< that are given
  RangeSearch search_;
};

}  // namespace tessera::nn
