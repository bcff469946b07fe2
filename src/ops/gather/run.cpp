// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/gather.hpp"

#include <cstring>

#include <fmt/format.h>

#include "ops/dense/row_ranges.hpp"
#include "ops/plan/check.hpp"
#include "tessera/detail/ops/plan_only.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/gather/cuda/gather.hpp"
#endif

namespace tessera::ops {
namespace {

void gather_on_cpu(const Checker& check, ConstOperand x, ConstOperand rows, Operand y) {
  const auto numbers = rows.as<std::int32_t>();
  for (std::int64_t i = 0; i < y.rows; ++i) {
    const std::int32_t row = numbers(i, 0);
    if (row < 0 || row >= x.rows) {
      check.fail(fmt::format("rows[{}] is {}, x has {} rows", i, row, x.rows));
    }
  }
  const auto word = bytes_of(x.type, 1);
  const auto row_bytes = static_cast<std::size_t>(x.cols * word);
  const auto* const from = static_cast<const std::byte*>(x.data);
  auto* const to = static_cast<std::byte*>(y.data);
  for_each_row(y.rows, y.cols, [&](std::int64_t i) {
    std::memcpy(to + i * y.stride * word, from + numbers(i, 0) * x.stride * word, row_bytes);
  });
}

}  // namespace

void gather_rows(ConstOperand x, ConstOperand rows, Operand y, Device device, Stream stream) {
  require_available(device);
  const Checker check("gather_rows", device);
  check.floating(x, "x");
  check.matrix(rows, "rows", {ElementType::int32, rows.rows, 1});
  check.matrix(y, "y", {x.type, rows.rows, x.cols});
  check.apart(y, "y", {{x, "x"}, {rows, "rows"}});
  if (plans_only() || y.rows == 0 || y.cols == 0) return;
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) return gather_on_gpu(x, rows, y, device, stream);
#endif
  static_cast<void>(stream);
  gather_on_cpu(check, x, rows, y);
}

}  // namespace tessera::ops
