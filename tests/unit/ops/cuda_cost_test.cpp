// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/device_traits.hpp"
#include "graph/degrees.hpp"
#include "ops/attention/cuda/fused/cost.hpp"
#include "ops/attention/cuda/pairs/cost.hpp"
#include "ops/attention/cuda/rows/cost.hpp"
#include "ops/attention/cuda/short/cost.hpp"
#include "ops/attention/cuda/staged/cost.hpp"
#include "ops/attention/cuda/tall/cost.hpp"
#include "ops/edge_softmax/cuda/rows/cost.hpp"
#include "ops/edge_softmax/cuda/rows/launch.hpp"
#include "ops/sddmm/cuda/edges/cost.hpp"
#include "ops/sddmm/cuda/lists/cost.hpp"
#include "ops/sddmm/cuda/panels/cost.hpp"
#include "ops/sddmm/cuda/short/cost.hpp"
#include "ops/sddmm/cuda/tall/cost.hpp"
#include "ops/spmm/cuda/heads/cost.hpp"
#include "ops/spmm/cuda/hybrid/cost.hpp"
#include "ops/spmm/cuda/rows/cost.hpp"
#include "ops/spmm/cuda/short/cost.hpp"
#include "ops/spmm/cuda/tall/cost.hpp"
#include "ops/spmm/cuda/tall/rest_rows.hpp"
#include "ops/spmm/cuda/vendor/cost.hpp"
#include "ops/tuning.hpp"
#include "support/mixed_windows.hpp"
#include "tessera/graph/generate.hpp"

