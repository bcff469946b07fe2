// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/spmm/kernel.hpp"
#include "support/comparisons.hpp"
#include "support/kernel_names.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/random_matrix.hpp"
#include "support/run_kernel.hpp"
#include "tessera/ops/spmm.hpp"

/// The registered spmm kernels on tiles, run by themselves.
namespace tessera::ops {

inline std::vector<std::string> tile_kernel_names() {
  std::vector<std::string> names;
  for (const std::string& name : testing::kernel_names("spmm")) {
    if (!testing::kernel_info(name).exact_nonfinite) names.push_back(name);
  }
  return names;
}

using testing::integers;

/// Runs the kernel itself, so that a backward pass needs no other op. Returns Y, or nothing where
/// the kernel does not take the problem.
template <class T>
Matrix<T> product(const std::string& name, const SpmmProblem& problem, const Matrix<T>& x,
                  const Matrix<T>& edge_values = {}) {
  const SpmmKernel& kernel = testing::kernel_named(spmm_kernels(), name);
  const std::string reason = kernel.why_not(problem);
  if (!reason.empty()) {
    testing::note_declined(reason);
    return {};
  }
  testing::note_compared();
  const bool forward = problem.pass == SpmmPass::forward;
  const VertexId rows = forward ? problem.graph.num_rows() : problem.graph.num_cols();
  // A margin of 8 keeps rows on 16-byte boundaries.
  test::Padded<T> padded_x(x, 8);
  test::Padded<T> padded_y(rows, x.cols(), 8);
  test::Padded<T> padded_values(edge_values, 1);
  test::Placed<T> placed_x(padded_x, problem.device);
  test::Placed<T> placed_values(padded_values, problem.device);
  test::Placed<T> placed_y(padded_y, problem.device);
  SpmmCall call;
  call.x = placed_x.view();
  call.y = placed_y.view();
  if (edge_values.rows() > 0) call.edge_values = placed_values.view();
  test::run_kernel(kernel, problem, call, [&] { placed_y.send(); });
  placed_y.fetch();
  EXPECT_TRUE(padded_y.margins_intact());
  return padded_y.inner();
}

template <class T>
SpmmProblem problem_of(const Graph& graph, std::int64_t features, SpmmPass pass) {
  SpmmProblem problem;
  problem.graph = graph;
  problem.precision = PrecisionOf<T>::value;
  problem.features = features;
  problem.pass = pass;
  problem.device = {DeviceKind::cuda, 0};
  problem.reorders = true;
  return problem;
}

inline Graph with_integer_values(const Graph& graph) {
  std::vector<float> values(static_cast<std::size_t>(graph.num_edges()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3.0f;
  return graph.with_values(SharedArray<float>(std::move(values)));
}

}  // namespace tessera::ops
