// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <gtest/gtest.h>

#include "graph/device_build.hpp"
#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/spmm.hpp"

/// Graphs built on a GPU equal those built on the CPU, bit for bit.
namespace tessera {
namespace {

using testing::Coo;

class CudaBuild : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }

  static BuildOptions on_gpu(BuildOptions options = {}) {
    options.device = device;
    return options;
  }

  static constexpr Device device{DeviceKind::cuda, 0};
};

std::vector<Coo> odd_inputs() {
  std::vector<Coo> inputs = {{0, 0, {}, {}, {}}, {5, 7, {}, {}, {}}, {1, 1, {0}, {0}, {2.5f}}};
  std::uint64_t seed = 1;
  for (const VertexId rows : {1, 15, 16, 17, 31, 33, 1000}) {
    for (const VertexId cols : {1, 33, 257}) {
      inputs.push_back(testing::random_coo(rows, cols, 4 * rows, seed++));
    }
  }
  // A hub, and a row of copies of one edge.
  Coo hub{3, 5000, {}, {}, {}};
  for (VertexId col = 4999; col >= 0; --col) {
    hub.rows.push_back(col % 7 == 0 ? 2 : 1);
    hub.cols.push_back(col % 5 == 0 ? 17 : col);
    hub.values.push_back(static_cast<float>(col % 9) - 3.5f);
  }
  inputs.push_back(hub);
  return inputs;
}

TEST_F(CudaBuild, EqualsTheCpu) {
  for (const Coo& coo : odd_inputs()) {
    for (const Duplicates duplicates : {Duplicates::sum, Duplicates::first, Duplicates::keep}) {
      for (const bool keep_edge_ids : {false, true}) {
        for (const bool with_values : {false, true}) {
          SCOPED_TRACE(::testing::Message()
                       << coo.num_rows << " x " << coo.num_cols << ", " << coo.rows.size()
                       << " edges, ids " << keep_edge_ids << ", values " << with_values);
          BuildOptions options;
          options.duplicates = duplicates;
          options.keep_edge_ids = keep_edge_ids;
          const Graph expected = coo.build(options, with_values);
          const Graph built = coo.build(on_gpu(options), with_values);
          EXPECT_EQ(built.device(), device);
          EXPECT_EQ(built.num_edges(), expected.num_edges());
          EXPECT_EQ(built.has_repeated_edges(), expected.has_repeated_edges());
          EXPECT_EQ(built, expected);
          built.validate();
        }
      }
    }
  }
}

TEST_F(CudaBuild, EqualsTheCpuWithoutDuplicates) {
  for (const Coo& coo : odd_inputs()) {
    const Coo unique = testing::without_duplicates(coo);
    BuildOptions options;
    options.keep_edge_ids = true;
    EXPECT_EQ(unique.build(on_gpu(options)), unique.build(options));
    EXPECT_EQ(unique.build(on_gpu(), false), unique.build({}, false));
  }
}

TEST_F(CudaBuild, TakesEdgesThatLieOnTheGpu) {
  const Coo coo = testing::without_duplicates(testing::random_coo(300, 300, 2000, 5));
  const auto there = [&](const auto& values) {
    using T = std::remove_cvref_t<decltype(values[0])>;
    Buffer<T> copy(static_cast<std::int64_t>(values.size()), default_memory(device));
    copy_bytes(copy.data(), values.data(), values.size() * sizeof(T), device);
    synchronise(device);
    return copy;
  };
  const Buffer<VertexId> rows = there(coo.rows), cols = there(coo.cols);
  const Buffer<float> values = there(coo.values);
  EXPECT_EQ(from_coo(300, 300, rows.span(), cols.span(), values.span(), on_gpu()), coo.build());
  EXPECT_EQ(from_edges(300, cols.span(), rows.span(), values.span(), on_gpu()), coo.build());
}

TEST_F(CudaBuild, SaysTheSameOfWhatIsWrong) {
  const std::vector<VertexId> rows = {0, 2, 1, 2}, cols = {1, 0, 3, 0}, wild = {0, 1, 9, -1};
  for (const BuildOptions& options : {BuildOptions{}, on_gpu()}) {
    testing::expect_error(ErrorCode::bad_data, {"row 2", "column 0", "more than once"},
                          [&] { from_coo(3, 4, rows, cols, {}, options); });
    testing::expect_error(ErrorCode::bad_data, {"column index 9", "[0, 4)", "position 2"},
                          [&] { from_coo(3, 4, rows, wild, {}, options); });
    testing::expect_error(ErrorCode::bad_data, {"target index 9", "position 2"},
                          [&] { from_edges(4, rows, wild, {}, options); });
    testing::expect_error(ErrorCode::invalid_argument, {"values"},
                          [&] { from_coo(3, 4, rows, cols, std::vector<float>{1}, options); });
  }
}

