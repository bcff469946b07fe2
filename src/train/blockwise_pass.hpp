// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tessera/nn/model.hpp"
#include "tessera/ops/dense_workspace.hpp"

#include "train/neighbour_draws.hpp"

namespace tessera::train {

/// Throws `invalid_argument` where a model cannot be run so.
void require_blocks(const nn::ModelConfig& config, bool graph_task);

/// A pass over a whole graph, layer by layer and of each layer so many rows at a time, with all of
/// their neighbours. Beside the features there are two matrices with a row for each vertex, what a
/// layer reads and what it writes; all else is as large as a block and its neighbours. The results
/// are those of a pass over all rows within rounding, since sums are added in another order.
class BlockwisePass {
 public:
  /// The model outlives it; `graph` lies in this process, or comes to it.
  BlockwisePass(nn::Model& model, const Graph& graph, std::int64_t rows_at_a_time,
                const ops::PlanOptions& plans);

  /// The logits of all vertices, until the next run.
  const step::Tensor& run(const nn::Input& features, Stream stream,
                          const ops::DenseWorkspace* workspace);

 private:
  /// A layer that reads neighbours and those behind it that read none, or those before the first.
  struct Stage {
    std::int64_t first = 0, end = 0, hops = 0;
  };

  void run_block(const Stage& stage, std::int64_t begin, std::int64_t end,
                 const nn::Input& features, Stream stream, const ops::DenseWorkspace* workspace);
  void find_stages();

  nn::Model& model_;
  VertexId vertices_;
  std::int64_t rows_;
  ops::PlanOptions plans_;
  std::vector<Stage> stages_;
  std::map<std::int64_t, NeighbourDraws> draws_;  ///< of all neighbours, by the number of hops
  step::Tensor read_, written_;
};

}  // namespace tessera::train
