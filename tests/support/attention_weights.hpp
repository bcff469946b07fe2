// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/attention_kernels.hpp"
#include "support/matrices.hpp"
#include "support/placed_matrix.hpp"

namespace tessera::test {

/// Weights of a plan, in a padded matrix of which nothing else may be written.
template <class T>
void check_weights(AttentionOptions options) {
  options.precision = ops::PrecisionOf<T>::value;
  if (!supports(options.kernel, options)) return testing::note_declined(describe(options));
  SCOPED_TRACE(describe(options) + ", " + to_string(options.precision));
  const Graph graph = testing::random_graph(33, 20, 200, 13, false);
  AttentionCase<T> run(graph, options, 1500);
  run.run_all();
  const std::int64_t heads = options.heads;
  Padded<T> weights(graph.num_edges(), heads);
  PlacedAttention<T> placed(run);
  PlacedMatrix<T> placed_weights(weights.whole(), placed.device);
  MatrixView<T> inner = placed_weights.view();
  inner.data += weights.margin();
  inner.cols = heads;
  ops::attention_weights(placed.plan, placed.inputs(), placed.log_sum.view(), inner);
  placed_weights.fetch();
  EXPECT_TRUE(weights.margins_intact());
  Matrix<double> expected(graph.num_edges(), heads);
  const auto reference = reference_of(run);
  ops::reference::attention_weights(graph, run.options, reference.inputs(), expected);
  // Each is the exponential of its score less `log_sum`, which is as right as the weights summed
  // up.
  const double share =
      (sizeof(T) == 2 ? 0x1p-8 : 0) + ops::attention_weight_error(run.options.kernel, run.options);
  for (std::int64_t edge = 0; edge < graph.num_edges(); ++edge) {
    for (std::int64_t head = 0; head < heads; ++head) {
      EXPECT_NEAR(static_cast<double>(static_cast<float>(weights.view()(edge, head))),
                  expected(edge, head), 1e-5 + share * expected(edge, head));
    }
  }
}

}  // namespace tessera::test
