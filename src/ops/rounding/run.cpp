// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/rounding.hpp"

#include <fmt/format.h>

#include "ops/dense/dense_ops.hpp"
#include "ops/plan/check.hpp"
#include "tessera/quant/affine.hpp"

namespace tessera::ops {

namespace {

void round(const char* op, const RoundingCall& call, const ConstOperand& ranges, Device device,
           Stream stream) {
  const ConstOperand& x = call.x;
  const Checker check(op, device);
  quant::check_bits(call.bits, op);
  check_enum("range", call.range, RoundingRange::columns);
  check.floating(x, "x");
  check.that(device.kind != DeviceKind::cpu || x.type != ElementType::bf16,
             "x is bf16, expected fp32 or fp64 on the CPU");
  check.matrix(call.y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(call.y, "y", x, "x");
  const std::int64_t num_ranges = call.range == RoundingRange::matrix ? 1
                                  : call.range == RoundingRange::rows ? x.rows
                                                                      : x.cols;
  check.matrix(ranges, "ranges", {ElementType::fp32, num_ranges, 2});
  check.optional_matrix(call.row_scale, "row_scale", {ElementType::fp32, x.rows, 1});
  dense_ops(device).run(call, stream);
}

}  // namespace

void round_to_codes(ConstOperand x, int bits, RoundingRange range, MatrixView<float> ranges,
                    Operand y, Device device, Stream stream, ConstOperand row_scale) {
  round("round_to_codes", {x, bits, range, ranges.data, ranges.data, y, row_scale}, ranges, device,
        stream);
}

void round_within(ConstOperand x, int bits, RoundingRange range, MatrixView<const float> ranges,
                  Operand y, Device device, Stream stream, ConstOperand row_scale) {
  round("round_within", {x, bits, range, ranges.data, nullptr, y, row_scale}, ranges, device,
        stream);
}

}  // namespace tessera::ops
