// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/borrow.hpp"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/matrix.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera {
namespace {

/// The arrays of a graph, in both widths.
struct Csr {
  explicit Csr(const Graph& graph)
      : num_rows(graph.num_rows()),
        num_cols(graph.num_cols()),
        offsets(graph.row_offsets().begin(), graph.row_offsets().end()),
        narrow_offsets(offsets.begin(), offsets.end()),
        cols(graph.col_indices().begin(), graph.col_indices().end()),
        wide_cols(cols.begin(), cols.end()),
        values(graph.values().begin(), graph.values().end()) {}

  VertexId num_rows, num_cols;
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> narrow_offsets;
  std::vector<std::int32_t> cols;
  std::vector<std::int64_t> wide_cols;
  std::vector<float> values;
};

Graph some_graph(VertexId rows = 33, VertexId cols = 17) {
  return testing::without_duplicates(testing::random_coo(rows, cols, 3 * rows, 4)).build();
}

TEST(Borrow, ReadsTheArraysWhereTheyAre) {
  const Csr csr(some_graph());
  const Graph graph = borrow_csr(csr.num_rows, csr.num_cols, {csr.offsets, csr.cols, csr.values});
  EXPECT_EQ(graph, some_graph());
  EXPECT_EQ(graph.row_offsets().data(), csr.offsets.data());
  EXPECT_EQ(graph.col_indices().data(), csr.cols.data());
  EXPECT_EQ(graph.values().data(), csr.values.data());
}

TEST(Borrow, TakesEveryWidth) {
  const Csr csr(some_graph());
  EXPECT_EQ(borrow_csr(33, 17, {csr.narrow_offsets, csr.cols, csr.values}), some_graph());
  EXPECT_EQ(borrow_csr(33, 17, {csr.offsets, csr.wide_cols, csr.values}), some_graph());
  EXPECT_EQ(borrow_csr(33, 17, {csr.narrow_offsets, csr.wide_cols}), some_graph().with_values({}));
}

TEST(Borrow, KeepsTheOwnerWhileAnythingNeedsTheArrays) {
  auto csr = std::make_shared<const Csr>(some_graph());
  const std::weak_ptr<const Csr> alive = csr;
  {
    Graph other;
    {
      const Graph graph = borrow_csr(33, 17, {csr->offsets, csr->cols, csr->values, csr});
      csr.reset();
      other = graph.with_values({});
    }
    EXPECT_FALSE(alive.expired());
    EXPECT_EQ(other.col_indices().size(), some_graph().num_edges());
  }
  EXPECT_TRUE(alive.expired());
}

TEST(Borrow, TakesGraphsWithoutRowsOrEdges) {
  const std::vector<std::int64_t> none = {0}, empty_rows = {0, 0, 0};
  EXPECT_EQ(borrow_csr(0, 0, {none, {}}), Graph());
  EXPECT_EQ(borrow_csr(2, 5, {empty_rows, {}}).num_edges(), 0);
}

TEST(Borrow, NamesWhatIsWrong) {
  using testing::expect_error;
  const std::vector<std::int64_t> offsets = {0, 2, 3};
  const auto borrow = [&](const Indices& cols, const BorrowOptions& options = {}) {
    return borrow_csr(2, 4, {offsets, cols}, options);
  };
  const std::vector<std::int32_t> good = {1, 3, 0}, unsorted = {3, 1, 0}, twice = {1, 1, 0};
  const std::vector<std::int64_t> outside = {1, 4294967297, 0};
  EXPECT_EQ(borrow(good).num_edges(), 3);
  expect_error(ErrorCode::bad_data, {"row 0", "column 1 after 3"}, [&] { borrow(unsorted); });
  expect_error(ErrorCode::bad_data, {"row 0", "column 1 after 1"}, [&] { borrow(twice); });
  expect_error(ErrorCode::bad_data, {"column index 4294967297", "[0, 4)", "position 1"},
               [&] { borrow(outside); });
  expect_error(ErrorCode::invalid_argument, {"row_offsets has 3 entries", "7 rows"}, [&] {
    borrow_csr(7, 4, {offsets, good});
  });
  expect_error(ErrorCode::invalid_argument, {"row_offsets end at 3", "2 columns"}, [&] {
    borrow(std::vector<std::int32_t>{1, 3});
  });
  expect_error(ErrorCode::invalid_argument, {"1 values for 3 edges"}, [&] {
    borrow_csr(2, 4, {offsets, good, std::vector<float>{1}});
  });
  BorrowOptions trusting;
  trusting.row_order = RowOrder::promised;
  EXPECT_EQ(borrow(unsorted, trusting).col_indices()[0], 3);
}

TEST(Edges, MayHaveIndicesOf64Bits) {
  const std::vector<std::int64_t> sources = {3, 1, 0}, targets = {0, 2, 2};
  const std::vector<std::int32_t> narrow_sources = {3, 1, 0}, narrow_targets = {0, 2, 2};
  const std::vector<float> weights = {1, 2, 3};
  BuildOptions options;
  options.keep_edge_ids = true;
  const Graph expected = from_edges(4, narrow_sources, narrow_targets, weights, options);
  EXPECT_EQ(from_edges(4, sources, targets, weights, options), expected);
  EXPECT_EQ(from_edges(4, sources, narrow_targets, weights, options), expected);
  EXPECT_EQ(from_coo(4, 4, targets, sources, weights, options), expected);
}

TEST(Edges, OutOfRangeOf32BitsAreNamed) {
  const std::vector<std::int64_t> good = {3, 1, 0}, wild = {0, 4294967298, 2}, low = {0, 1, -1};
  testing::expect_error(ErrorCode::bad_data, {"source index 4294967298", "[0, 4)", "position 1"},
                        [&] { from_edges(4, wild, good); });
  testing::expect_error(ErrorCode::bad_data, {"target index -1", "[0, 4)", "position 2"},
                        [&] { from_edges(4, good, low); });
}

/// On a GPU, where there is one.
class CudaBorrow : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }

  template <class T>
  Buffer<T> there(const std::vector<T>& values) const {
    Buffer<T> copy(std::ssize(values), default_memory(device));
    copy_bytes(copy.data(), values.data(), values.size() * sizeof(T), device);
    synchronise(device);
    return copy;
  }

  const Device device{DeviceKind::cuda, 0};
  BorrowOptions options{device, RowOrder::checked, {}};
};