TEST_F(CudaBuild, SaysTheSameOfValuesThatAreNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<VertexId> rows = {2, 0, 0, 2}, cols = {1, 0, 3, 1};
  const std::vector<float> spoiled = {1, 2, -infinity, infinity}, large = {3e38f, 2, 3, 3e38f};
  for (BuildOptions options : {BuildOptions{}, on_gpu()}) {
    options.duplicates = Duplicates::sum;
    testing::expect_error(ErrorCode::bad_data, {"values[2] is -inf", "--nonfinite allow"},
                          [&] { from_coo(3, 4, rows, cols, spoiled, options); });
    testing::expect_error(ErrorCode::bad_data, {"values[2] is inf", "smaller"},
                          [&] { from_coo(3, 4, rows, cols, large, options); });
    options.duplicates = Duplicates::first;
    EXPECT_EQ(from_coo(3, 4, rows, cols, large, options).values()[2], 3e38f);
    options.nonfinite = Nonfinite::allow;
    EXPECT_EQ(from_coo(3, 4, rows, cols, spoiled, options).values()[1], -infinity);
    options.duplicates = Duplicates::sum;
    EXPECT_EQ(from_coo(3, 4, rows, cols, large, options).values()[2], infinity);
  }
}

TEST_F(CudaBuild, NormalisesAsTheCpu) {
  for (const VertexId vertices : {0, 1, 17, 33, 1000}) {
    const Coo coo =
        testing::without_duplicates(testing::random_coo(vertices, vertices, 3 * vertices, 9));
    for (const bool with_values : {false, true}) {
      for (const bool add_self_loops : {false, true}) {
        SCOPED_TRACE(::testing::Message() << vertices << " " << with_values << add_self_loops);
        BuildOptions options;
        options.keep_edge_ids = true;
        EXPECT_EQ(gcn_normalised(coo.build(on_gpu(options), with_values), add_self_loops),
                  gcn_normalised(coo.build(options, with_values), add_self_loops));
        EXPECT_EQ(mean_normalised(coo.build(on_gpu(options), with_values)),
                  mean_normalised(coo.build(options, with_values)));
      }
    }
  }
}

TEST_F(CudaBuild, DrawsACirculantGraph) {
  const Graph graph = detail::circulant_on_device(50, 3, 21, device);
  std::vector<VertexId> rows, cols;
  for (VertexId row = 0; row < 50; ++row) {
    for (VertexId k = 0; k < 3; ++k) {
      rows.push_back(row);
      cols.push_back((row + 21 * k) % 50);
    }
  }
  EXPECT_EQ(graph, from_coo(50, 50, rows, cols));
}

/// Plans take such graphs as they are, forward and backward.
TEST_F(CudaBuild, FeedsPlans) {
  const Coo coo = testing::without_duplicates(testing::random_coo(100, 130, 700, 11));
  const auto result_on = [&](const Graph& graph, bool backward) {
    const std::int64_t rows = backward ? graph.num_cols() : graph.num_rows();
    const std::int64_t others = backward ? graph.num_rows() : graph.num_cols();
    Matrix<float> x(others, 16), y(rows, 16);
    for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i % 13);
    Matrix<float> x_there(others, 16, default_memory(device));
    Matrix<float> y_there(rows, 16, default_memory(device));
    copy_bytes(x_there.data(), x.data(), static_cast<std::size_t>(x.size()) * 4, device);
    ops::SpmmOptions options;
    options.device = device;
    options.features = 16;
    if (backward) {
      options.backward = true;
      run_backward(ops::plan_spmm(graph, options), {x_there}, {y_there});
    } else {
      run(ops::plan_spmm(graph, options), {x_there}, {y_there});
    }
    copy_bytes(y.data(), y_there.data(), static_cast<std::size_t>(y.size()) * 4, device);
    synchronise(device);
    return std::vector<float>(y.data(), y.data() + y.size());
  };
  for (const bool with_values : {false, true}) {
    const Graph built = coo.build(on_gpu(), with_values);
    EXPECT_EQ(result_on(built, false), result_on(coo.build({}, with_values), false));
    // The CPU's transpose, multiplied forward: what sorting on the GPU must agree with.
    EXPECT_EQ(result_on(built, true), result_on(transposed(coo.build({}, with_values)), false));
  }
}

TEST(DeviceBuild, WithoutAGpuIsAClearError) {
  if (num_gpus() > 0) GTEST_SKIP() << "there is a GPU";
  BuildOptions options;
  options.device = {DeviceKind::cuda, 0};
  testing::expect_error(ErrorCode::backend_unavailable, {},
                        [&] { from_coo(1, 1, {}, {}, {}, options); });
}

/// Arrays on the GPU come when they are asked for, once, and all copies share them.
TEST_F(CudaBuild, LeavesArraysThereUntilAskedFor) {
  const Coo coo = testing::without_duplicates(testing::random_coo(500, 500, 20000, 13));
  BuildOptions options;
  options.keep_edge_ids = true;
  const std::int64_t before = host_memory_use().current_bytes;
  const Graph graph = gcn_normalised(coo.build(on_gpu(options)));
  const auto grown = [&] { return host_memory_use().current_bytes - before; };
  EXPECT_TRUE(graph.has_values() && graph.has_edge_ids() && graph.has_row_scale());
  EXPECT_LT(grown(), 2 * 501 * 8 + 1000) << "offsets of rows at most";
  const Graph copy = graph;
  EXPECT_EQ(graph.values().data(), copy.values().data());
  EXPECT_EQ(graph.col_indices().data(), copy.col_indices().data());
  EXPECT_EQ(graph.row_scale().data(), graph.col_scale().data());
  EXPECT_EQ(graph, gcn_normalised(coo.build(options)));
}

}  // namespace
}  // namespace tessera
