// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"

#include "core/cuda_handles.hpp"
#include "ops/cuda/dense_ops.hpp"

/// Between this process and a GPU. Numbers are converted here, so that the GPU needs no memory for
/// it.
namespace tessera::ops {
namespace {

template <class Visit>
void with_type(ElementType type, Visit&& visit) {
  switch (type) {
    case ElementType::fp64: return visit(double{});
    case ElementType::bf16: return visit(Bfloat16{});
    case ElementType::fp16: return visit(Float16{});
    default: return visit(float{});
  }
}

template <class From, class To>
void convert_row(const From* from, To* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
}

/// Both in this process.
void convert(const ConstOperand& x, const Operand& y) {
  with_type(x.type, [&](auto from) {
    with_type(y.type, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      parallel_for(x.rows, even_grain(x.rows), [&](std::int64_t row) {
        convert_row(static_cast<const From*>(x.data) + row * x.stride,
                    static_cast<To*>(y.data) + row * y.stride, x.cols);
      });
    });
  });
}

/// A contiguous matrix of this process, of the type of `like`.
class HostMatrix {
 public:
  explicit HostMatrix(const ConstOperand& like)
      : memory_(bytes_of(like.type, checked_area(like.rows, like.cols))),
        operand_(memory_.data(), like.type, {}, like.rows, like.cols) {}
  const Operand& operand() const noexcept { return operand_; }

 private:
  Buffer<std::byte> memory_;
  Operand operand_;
};

/// Copies rows of one type and waits, since what is read or written belongs to the caller.
void copy_rows(const ConstOperand& x, const Operand& y, Device device, Stream stream) {
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::size_t>(bytes_of(x.type, elements));
  };
  const bool plain = x.rows <= 1 || (x.stride == x.cols && y.stride == y.cols);
  if (plain) {
    copy_bytes(y.data, x.data, bytes(x.rows * x.cols), device, stream);
  } else {
    const cuda_backend::CurrentDevice current(device.index);
    cuda_check(cudaMemcpy2DAsync(y.data, bytes(y.stride), x.data, bytes(x.stride), bytes(x.cols),
                                 static_cast<std::size_t>(x.rows), cudaMemcpyDefault,
                                 static_cast<cudaStream_t>(stream.handle)),
               "copying a matrix");
  }
  synchronise(device, stream);
}

}  // namespace

void CudaDenseOps::upload(ConstOperand x, Operand y, Stream stream) const {
  if (x.rows == 0 || x.cols == 0) return;
  if (x.type == y.type) return copy_rows(x, y, device_, stream);
  const HostMatrix host(y);
  convert(x, host.operand());
  copy_rows(host.operand(), y, device_, stream);
}

void CudaDenseOps::download(ConstOperand x, Operand y, Stream stream) const {
  if (x.rows == 0 || x.cols == 0) return;
  if (x.type == y.type) return copy_rows(x, y, device_, stream);
  const HostMatrix host(x);
  copy_rows(x, host.operand(), device_, stream);
  convert(host.operand(), y);
}

}  // namespace tessera::ops
