// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/matrix.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/types.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::links {

struct TopOptions {
  std::int64_t count = 10;  ///< on a GPU up to `ops::longest_top_list`
  /// Row i lists candidates that query i is not to get: those it knows already, say.
  const Graph* leave_out = nullptr;
  /// Products of queries and candidates are made in blocks that take no more than this; 0: 32 MiB
  /// on a CPU, 512 MiB on a GPU.
  std::int64_t block_bytes = 0;
  /// Where the embeddings lie; lists come to this process. On a GPU fp32 is never rounded to tf32.
  Place place = {};
};

/// Row i names the candidates of query i, the best first, and their scores; -1 and -infinity where
/// there are no more.
struct TopLists {
  Matrix<VertexId> candidates;
  Matrix<float> scores;
};

/// The candidates with the highest dot products for every query: exact, the lower id first among
/// ties, with the same bits for any number of threads. A score that is not a number is a `bad_data`
/// error, widths that differ an `invalid_argument` error.
TopLists top_candidates(MatrixView<const float> queries, MatrixView<const float> candidates,
                        const TopOptions& options = {});

}  // namespace tessera::links
