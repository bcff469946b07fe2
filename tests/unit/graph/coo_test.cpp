// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/coo.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera {
namespace {

tessera::Coo borrowed(const testing::Coo& edges, bool valued = true) {
  BorrowedCoo arrays{edges.rows, edges.cols};
  if (valued) arrays.values = edges.values;
  return borrow_coo(edges.num_rows, edges.num_cols, arrays);
}

TEST(Coo, BecomesTheGraphOfItsRule) {
  const testing::Coo edges = testing::random_coo(40, 40, 160, 1);
  const BuildOptions all{.duplicates = Duplicates::keep, .keep_edge_ids = true};
  for (const bool valued : {false, true}) {
    const tessera::Coo coo = borrowed(edges, valued);
    const Graph plain = edges.build(all, valued);
    EXPECT_EQ(coo.graph(), plain);
    EXPECT_EQ(coo.with_rule(EdgeRule::looped).graph(), with_self_loops(plain.with_values({})));
    EXPECT_EQ(coo.with_rule(EdgeRule::gcn).graph(), gcn_normalised(plain));
    EXPECT_EQ(coo.with_rule(EdgeRule::gcn, 0).graph(), gcn_normalised(plain, false));
  }
}

TEST(Coo, LoopsHaveAWeightOfTheirOwn) {
  const testing::Coo edges{3, 3, {0, 1, 1}, {1, 1, 2}, {2, 3, 4}};
  const Graph weighted = borrowed(edges).with_rule(EdgeRule::gcn, 5).graph();
  EXPECT_EQ(weighted.values(), SharedArray<float>(std::vector<float>{5, 2, 3, 4, 5}));
  EXPECT_FLOAT_EQ(weighted.row_scale()[0], 1 / std::sqrt(7.0f));
  EXPECT_FLOAT_EQ(weighted.row_scale()[1], 1 / std::sqrt(7.0f));
  const Graph looped = borrowed(edges).with_rule(EdgeRule::looped, 5).graph();
  EXPECT_EQ(looped.values(), SharedArray<float>(std::vector<float>{5, 1, 1, 1, 5}));
  const testing::Coo none{2, 2, {}, {}, {}};
  EXPECT_EQ(borrowed(none).with_rule(EdgeRule::looped, 5).graph().values(),
            SharedArray<float>(std::vector<float>{5, 5}));
}

TEST(Coo, WeighsEdgesByAFunctionOfTheirEnds) {
  const testing::Coo edges{2, 3, {1, 0, 1}, {2, 0, 1}, {2, 3, 4}};
  const std::vector<float> rows = {1, 2}, cols = {1, 2, 3};
  const Graph product = borrowed(edges).with_numbers(rows, cols).graph();
  EXPECT_FLOAT_EQ(product.weight(1, 2), 2 * 2 * 3);
  const Graph gaussian = borrowed(edges).with_numbers(rows, cols, WeightFunction::gaussian).graph();
  EXPECT_EQ(gaussian.values(), SharedArray<float>(std::vector<float>{3, 4, 2 * std::exp(-1.0f)}));
}

TEST(Coo, IsMadeIntoRowsOnce) {
  const testing::Coo edges = testing::random_coo(9, 9, 30, 2);
  const tessera::Coo coo = borrowed(edges);
  EXPECT_FALSE(coo.with_rule(EdgeRule::gcn).knows_graph());
  const Graph graph = coo.with_rule(EdgeRule::gcn).graph();
  EXPECT_TRUE(coo.with_rule(EdgeRule::gcn).knows_graph());
  EXPECT_EQ(coo.with_rule(EdgeRule::gcn).graph().row_offsets().data(), graph.row_offsets().data());
  EXPECT_FALSE(coo.knows_graph());
}

TEST(Coo, SaysWhatIsWrong) {
  const std::vector<VertexId> one = {1}, two = {0, 1}, wild = {0, 7};
  const std::vector<std::int64_t> wide = {0, -1};
  const std::vector<float> value = {1};
  testing::expect_error(ErrorCode::invalid_argument, {"1 rows but 2 columns"}, [&] {
    borrow_coo(2, 2, {one, two});
  });
  testing::expect_error(ErrorCode::invalid_argument, {"1 values for 2 edges"}, [&] {
    borrow_coo(2, 2, {two, two, value});
  });
  testing::expect_error(ErrorCode::bad_data, {"column index 7 is outside [0, 2)"}, [&] {
    borrow_coo(2, 2, {two, wild});
  });
  testing::expect_error(ErrorCode::bad_data, {"row index -1 is outside [0, 2)"}, [&] {
    borrow_coo(2, 2, {wide, two});
  });
  const tessera::Coo rectangular = borrow_coo(2, 3, {two, two});
  testing::expect_error(ErrorCode::invalid_argument, {"2 x 3 edges under the rule 'gcn'"},
                        [&] { rectangular.with_rule(EdgeRule::gcn); });
  testing::expect_error(ErrorCode::invalid_argument, {"a gaussian of no coordinates"}, [&] {
    rectangular.with_numbers({}, std::vector<float>{1, 2, 3}, WeightFunction::gaussian);
  });
  testing::expect_error(ErrorCode::invalid_argument, {"row_numbers has 1 entries for 2 vertices"},
                        [&] { rectangular.with_numbers(value, {}); });
  testing::expect_error(ErrorCode::invalid_argument, {"loop_weight is inf"}, [&] {
    borrow_coo(2, 2, {two, two}).with_rule(EdgeRule::gcn, std::numeric_limits<float>::infinity());
  });
}

/// Edges on a GPU.
class CudaCoo : public ::testing::Test {
 protected:
  static constexpr Device gpu{DeviceKind::cuda, 0};

  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }

  template <class T>
  static Buffer<T> sent(const std::vector<T>& values) {
    Buffer<T> there(std::ssize(values), default_memory(gpu));
    copy_bytes(there.data(), values.data(), values.size() * sizeof(T), gpu);
    synchronise(gpu);
    return there;
  }
};

TEST_F(CudaCoo, BecomesTheSameGraph) {
  BorrowOptions on_gpu;
  on_gpu.device = gpu;
  for (const VertexId n : {1, 17, 300}) {
    for (const int draws : {0, 4 * n}) {
      const testing::Coo edges = testing::random_coo(n, n, draws, 3);
      const Buffer<VertexId> rows = sent(edges.rows), cols = sent(edges.cols);
      const Buffer<float> values = sent(edges.values);
      for (const bool valued : {false, true}) {
        const tessera::Coo here = borrowed(edges, valued);
        BorrowedCoo arrays{rows.span(), cols.span()};
        if (valued) arrays.values = values.span();
        const tessera::Coo there = borrow_coo(n, n, arrays, on_gpu);
        for (const EdgeRule rule : {EdgeRule::plain, EdgeRule::looped, EdgeRule::gcn}) {
          for (const float weight : {0.0f, 1.0f, 2.5f}) {
            EXPECT_EQ(there.with_rule(rule, weight).graph(), here.with_rule(rule, weight).graph())
                << to_string(rule) << ", " << weight << ", " << n << " vertices";
          }
        }
      }
    }
  }
}

TEST_F(CudaCoo, SaysWhatIsWrong) {
  BorrowOptions on_gpu;
  on_gpu.device = gpu;
  const Buffer<VertexId> fine = sent<VertexId>({0, 1}), wild = sent<VertexId>({0, 7});
  testing::expect_error(ErrorCode::bad_data, {"column index 7 is outside [0, 2)"}, [&] {
    borrow_coo(2, 2, {fine.span(), wild.span()}, on_gpu);
  });
}

}  // namespace
}  // namespace tessera