TEST_F(CudaBorrow, TakesEveryWidth) {
  const Csr csr(some_graph());
  const Buffer<std::int64_t> offsets = there(csr.offsets), wide_cols = there(csr.wide_cols);
  const Buffer<std::int32_t> narrow_offsets = there(csr.narrow_offsets), cols = there(csr.cols);
  const Buffer<float> values = there(csr.values);
  for (const Indices& row_offsets : {Indices(offsets), Indices(narrow_offsets)}) {
    for (const Indices& col_indices : {Indices(cols), Indices(wide_cols)}) {
      const Graph graph = borrow_csr(33, 17, {row_offsets, col_indices, values.span()}, options);
      EXPECT_EQ(graph.device(), device);
      EXPECT_EQ(graph, some_graph());
    }
  }
}

TEST_F(CudaBorrow, TakesNoMemoryForColumnsAndValues) {
  const Graph original = some_graph(2000, 2000);
  const Csr csr(original);
  const Buffer<std::int32_t> offsets = there(csr.narrow_offsets), cols = there(csr.cols);
  const Buffer<float> values = there(csr.values);
  options.row_order = RowOrder::promised;
  const std::int64_t before = memory_use(device).current_bytes;
  const Graph graph = borrow_csr(2000, 2000, {offsets, cols, values.span()}, options);
  EXPECT_EQ(memory_use(device).current_bytes, before);
  EXPECT_EQ(graph, original);
}

TEST_F(CudaBorrow, FeedsPlans) {
  const Graph original = some_graph(100, 130);
  const Csr csr(original);
  const Buffer<std::int32_t> offsets = there(csr.narrow_offsets), cols = there(csr.cols);
  const Buffer<float> values = there(csr.values);
  const Graph graph = borrow_csr(100, 130, {offsets, cols, values.span()}, options);
  ops::SpmmOptions spmm;
  spmm.features = 16;
  Matrix<float> x(130, 16), expected(100, 16), y(100, 16);
  for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i % 13);
  run(ops::plan_spmm(original, spmm), {x}, {expected});
  spmm.device = device;
  Matrix<float> x_there(130, 16, default_memory(device)), y_there(100, 16, default_memory(device));
  const auto bytes_of = [](const Matrix<float>& m) {
    return static_cast<std::size_t>(m.size()) * 4;
  };
  copy_bytes(x_there.data(), x.data(), bytes_of(x), device);
  run(ops::plan_spmm(graph, spmm), {x_there}, {y_there});
  copy_bytes(y.data(), y_there.data(), bytes_of(y), device);
  synchronise(device);
  for (std::int64_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y.data()[i], expected.data()[i], 1e-3) << i;
  }
}

TEST_F(CudaBorrow, NamesWhatIsWrong) {
  const std::vector<std::int32_t> offsets = {0, 2, 3}, falling = {0, 5, 3};
  const Buffer<std::int32_t> good = there(offsets), bad = there(falling);
  const auto borrow = [&](const std::vector<std::int32_t>& cols) {
    const Buffer<std::int32_t> placed = there(cols);
    return borrow_csr(2, 4, {good, placed}, options).num_edges();
  };
  EXPECT_EQ(borrow({1, 3, 0}), 3);
  testing::expect_error(ErrorCode::bad_data, {"row 0", "column 1 after 3"}, [&] {
    borrow({3, 1, 0});
  });
  testing::expect_error(ErrorCode::bad_data, {"row 1", "column 4"}, [&] { borrow({1, 3, 4}); });
  const Buffer<std::int32_t> cols = there(std::vector<std::int32_t>{1, 3, 0});
  testing::expect_error(ErrorCode::bad_data, {"row_offsets fall from 5 to 3"}, [&] {
    borrow_csr(2, 4, {bad, cols}, options);
  });
  const Buffer<std::int64_t> outside = there(std::vector<std::int64_t>{1, 4294967297, 0});
  testing::expect_error(ErrorCode::bad_data, {"column index 4294967297", "position 1"}, [&] {
    borrow_csr(2, 4, {good, outside}, options);
  });
}

TEST_F(CudaBorrow, BuildsFromIndicesOf64Bits) {
  const std::vector<std::int64_t> sources = {3, 1, 0}, targets = {0, 2, 2};
  const std::vector<float> weights = {1, 2, 3};
  BuildOptions build;
  build.keep_edge_ids = true;
  const Graph expected = from_edges(4, sources, targets, weights, build);
  build.device = device;
  EXPECT_EQ(from_edges(4, sources, targets, weights, build), expected);
  const Buffer<std::int64_t> s = there(sources), t = there(targets);
  const Buffer<float> w = there(weights);
  EXPECT_EQ(from_edges(4, s, t, w.span(), build), expected);
  EXPECT_EQ(gcn_normalised(from_edges(4, s, t, w.span(), build)), gcn_normalised(expected));
}

}  // namespace
}  // namespace tessera
