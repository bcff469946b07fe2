// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/bytes.cuh"
#include "ops/bits/cuda/instances.cuh"

namespace tessera::ops {
namespace {

template <class Policy>
constexpr BitFunction bytes_function() {
  return {Policy::rows,
          Policy::width,
          group_words,
          true,
          [](const BitProduct&) {
            allow_shared(multiply_bytes_kernel<Policy>, bytes_shared_bytes<Policy>);
          },
          [](const BitProduct& product, int split, Stream stream) {
            launch_in_clusters(multiply_bytes_kernel<Policy>,
                               bit_grid(product, Policy::rows, Policy::width, split),
                               Policy::groups * 128, bytes_shared_bytes<Policy>, split, stream,
                               product);
          }};
}

std::int64_t padded_to(std::int64_t columns, int width) {
  return (columns + width - 1) / width * width;
}

std::int64_t num_groups(std::int64_t row_words) {
  return (row_words + group_words - 1) / group_words;
}

}  // namespace

const BitFunction bytes_functions[num_bytes_shapes] = {
    bytes_function<BytesPolicy<4, 128, 3>>(),
    bytes_function<BytesPolicy<4, 64, 3>>(),
};

std::int64_t byte_operand_bytes(std::int64_t columns, std::int64_t row_words, int width) {
  return num_groups(row_words) * group_bits * padded_to(columns, width);
}

void planes_to_bytes(const BitRows& b, int width, std::uint8_t* bytes, Stream stream) {
  constexpr int threads = 128;
  const std::int64_t columns = padded_to(b.rows, width);
  const std::int64_t groups = num_groups(b.row_words);
  const auto kernel = width == 128 ? planes_to_bytes_kernel<128> : planes_to_bytes_kernel<64>;
  cuda::launch_overlapped(kernel, cuda::num_blocks(groups * columns * group_words, threads),
                          threads, stream, b, bytes, columns, groups);
}

}  // namespace tessera::ops
