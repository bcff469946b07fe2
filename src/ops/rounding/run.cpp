// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/rounding.hpp"

#include <fmt/format.h>

#include "ops/check.hpp"
#include "ops/check_options.hpp"
#include "ops/dense_ops.hpp"
#include "tessera/quant/affine.hpp"

namespace tessera::ops {

void round_to_codes(ConstOperand x, int bits, RoundingRange range, MatrixView<float> ranges,
                    Operand y, Device device, Stream stream, ConstOperand row_scale) {
  const Checker check("round_to_codes", device);
  quant::check_bits(bits, "round_to_codes");
  check_enum("range", range, RoundingRange::columns);
  check.floating(x, "x");
  check.that(device.kind != DeviceKind::cpu || x.type != ElementType::bf16,
             "x is bf16, expected fp32 or fp64 on the CPU");
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(y, "y", x, "x");
  const std::int64_t num_ranges = range == RoundingRange::matrix ? 1
                                  : range == RoundingRange::rows ? x.rows
                                                                 : x.cols;
  check.matrix(ranges, "ranges", {ElementType::fp32, num_ranges, 2});
  check.optional_matrix(row_scale, "row_scale", {ElementType::fp32, x.rows, 1});
  dense_ops(device).round_to_codes({x, bits, range, ranges.data, y, row_scale}, stream);
}

}  // namespace tessera::ops
