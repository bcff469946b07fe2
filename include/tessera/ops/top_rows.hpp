// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/core/matrix.hpp"
#include "tessera/core/types.hpp"
#include "tessera/ops/operand.hpp"

/// The best columns of each row of scores, found block by block of columns: exact, the lower column
/// first among equal scores. So all products of two large matrices can be compared without being
/// kept.
namespace tessera::ops {

/// A score and its column as one number: the larger is the better one. 0 stands for none.
using TopKey = std::uint64_t;

/// Columns that are not to be listed: those of row i, in their order, from `offsets[i]` up to
/// `offsets[i + 1]`, on the op's device. Without offsets there are none.
struct LeftOut {
  const EdgeOffset* offsets = nullptr;
  const VertexId* cols = nullptr;
};

/// How large the blocks are in which products of rows and columns are compared, so that one takes
/// no more than so many bytes; 0: 32 MiB on a CPU, where a few rows of it fit the cache, and 512
/// MiB on a GPU, whose kernels want many rows and columns. From one row to the next are `stride`
/// scores.
struct TopBlock {
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  std::int64_t stride = 1;
};
TopBlock top_block(std::int64_t rows, std::int64_t cols, std::int64_t bytes, Device device = {});

/// Offers a block of fp32 scores, of columns from `first_col` on, to the lists of its rows: row i
/// of `keys` has the best so far, the best first, and at first 0 throughout. Blocks of a row come
/// in the order of their columns. `not_a_number`, on the device, becomes 1 where a score is none;
/// otherwise it stays as it is.
///
/// On a GPU lists have `longest_top_list` places at most; up to 32 they take little more than the
/// time to read the scores.
void offer_to_top(ConstOperand scores, std::int64_t first_col, const LeftOut& left_out,
                  MatrixView<TopKey> keys, std::int32_t* not_a_number, Device device = {},
                  Stream stream = {});
inline constexpr std::int64_t longest_top_list = 4096;

/// Columns and scores of so many keys; -1 and -infinity where there is none.
void list_top(const TopKey* keys, std::int64_t size, VertexId* cols, float* scores,
              Device device = {}, Stream stream = {});

}  // namespace tessera::ops
