// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/cuda/transfer.hpp"

#include <cstddef>

#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"

#include "core/cuda_handles.hpp"

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

/// Both in this process.
void convert(const ConstOperand& x, const Operand& y) {
  with_type(x.type, [&]<class From>(From) {
    with_type(y.type, [&]<class To>(To) {
      parallel_for(x.rows, even_grain(x.rows), [&](std::int64_t row) {
        const From* const read = static_cast<const From*>(x.data) + row * x.stride;
        To* const written = static_cast<To*>(y.data) + row * y.stride;
        for (std::int64_t i = 0; i < x.cols; ++i) {
          written[i] = static_cast<To>(static_cast<float>(read[i]));
        }
      });
    });
  });
}

/// Copies rows of one type and waits, since what is read or written belongs to the caller.
void copy_rows(const ConstOperand& x, const Operand& y, Device device, Stream stream) {
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::size_t>(bytes_of(x.type, elements));
  };
  const bool plain = x.rows <= 1 || (x.stride == x.cols && y.stride == y.cols);
  if (plain) {
    copy_bytes(y.data, x.data, bytes(x.rows * x.cols), device, stream);
  } else {
    cuda_check(cudaMemcpy2DAsync(y.data, bytes(y.stride), x.data, bytes(x.stride), bytes(x.cols),
                                 static_cast<std::size_t>(x.rows), cudaMemcpyDefault,
                                 static_cast<cudaStream_t>(stream.handle)),
               "copying a matrix");
  }
  synchronise(device, stream);
}

}  // namespace

void transfer(const ConstOperand& x, const Operand& y, Device device, Stream stream) {
  if (x.type == y.type) return copy_rows(x, y, device, stream);
  const bool downloads = x.device == device;
  const ConstOperand there = downloads ? x : ConstOperand(y);
  Buffer<std::byte> memory(bytes_of(there.type, checked_area(there.rows, there.cols)));
  const Operand here(memory.data(), there.type, {}, there.rows, there.cols);
  if (downloads) {
    copy_rows(x, here, device, stream);
    convert(here, y);
  } else {
    convert(x, here);
    copy_rows(here, y, device, stream);
  }
}

}  // namespace tessera::ops
