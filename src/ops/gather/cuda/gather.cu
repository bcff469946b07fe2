// SPDX-License-Identifier: Apache-2.0
#include "ops/gather/cuda/gather.hpp"

#include <cstdint>

#include "core/cuda_handles.hpp"
#include "cuda/launch.cuh"
#include "cuda/search.cuh"

namespace tessera::ops {
namespace {

/// Rows in words of one type. Bytes are moved, whatever they mean.
template <class Word>
struct GatheredRows {
  const Word* from = nullptr;
  std::int64_t from_stride = 0;
  const std::int32_t* rows = nullptr;
  std::int64_t rows_stride = 1;
  std::int64_t num_rows = 0;
  Word* to = nullptr;
  std::int64_t to_stride = 0;
  std::int64_t words = 0;  ///< of a row
};

template <class Word>
__global__ void gather_words(const GatheredRows<Word> gathered) {
  const std::int64_t k = cuda::thread_number();
  const std::int64_t row = k / gathered.words;
  if (row >= gathered.num_rows) return;
  const std::int64_t word = k - row * gathered.words;
  const std::int64_t old = gathered.rows[row * gathered.rows_stride];
  gathered.to[row * gathered.to_stride + word] = gathered.from[old * gathered.from_stride + word];
}

/// Whether all rows of both begin and end on boundaries of so many bytes.
bool fits(ConstOperand x, Operand y, std::int64_t bytes) {
  const auto element = bytes_of(x.type, 1);
  const auto on_boundary = [&](const void* data) {
    return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0;
  };
  return on_boundary(x.data) && on_boundary(y.data) && x.cols * element % bytes == 0 &&
         x.stride * element % bytes == 0 && y.stride * element % bytes == 0;
}

template <class Word>
void gather_as(ConstOperand x, ConstOperand rows, Operand y, Stream stream) {
  const auto element = bytes_of(x.type, 1);
  const auto words = [&](std::int64_t elements) {
    return elements * element / static_cast<std::int64_t>(sizeof(Word));
  };
  const GatheredRows<Word> gathered = {static_cast<const Word*>(x.data),
                                       words(x.stride),
                                       static_cast<const std::int32_t*>(rows.data),
                                       rows.stride,
                                       y.rows,
                                       static_cast<Word*>(y.data),
                                       words(y.stride),
                                       words(x.cols)};
  cuda::launch_each(gather_words<Word>, y.rows * gathered.words, stream, gathered);
}

}  // namespace

void gather_on_gpu(ConstOperand x, ConstOperand rows, Operand y, Device device, Stream stream) {
  const cuda_backend::CurrentDevice current(device.index);
  if (fits(x, y, sizeof(uint4))) return gather_as<uint4>(x, rows, y, stream);
  if (bytes_of(x.type, 1) == sizeof(std::uint16_t)) {
    return gather_as<std::uint16_t>(x, rows, y, stream);
  }
  gather_as<std::uint32_t>(x, rows, y, stream);
}

}  // namespace tessera::ops