/// What the cost models of CUDA kernels predict for a GPU that need not be there.
namespace tessera::ops {
namespace {

struct Case {
  Graph graph;
  std::int64_t features;
  Precision precision;
  SpmmPass pass;
};

std::vector<Case> cases() {
  const Graph skewed = generate::build(generate::Rmat{.scale = 12, .edges = 60000, .seed = 3});
  const Graph even = generate::build(
      generate::BlockModel{.vertices = 6000, .communities = 40, .mean_degree = 30, .seed = 5});
  const Graph directed = generate::build(
      generate::Bipartite{.targets = 3000, .sources = 700, .edges = 9000, .seed = 7});
  const SharedArray<float> values(
      std::vector<float>(static_cast<std::size_t>(directed.num_edges()), 0.5f));
  return {{skewed, 64, Precision::fp32, SpmmPass::forward},
          {skewed, 128, Precision::bf16, SpmmPass::backward},
          {even, 16, Precision::bf16, SpmmPass::forward},
          {even, 250, Precision::fp32, SpmmPass::forward},
          {directed, 32, Precision::fp16, SpmmPass::backward},
          {directed.with_values(values), 100, Precision::fp32, SpmmPass::forward}};
}

SpmmProblem spmm_of(const Case& each, std::int64_t heads = 1) {
  SpmmProblem problem;
  problem.graph = each.graph;
  problem.features = each.features;
  problem.precision = each.precision;
  problem.pass = each.pass;
  problem.heads = heads;
  return problem;
}

SddmmProblem sddmm_of(const Case& each) {
  SddmmProblem problem;
  problem.graph = each.graph;
  problem.features = each.features;
  problem.precision = each.precision;
  return problem;
}

EdgeSoftmaxProblem softmax_of(const Case& each) {
  EdgeSoftmaxProblem problem{each.graph, {}};
  problem.options.heads = 4;
  problem.options.precision = each.precision;
  return problem;
}

AttentionProblem attention_of(const Case& each) {
  AttentionProblem problem{each.graph, {}};
  problem.options.heads = 2;
  problem.options.features = each.features;
  problem.options.precision = each.precision;
  return problem;
}

constexpr std::array strategies = {
    "spmm rows",          "spmm tall",      "spmm short",     "sddmm tall",
    "sddmm short",        "sddmm edges",    "sddmm panels",   "sddmm lists",
    "edge_softmax",       "spmm heads",     "cuSPARSE",       "attention fused",
    "attention widening", "attention rows", "attention tall", "attention short"};

/// Summed over the policies of each strategy, in the order of `strategies`.
std::array<double, strategies.size()> predictions(const Case& each, const DeviceTraits& traits) {
  const SpmmProblem spmm = spmm_of(each);
  const SddmmProblem sddmm = sddmm_of(each);
  double rows = 0, tall = 0, edges = 0, softmax = 0;
  for (const RowsPolicy& policy : rows_policies) rows += predicted_rows_us(spmm, policy, traits);
  for (const TallPolicy& policy : tall_policies) {
    if (!policy.warps && !policy.quads) tall += predict_tall_us(spmm, policy, traits);
  }
  for (const EdgesPolicy& policy : vector_policies) {
    edges += predict_edges_us(sddmm, policy, 16, traits);
  }
  for (const EdgesPolicy& policy : scalar_policies) {
    edges += predict_edges_us(sddmm, policy, element_bytes(sddmm), traits);
  }
  edges += predict_edge_sums_us(sddmm, traits);
  for (const StreamPolicy& policy : stream_policies) {
    edges += predict_stream_us(sddmm, policy, traits);
  }
  double panels = 0;
  for (const PanelPolicy& policy : panel_policies) {
    panels += predict_panels_us(sddmm, policy, traits);
  }
  double lists = 0;
  for (const ListPolicy& policy : list_policies) lists += predict_list_us(sddmm, policy, traits);
  for (const int team : softmax_teams)
    softmax += predict_softmax_us(softmax_of(each), team, traits);
  const double short_dots =
      predict_short_dots_us(sddmm, false, traits) + predict_short_dots_us(sddmm, true, traits);
  return {rows,
          tall,
          predict_short_us(spmm, ShortEncoding::bits, traits),
          predict_tall_dots_us(sddmm, traits),
          short_dots,
          edges,
          panels,
          lists,
          softmax,
          predict_heads_us(spmm_of(each, 4), traits),
          predict_cusparse_us(spmm, traits),
          predict_fused_us(attention_of(each), traits),
          predict_widening_us(attention_of(each), traits),
          predict_rows_attention_us(attention_of(each), traits),
          predict_tall_attention_us(attention_of(each), traits),
          predict_short_attention_us(attention_of(each), traits)};
}

/// A change of these figures is a change of which kernels plans choose: fit again, and say so.
TEST(CudaCostTest, PredictionsForTheH200AreThoseThatWereFitted) {
  constexpr std::array<std::array<double, strategies.size()>, 6> expected = {{
      {336.63946104409752, 163.12978993029009, 19.136101525881379, 18.514428770503788,
       28.035503932609586, 434.66090850275702, 79.694841634056147, 77.615575435245475,
       83.118834913143274, 7.0882506666666663, 17.953444571428573, 123.18783999999999,
       16.839581538461537, 14.307821044457887, 35.96141575, 31.367514511874997},
      {353.98062928301442, 158.30192757534124, 17.484385582915795, 12.768288729747592,
       25.689905984395246, 507.06299380611307, 88.617571278279243, 80.582009262004973,
       83.604761515144418, 6.9680080000000002, 17.953444571428573, 123.18783999999999,
       21.679163076923075, 17.564051916190479, 24.317075125000002, 33.184335351874999},
      {312.86787719019992, 96.885122617163347, 11.599102998770563, 11.031610235583056,
       24.599760063265748, 468.67040563315618, 107.877285752237, 79.024931582704212,
       38.270029303029673, 4.2000000000000002, 17.579428571428572, 37.360999999999997,
       13.772307692307692, 15.112685714285714, 26.815235625, 28.291843529999998},
      {1622.4927384004488, 259.24459183720649, 41.15747319175032, 45.802201614583339,
       59.229080121420324, 1184.7593614346736, 94.062134740156793, 175.18760747975293,
       38.119638550863904, 33.480000000000004, 42.906285714285715, 348.72499999999997,
       39.692307692307693, 35.185044548788611, 52.811468750000003, 36.991137656249997},
      {210.69025200632527, 93.63445673420614, 9.9119394868569231, 9.55420825698382,
       19.135823809768382, 336.25218231213864, 68.699135519215787, 61.781037497933198,
       18.360050555465708, 3.1080000000000001, 14.209371428571428, 26.661999999999999,
       13.092923076923077, 13.449306666666665, 20.47138044680851, 16.556518805106382},
      {273.90792696237622, 97.926426330192896, 10.756431655179709, 13.912613280303031,
       20.708362067514535, 489.6078307372016, 64.851640680990101, 63.601309906111119,
       18.178837329686978, 3.6240000000000001, 15.210285714285714, 47.109999999999999,
       15.415384615384616, 14.134909682969202, 24.681740425531913, 17.034229989868287},
  }};
  const std::vector<Case> all = cases();
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto predicted = predictions(all[i], h200_traits());
    for (std::size_t j = 0; j < strategies.size(); ++j) {
      EXPECT_NEAR(predicted[j], expected[i][j], 1e-12 * expected[i][j])
          << strategies[j] << ", case " << i;
    }
  }
}

/// A warp of several short teams waits for the longest of its rows: the more degrees differ, the
/// fewer rows a warp should have.
TEST(CudaCostTest, UnevenRowsWantLargerTeamsForSoftmax) {
  const auto of_small_teams = [](const Graph& graph) {
    EdgeSoftmaxProblem problem{graph, {}};
    problem.options.heads = 8;
    return predict_softmax_us(problem, 8, h200_traits()) /
           predict_softmax_us(problem, 32, h200_traits());
  };
  const Graph even = generate::build(
      generate::BlockModel{.vertices = 60000, .communities = 1000, .mean_degree = 20, .seed = 5});
  const Graph uneven =
      generate::build(generate::ChungLu{.vertices = 60000, .edges = 1200000, .seed = 5});
  EXPECT_LT(of_small_teams(even), 1);
  EXPECT_GT(of_small_teams(uneven), 1.1 * of_small_teams(even));
}

/// Rows that are cut are measured and changed by launches of their own.
TEST(CudaCostTest, SoftmaxOfRowsThatAreCutTakesMore) {
  const auto us = [](VertexId degree) {
    constexpr VertexId rows = 4000;
    std::vector<EdgeOffset> offsets;
    std::vector<VertexId> columns;
    for (VertexId row = 0; row <= rows; ++row) offsets.push_back(EdgeOffset{row} * degree);
    for (VertexId row = 0; row < rows; ++row) {
      for (VertexId column = 0; column < degree; ++column) columns.push_back(column);
    }
    EdgeSoftmaxProblem problem{Graph(rows, rows, std::move(offsets), std::move(columns)), {}};
    problem.options.heads = 8;
    return predict_softmax_us(problem, 8, h200_traits());
  };
  EXPECT_EQ(longest_softmax_row({}, 8), 256);
  EXPECT_GT(us(65), us(64) + 5);
}

/// Panels bring rows of V in the order of sources, and those of U again and again: where both are
/// beyond the second-level cache, lists by rows were 1.26 to 1.33 times as fast.
TEST(CudaCostTest, PanelsOfListsPayWhereTheCacheHasBothEnds) {
  const auto panels_over_rows = [](VertexId vertices, EdgeOffset degree) {
    SddmmProblem problem;
    problem.graph = generate::build(
        generate::ErdosRenyi{.vertices = vertices, .edges = degree * vertices, .seed = 7});
    problem.features = 128;
    return predict_list_us(problem, {ListOrder::panels, 1024, 1}, h200_traits()) /
           predict_list_us(problem, {ListOrder::rows, 1024, 1}, h200_traits());
  };
  EXPECT_LT(panels_over_rows(12'000, 90), 1);
  EXPECT_GT(panels_over_rows(120'000, 20), 1.15);
}

/// Rows that stand with a hub share as much as neighbours do in a graph that came in order,
/// wherever they lie, and finding the places of results takes a little.
TEST(CudaCostTest, HubsPayWhereNeighboursShareLittle) {
  constexpr VertexId cliques = 500, size = 40;
  const auto hubs_over_rows = [](auto member) {
    std::vector<EdgeOffset> offsets = {0};
    std::vector<VertexId> sources;
    for (VertexId i = 0; i < cliques * size; ++i) {
      for (VertexId k = 0; k < size; ++k) sources.push_back(member(i, k));
      offsets.push_back(static_cast<EdgeOffset>(sources.size()));
    }
    SddmmProblem problem;
    problem.graph = Graph(cliques * size, cliques * size, offsets, sources);
    problem.features = 128;
    return predict_list_us(problem, {ListOrder::hubs, 1024, 1}, h200_traits()) /
           predict_list_us(problem, {ListOrder::rows, 1024, 1}, h200_traits());
  };
  const double in_order =
      hubs_over_rows([](VertexId i, VertexId k) { return i / size * size + k; });
  // Vertex i is in clique i mod 500, so that no neighbours have ids beside each other.
  const double spread =
      hubs_over_rows([](VertexId i, VertexId k) { return k * cliques + i % cliques; });
  EXPECT_GT(in_order, 1);
  EXPECT_LT(in_order, 1.1);
  EXPECT_LT(spread, 0.9);
}

/// Whatever is on its way, rows from memory come no faster than memory gives them.
TEST(CudaCostTest, ListsTakeNoLessThanTheirBytesFromMemory) {
  SddmmProblem problem;
  problem.graph =
      generate::build(generate::ErdosRenyi{.vertices = 1'000'000, .edges = 8'000'000, .seed = 7});
  problem.features = 128;
  // Most of both ends of every edge.
  const double bytes = 8e6 * 512 * 0.85;
  for (const ListPolicy& policy : list_policies) {
    EXPECT_GT(predict_list_us(problem, policy, h200_traits()),
              bytes / h200_traits().memory_bytes_per_us);
  }
}

/// Rows in fp32 come as fast as caches give them: a band of a matrix took 64 microseconds by rows
/// and 76 by windows, as many edges to anywhere 128 by rows.
TEST(CudaCostTest, AttentionByRowsIsFasterWhereRowsShareNeighbours) {
  const auto us = [](const Graph& graph, Precision precision) {
    AttentionProblem problem{graph, {}};
    problem.options.form = AttentionForm::dot;
    problem.options.heads = 8;
    problem.options.features = 64;
    problem.options.precision = precision;
    return predict_rows_attention_us(problem, h200_traits());
  };
  constexpr VertexId rows = 100'000, degree = 20;
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> sources;
  for (VertexId row = 0; row < rows; ++row) {
    for (VertexId k = 0; k < degree; ++k) sources.push_back((row / 32 * 32 + k) % rows);
    offsets.push_back(static_cast<EdgeOffset>(sources.size()));
  }
  const Graph band(rows, rows, std::move(offsets), std::move(sources));
  const Graph random = generate::build(
      generate::ErdosRenyi{.vertices = rows, .edges = EdgeOffset{degree} * rows, .seed = 7});
  EXPECT_GT(us(random, Precision::fp32), 1.4 * us(band, Precision::fp32));
  EXPECT_LT(us(band, Precision::bf16), us(random, Precision::bf16) * 1.01);
}

/// A residual of 180 MB took 50 microseconds and more by any kernel.
TEST(CudaCostTest, ResidualsAreRead) {
  SpmmProblem problem;
  problem.graph = generate::build(generate::Molecules{.graphs = 10'000, .seed = 3}).graph;
  problem.features = 64;
  const double least_us = static_cast<double>(problem.graph.num_rows()) * 256 / 4.8e6;
  const auto all_us = [&] {
    std::vector<double> us;
    for (const RowsPolicy& policy : rows_policies) {
      us.push_back(predicted_rows_us(problem, policy, h200_traits()));
    }
    us.push_back(predict_short_us(problem, ShortEncoding::quads, h200_traits()));
    us.push_back(predict_tall_us(problem, tall_policies[0], h200_traits()));
    return us;
  };
  const std::vector<double> without = all_us();
  problem.epilogue.residual = true;
  const std::vector<double> with = all_us();
  for (std::size_t i = 0; i < with.size(); ++i) EXPECT_GT(with[i], without[i] + least_us) << i;
}

/// Choices compare what comes of graphs without rows, columns or edges, too: no prediction may be
/// something that is neither less nor more.
TEST(CudaCostTest, PredictionsForGraphsOfNothingAreNumbers) {
  for (const auto& [rows, cols] : {std::pair{0, 0}, {0, 5}, {5, 0}, {5, 5}}) {
    const Graph graph(rows, cols, std::vector<EdgeOffset>(static_cast<std::size_t>(rows) + 1),
                      std::vector<VertexId>{});
    for (const std::int64_t features : {0, 1, 41, 128}) {
      const auto predicted =
          predictions({graph, features, Precision::fp32, SpmmPass::forward}, h200_traits());
      for (std::size_t i = 0; i < strategies.size(); ++i) {
        EXPECT_TRUE(std::isfinite(predicted[i]))
            << strategies[i] << ", " << rows << " x " << cols << ", " << features << " features";
      }
    }
  }
}

/// Windows of both kinds, and enough of them for a second launch.
TEST(CudaCostTest, MixedWindowsAreLeftToBothCores) {
  SpmmProblem problem;
  problem.graph = testing::mixed_windows(60000, 4000, 3);
  problem.features = 128;
  const double hybrid = predict_hybrid_us(problem, hybrid_policies[0], h200_traits());
  EXPECT_LT(hybrid, predict_tall_us(problem, hybrid_policies[0].tall, h200_traits()));
  for (const RowsPolicy& policy : rows_policies) {
    if (!lanes_fit(problem, policy)) continue;
    EXPECT_LT(hybrid, predicted_rows_us(problem, policy, h200_traits()));
  }
  problem.graph = generate::build(generate::ErdosRenyi{.vertices = 60000, .edges = 600000});
  double by_rows = std::numeric_limits<double>::infinity();
  for (const RowsPolicy& policy : rows_policies) {
    if (!policy.listed || !lanes_fit(problem, policy)) continue;
    by_rows = std::min(by_rows, predicted_rows_us(problem, policy, h200_traits()));
  }
  EXPECT_GT(predict_hybrid_us(problem, hybrid_policies[0], h200_traits()), by_rows)
      << "all windows go to the same cores";
}

/// Three columns that a third of the rows use have many rows in common, so that quads stay half
/// empty; of columns that a twelfth uses four fit together.
TEST(CudaCostTest, QuadsPayOnlyWhereColumnsFitTogether) {
  const auto sparse_over_dense = [](double mean_degree) {
    SpmmProblem problem;
    problem.graph = generate::build(generate::BlockModel{
        .vertices = 8000, .communities = 4, .mean_degree = mean_degree, .inside = 1, .seed = 3});
    problem.features = 128;
    problem.precision = Precision::bf16;
    double sparse = 0, dense = 0;
    for (const TallPolicy& policy : tall_policies) {
      if (policy.min_uses == 1 || policy.warps) continue;
      (policy.quads ? sparse : dense) += predict_tall_us(problem, policy, h200_traits());
    }
    return sparse / dense;
  };
  EXPECT_GT(sparse_over_dense(700), 1.2 * sparse_over_dense(160));
}

/// Each half of the features takes as long as the other where the cache has all of X, and longer
/// where it has not.
TEST(CudaCostTest, WindowsThatShareLittleWaitForMemory) {
  SpmmProblem problem;
  problem.graph = generate::build(generate::ErdosRenyi{.vertices = 60000, .edges = 600000});
  problem.precision = Precision::bf16;
  const auto tall_us = [&](std::int64_t features) {
    problem.features = features;
    return predict_tall_us(problem, tall_policies[0], h200_traits());
  };
  EXPECT_LT(tall_us(256), 2.02 * tall_us(128));   // 31 MB
  EXPECT_GT(tall_us(1024), 2.15 * tall_us(512));  // 123 and 61 MB
}

TEST(CudaCostTest, QuadsCostMoreWithValuesAndWithWiderFeatures) {
  const Case each = {generate::build(generate::ErdosRenyi{.vertices = 20000, .edges = 400000}), 64,
                     Precision::bf16, SpmmPass::forward};
  SpmmProblem problem = spmm_of(each);
  const double half = predict_short_us(problem, ShortEncoding::quads, h200_traits());
  EXPECT_GT(predict_short_us(problem, ShortEncoding::valued_quads, h200_traits()), half);
  problem.precision = Precision::fp32;
  EXPECT_GT(predict_short_us(problem, ShortEncoding::quads, h200_traits()), half);
}

TEST(CudaCostTest, AnotherGpuIsPredictedByItsProcessorsAndItsMemory) {
  const Case large = {generate::build(generate::ErdosRenyi{.vertices = 200000, .edges = 2000000}),
                      128, Precision::bf16, SpmmPass::forward};
  const auto h200 = predictions(large, h200_traits());
  DeviceTraits half = h200_traits();
  half.name = "another GPU";
  half.processors /= 2;
  half.memory_bytes_per_us /= 2;
  const auto slower = predictions(large, half);
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    EXPECT_GT(slower[i], h200[i]) << strategies[i];
    EXPECT_LT(slower[i], 2.5 * h200[i]) << strategies[i];
  }
}

/// On 2.7 k vertices windows took 119 microseconds for a step of GATv2 in place of 38, and 63 for
/// one of dot products in fp32 in place of 31.
TEST(CudaCostTest, SmallGraphsAreLeftToRows) {
  const Graph graph =
      generate::build(generate::ErdosRenyi{.vertices = 2708, .edges = 10556, .seed = 1});
  const auto problem_of = [&](AttentionForm form, Precision precision) {
    AttentionProblem problem{graph, {}};
    problem.options.form = form;
    problem.options.features = 64;
    problem.options.precision = precision;
    problem.options.backward = true;
    return problem;
  };
  const AttentionProblem gatv2 = problem_of(AttentionForm::gatv2, Precision::bf16);
  const double forward = predict_rows_attention_us(gatv2, h200_traits());
  const double step = forward + predict_rows_backward_us(gatv2, h200_traits());
  EXPECT_LT(step, 2.5 * forward) << "backward is not as many launches as it has sweeps of edges";
  EXPECT_LT(step, 2.5 * predict_short_attention_us(gatv2, h200_traits()));
  const AttentionProblem gat = problem_of(AttentionForm::gat, Precision::bf16);
  EXPECT_LT(predict_rows_attention_us(gat, h200_traits()),
            predict_short_attention_us(gat, h200_traits()));
  const AttentionProblem dot = problem_of(AttentionForm::dot, Precision::fp32);
  EXPECT_LT(predict_rows_attention_us(dot, h200_traits()),
            predict_tall_attention_us(dot, h200_traits()));
}

/// With one of the two edges of each pair: forward in 16 bits 22 microseconds by windows for GATv2
/// and 27 for 8 heads of GAT, in place of 12 by rows in fp32.
TEST(CudaCostTest, SmallGraphsOfFewEdgesAreLeftToRowsIn16Bits) {
  const Graph graph =
      generate::build(generate::ErdosRenyi{.vertices = 2708, .edges = 5278, .seed = 1});
  for (const AttentionForm form : {AttentionForm::gat, AttentionForm::gatv2, AttentionForm::dot}) {
    for (const std::int64_t heads : {1, 4, 8}) {
      AttentionProblem problem{graph, {}};
      problem.options.form = form;
      problem.options.heads = heads;
      problem.options.features = 128;
      problem.options.precision = Precision::bf16;
      const double rows = predict_rows_attention_us(problem, h200_traits());
      if (form != AttentionForm::gatv2) {
        EXPECT_LT(rows, predict_tall_attention_us(problem, h200_traits())) << heads;
      }
      if (heads == 1 || form == AttentionForm::gatv2) {
        EXPECT_LT(rows, predict_short_attention_us(problem, h200_traits())) << heads;
      }
    }
  }
}

/// A step of GATv2 took 417 microseconds by rows on fb100-Cornell5, which has 85 edges a row, and
/// 270 by pairs; 71 and 85 on pubmed, which has 4.5.
TEST(CudaCostTest, PairsOfRowsPayWhereRowsAreLong) {
  const auto pairs_over_rows = [](EdgeOffset edges) {
    AttentionProblem problem{
        generate::build(generate::ErdosRenyi{.vertices = 20000, .edges = edges, .seed = 2}), {}};
    problem.options.form = AttentionForm::gatv2;
    problem.options.features = 64;
    problem.options.precision = Precision::bf16;
    problem.options.backward = true;
    return (predict_pairs_attention_us(problem, h200_traits()) +
            predict_pairs_backward_us(problem, h200_traits())) /
           (predict_rows_attention_us(problem, h200_traits()) +
            predict_rows_backward_us(problem, h200_traits()));
  };
  EXPECT_GT(pairs_over_rows(90'000), 1.05);
  EXPECT_LT(pairs_over_rows(1'600'000), 0.8);
}

/// A warp takes the steps of the longest of its rows.
TEST(CudaCostTest, PairsOfRowsOfDifferentLengthsTakeLonger) {
  const auto forward_us = [](EdgeOffset even, EdgeOffset odd) {
    constexpr VertexId rows = 40000;
    std::vector<EdgeOffset> offsets = {0};
    std::vector<VertexId> columns;
    for (VertexId row = 0; row < rows; ++row) {
      for (EdgeOffset k = 0; k < (row % 2 == 0 ? even : odd); ++k) {
        columns.push_back(static_cast<VertexId>(k));
      }
      offsets.push_back(static_cast<EdgeOffset>(columns.size()));
    }
    AttentionProblem problem{Graph(rows, 256, std::move(offsets), std::move(columns)), {}};
    problem.options.form = AttentionForm::gatv2;
    problem.options.features = 64;
    problem.options.precision = Precision::bf16;
    return predict_pairs_attention_us(problem, h200_traits());
  };
  EXPECT_GT(forward_us(72, 8), 1.3 * forward_us(40, 40));
}

/// Heads that fill no vectors are read feature by feature by the fused kernel, in both its sweeps
/// backward: with it, a step of GAT took 8 ms on 410 k vertices and 22 classes in place of 3.
TEST(CudaCostTest, TrainingOnHeadsOfOddWidthsIsLeftToRows) {
  const Graph graph = generate::build(
      generate::BlockModel{.vertices = 40000, .communities = 2000, .mean_degree = 9.6, .seed = 9});
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    for (const std::int64_t width : {7, 22, 41, 47}) {
      AttentionProblem problem{graph, {}};
      problem.options.features = width;
      problem.options.precision = precision;
      problem.options.backward = true;
      const double by_rows = predict_rows_attention_us(problem, h200_traits()) +
                             predict_rows_backward_us(problem, h200_traits());
      EXPECT_LT(by_rows, predict_fused_us(problem, h200_traits())) << width;
    }
  }
}

TEST(CudaCostTest, ExplanationsSayWhereCostsAreScaled) {
  EXPECT_EQ(note_on_costs(h200_traits()), "");
  DeviceTraits other = h200_traits();
  other.name = "NVIDIA A100-SXM4-40GB";
  other.compute_capability = 80;
  other.processors = 108;
  other.memory_bytes_per_us = 1.555e6;
  EXPECT_EQ(note_on_costs(other),
            "costs of an NVIDIA H200, scaled to 0.82 times its processors and 0.32 times its "
            "bandwidth, until 'tessera calibrate' fits them");
}

TEST(CudaCostTest, StatedBandwidthsAreFoundByNameAndComputeCapability) {
  EXPECT_EQ(stated_memory_bytes_per_us("NVIDIA H200 NVL", 90), 4.8e6);
  EXPECT_EQ(stated_memory_bytes_per_us("NVIDIA H200", 80), 0);
  EXPECT_EQ(stated_memory_bytes_per_us("a GPU", 90), 0);
}

TEST(CudaCostTest, TraitsOfThisMachinesGpu) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const DeviceTraits& traits = device_traits({DeviceKind::cuda, 0});
  EXPECT_FALSE(traits.name.empty());
  EXPECT_GT(traits.processors, 0);
  EXPECT_GT(traits.clock_mhz, 100);
  EXPECT_GT(traits.memory_bytes_per_us, 1e4);
  EXPECT_GE(traits.compute_capability, 80);
  EXPECT_GT(traits.l2_bytes, 1 << 20);
  EXPECT_GE(traits.shared_bytes_per_processor, 48 << 10);
}

TEST(DegreesTest, CountsEveryDegreeOnce) {
  const std::vector<EdgeOffset> offsets = {0, 3, 3, 6, 5006, 5007, 10007};
  const DegreeStatistics degrees = degree_statistics(offsets);
  ASSERT_EQ(degrees.counts.size(), 4u);
  EXPECT_EQ(degrees.counts[1].degree, 1);
  EXPECT_EQ(degrees.counts[2].rows, 2);
  EXPECT_EQ(degrees.longest(), 5000);
  EXPECT_EQ(degrees.rows_beyond(3), 2);
  EXPECT_EQ(degrees.rows_beyond(0), 5);
  EXPECT_EQ(degrees.rows_beyond(5000), 0);
  EXPECT_DOUBLE_EQ(degrees.mean(), 10007.0 / 6);
  EXPECT_EQ(degree_statistics(std::vector<EdgeOffset>{0}).longest(), 0);
}

TEST(DegreesTest, RowsAndColumnsOfAGraphAreCountedOnce) {
  const Graph graph = generate::build(generate::Bipartite{});
  EXPECT_EQ(row_degrees(graph), row_degrees(graph));
  EXPECT_EQ(row_degrees(graph)->num_rows, graph.num_rows());
  EXPECT_EQ(column_degrees(graph)->num_rows, graph.num_cols());
  EXPECT_EQ(column_degrees(graph)->num_edges, graph.num_edges());
}

TEST(RestWidth, IsWhatTheCacheHoldsAndALineAtLeast) {
  EXPECT_EQ(rest_width(128, 1e5, 2, 60e6), 128);  // 26 MB of 60
  EXPECT_EQ(rest_width(128, 2.3e5, 2, 60e6), 64);
  EXPECT_EQ(rest_width(128, 2.3e5, 4, 60e6), 32);
  EXPECT_EQ(rest_width(128, 1e9, 4, 60e6), 32);
  EXPECT_EQ(rest_width(100, 1e9, 2, 60e6), 100);  // half of a row is less than a line
  EXPECT_EQ(rest_width(0, 10, 4, 0), 0);
}

}  // namespace
}  // namespace tessera::ops
