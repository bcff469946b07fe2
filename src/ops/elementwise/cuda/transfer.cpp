// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/memory.hpp"
#include "tessera/ops/elementwise.hpp"

#include "ops/cuda/dense_ops.hpp"

namespace tessera::ops {
namespace {

/// A contiguous fp32 matrix with memory of its own: what crosses between the devices.
struct Staging {
  Staging(std::int64_t rows, std::int64_t cols, Device device, Stream stream)
      : values(rows, cols, default_memory(device), stream) {}

  std::size_t bytes() const { return static_cast<std::size_t>(values.size()) * sizeof(float); }

  Matrix<float> values;
};

template <class AnyOperand>
bool is_plain(const AnyOperand& operand) {
  return operand.precision == Precision::fp32 &&
         (operand.rows <= 1 || operand.stride == operand.cols);
}

}  // namespace

// Conversions to and from what the GPU does not know happen on the CPU, all others on the GPU.
void CudaDenseOps::upload(ConstOperand x, Operand y, Stream stream) const {
  if (x.rows == 0 || x.cols == 0) return;
  Staging host(is_plain(x) ? 0 : x.rows, is_plain(x) ? 0 : x.cols, {}, {});
  ConstOperand from = x;
  if (!is_plain(x)) {
    ops::copy(x, host.values);
    from = host.values;
  }
  const std::size_t bytes = static_cast<std::size_t>(x.rows * x.cols) * sizeof(float);
  if (is_plain(y)) {
    copy_bytes(y.data, from.data, bytes, device_, stream);
  } else {
    Staging staging(x.rows, x.cols, device_, stream);
    copy_bytes(staging.values.data(), from.data, bytes, device_, stream);
    copy(staging.values, y, stream);
  }
  // What was read may belong to the caller, or to this function.
  synchronise(device_, stream);
}

void CudaDenseOps::download(ConstOperand x, Operand y, Stream stream) const {
  if (x.rows == 0 || x.cols == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(x.rows * x.cols) * sizeof(float);
  Staging staging(is_plain(x) ? 0 : x.rows, is_plain(x) ? 0 : x.cols, device_, stream);
  ConstOperand from = x;
  if (!is_plain(x)) {
    copy(x, staging.values, stream);
    from = staging.values;
  }
  if (is_plain(y)) {
    copy_bytes(y.data, from.data, bytes, device_, stream);
    synchronise(device_, stream);
    return;
  }
  Staging host(x.rows, x.cols, {}, {});
  copy_bytes(host.values.data(), from.data, bytes, device_, stream);
  synchronise(device_, stream);
  ops::copy(host.values, y);
}

}  // namespace tessera::ops
