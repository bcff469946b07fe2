// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/cuda/allocation_hook.hpp"
#include "conformance/cuda/laid_graph.hpp"
#include "conformance/cuda/memory_cases.hpp"
#include "support/matrices.hpp"
#include "support/placed.hpp"
#include "support/random_matrix.hpp"
#include "support/running_dry.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/tiles/tiled_graph.hpp"

#include "core/cuda_handles.hpp"
#include "cuda/wgmma_device.hpp"
#include "tiles/hub_windows.hpp"

/// What planning asks of a GPU where the graph lies on it: one wait, and no array of its size.
namespace tessera {
namespace {

using cuda_backend::OwnedStream;
using ops::AttentionForm;
using test::batch;
using test::CountingMemory;
using test::gpu;
using test::Laid;
using test::num_cuda_waits;
using test::spmm_options;
using test::weighted;

ops::SddmmOptions sddmm_options(std::int64_t features, Precision precision) {
  ops::SddmmOptions options;
  options.device = gpu;
  options.features = features;
  options.precision = precision;
  return options;
}

ops::AttentionOptions attention_options(AttentionForm form, std::int64_t heads) {
  ops::AttentionOptions options;
  options.device = gpu;
  options.form = form;
  options.features = 64;
  options.heads = heads;
  options.backward = true;
  return options;
}

class GpuPlanning : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
    // The first planning pins memory and loads kernels.
    const Laid laid(batch());
    ops::plan_spmm(gcn_normalised(laid.graph(), false), spmm_options());
    ops::plan_attention(laid.graph(), attention_options(AttentionForm::gat, 8));
    synchronise(gpu);
  }

  /// How often `work` waits.
  template <class Work>
  static std::int64_t waits_of(Work&& work) {
    const std::int64_t before = num_cuda_waits();
    const auto kept = work();
    return num_cuda_waits() - before;
  }
};

TEST_F(GpuPlanning, WaitsOnceForBothPassesOfGcn) {
  const Laid laid(batch());
  const Graph graph = laid.graph();
  Graph normalised;
  EXPECT_EQ(waits_of([&] { return normalised = gcn_normalised(graph, false); }), 0);
  EXPECT_EQ(waits_of([&] { return ops::plan_spmm(normalised, spmm_options()); }), 1);
  EXPECT_EQ(waits_of([&] { return ops::plan_spmm(normalised, spmm_options(128)); }), 1)
      << "sizes of weights are looked for again, the graph is not";
  EXPECT_EQ(waits_of([&] {
              return ops::plan_attention(graph, attention_options(AttentionForm::gat, 8));
            }),
            0)
      << "the same graph has been looked at";
}

TEST_F(GpuPlanning, WaitsOnceForBothPassesOfGat) {
  for (const std::int64_t heads : {1, 8}) {
    const Laid laid(batch());
    const Graph graph = laid.graph();
    EXPECT_EQ(waits_of([&] {
                return ops::plan_attention(graph, attention_options(AttentionForm::gat, heads));
              }),
              1)
        << heads << " heads";
    EXPECT_EQ(waits_of([&] {
                return ops::plan_attention(graph, attention_options(AttentionForm::gatv2, heads));
              }),
              0);
  }
}

TEST_F(GpuPlanning, WaitsOnceForGraphsWithValues) {
  const Laid laid(weighted(batch()));
  const Graph graph = laid.graph();
  ops::SpmmOptions options = spmm_options();
  options.kernel = options.backward_kernel = "spmm/cuda/rows*";
  EXPECT_EQ(waits_of([&] { return ops::plan_spmm(graph, options); }), 1);
}

/// How large tiles are has been counted with everything else.
TEST_F(GpuPlanning, WaitsOnceForPlansOnTiles) {
  if (!cuda::has_wgmma(gpu))
    GTEST_SKIP() << "no wgmma here; tools/gpu.sh test runs it on compute capability 9.0";
  for (const char* kernel : {"tall_64", "split_128", "short*"}) {
    SCOPED_TRACE(kernel);
    const Laid laid(batch());
    const Graph graph = laid.graph();
    ops::SpmmOptions options = spmm_options(64, Precision::bf16);
    options.kernel = options.backward_kernel = std::string("spmm/cuda/") + kernel;
    options.edge_values_at_run = false;
    EXPECT_EQ(waits_of([&] { return ops::plan_spmm(graph, options); }), 1);
  }
  for (const char* kernel : {"short_16*", "tiles_64", "list_*"}) {
    SCOPED_TRACE(kernel);
    const Laid laid(batch());
    const Graph graph = laid.graph();
    ops::SddmmOptions options = sddmm_options(128, Precision::bf16);
    options.kernel = std::string("sddmm/cuda/") + kernel;
    EXPECT_EQ(waits_of([&] { return ops::plan_sddmm(graph, options); }), 1);
  }
}

/// The entries of tiles with values are counted when the tiles are there.
TEST_F(GpuPlanning, WaitsOnceMoreForEachPassOnTilesWithValues) {
  if (!cuda::has_wgmma(gpu))
    GTEST_SKIP() << "no wgmma here; tools/gpu.sh test runs it on compute capability 9.0";
  const Laid laid(weighted(batch()));
  const Graph graph = laid.graph();
  ops::SpmmOptions options = spmm_options();
  options.kernel = options.backward_kernel = "spmm/cuda/valued_64";
  options.edge_values_at_run = false;
  EXPECT_EQ(waits_of([&] { return ops::plan_spmm(graph, options); }), 3);
}

/// Tiles are the same bytes whether a survey counted their windows before or not.
TEST_F(GpuPlanning, MakesTheSameTilesOfCountedWindows) {
  for (const Graph& host :
       {batch(), test::memory_graph(),
        generate::build(generate::Rmat{.scale = 12, .edges = 60000, .seed = 5}),
        generate::build(generate::Bipartite{.targets = 700, .sources = 3001, .edges = 9000}),
        generate::build(generate::ErdosRenyi{.vertices = 17, .edges = 0, .seed = 1})}) {
    const Laid laid(host);
    const Graph graph = laid.graph();
    ops::SpmmOptions options = spmm_options(64, Precision::bf16);  // those of 8 rows, too
    options.kernel = options.backward_kernel = "spmm/cuda/rows*";
    const ops::SpmmPlan plan = ops::plan_spmm(graph, options);
    for (const tiles::Side side : {tiles::Side::forward, tiles::Side::transposed}) {
      for (const int height : {8, 16, 64, 128}) {
        SCOPED_TRACE(std::to_string(height) + " rows, " + to_string(side));
        EXPECT_EQ(tiles::translate(graph, height, side, gpu), tiles::translate(host, height, side));
      }
      const tiles::SplitGraph split = tiles::translate_dense(graph, 128, 3, side, gpu);
      const tiles::SplitGraph expected = tiles::translate_dense(host, 128, 3, side);
      EXPECT_EQ(split.dense, expected.dense);
      EXPECT_EQ(split.rest, expected.rest);
    }
  }
}

TEST_F(GpuPlanning, PinsNothingAndBringsNothingOfTheSizeOfTheEdges) {
  const std::int64_t pinned = test::num_pinned_allocations();
  for (const Graph& host : {batch(), weighted(batch())}) {
    const Laid laid(host);
    const Graph graph = laid.graph();
    test::largest_copy_to_host();
    ops::SpmmOptions options = spmm_options();
    options.kernel = options.backward_kernel = "spmm/cuda/rows*";
    ops::plan_spmm(gcn_normalised(graph, false), options);
    ops::plan_spmm(graph, options);
    ops::plan_attention(graph, attention_options(AttentionForm::gat, 1));
    ops::SddmmOptions sddmm = sddmm_options(128, Precision::bf16);
    for (const char* kernel : {"", "sddmm/cuda/list_hubs*"}) {
      sddmm.kernel = kernel;
      ops::plan_sddmm(graph, sddmm);
    }
    // Offsets do come, and there are twenty times as many edges.
    EXPECT_LT(test::largest_copy_to_host(), graph.num_edges());
  }
  EXPECT_EQ(test::num_pinned_allocations(), pinned);
}

/// Of a graph whose columns were kept for an earlier plan only.
TEST_F(GpuPlanning, BringsNothingOfTheSizeOfTheEdgesForLaterTiles) {
  if (!cuda::has_wgmma(gpu))
    GTEST_SKIP() << "no wgmma here; tools/gpu.sh test runs it on compute capability 9.0";
  const Laid laid(batch());
  const Graph graph = laid.graph();
  ops::SpmmOptions options = spmm_options(64, Precision::bf16);
  options.edge_values_at_run = false;
  options.kernel = options.backward_kernel = "spmm/cuda/tall_64";
  const ops::SpmmPlan first = ops::plan_spmm(graph, options);
  test::largest_copy_to_host();
  options.kernel = options.backward_kernel = "spmm/cuda/split_128";
  const ops::SpmmPlan second = ops::plan_spmm(graph, options);
  EXPECT_LT(test::largest_copy_to_host(), graph.num_edges());
}

/// A^T is A there; where one edge goes one way only, it is not.
TEST_F(GpuPlanning, HoldsTilesOfASymmetricGraphOnce) {
  if (!cuda::has_wgmma(gpu))
    GTEST_SKIP() << "no wgmma here; tools/gpu.sh test runs it on compute capability 9.0";
  const Graph symmetric = symmetrised(batch());
  std::vector<VertexId> columns(symmetric.col_indices().begin(), symmetric.col_indices().end());
  std::vector<EdgeOffset> offsets(symmetric.row_offsets().begin(), symmetric.row_offsets().end());
  // The last edge is a loop.
  columns.erase(columns.end() - 2), offsets.back() -= 1;
  const Graph other(symmetric.num_rows(), symmetric.num_cols(), std::move(offsets),
                    std::move(columns));
  CountingMemory memory(gpu);
  const auto bytes_of = [&](const Graph& host, bool backward) {
    const Laid laid(host);
    const Graph graph = laid.graph({}, &memory);
    const std::int64_t before = memory.live_bytes();
    ops::SpmmOptions options = spmm_options();
    options.memory = &memory;
    options.kernel = options.backward_kernel = "spmm/cuda/tall_64";
    options.edge_values_at_run = options.edge_value_gradient = false;
    options.backward = backward;
    const ops::SpmmPlan plan = ops::plan_spmm(graph, options);
    const std::int64_t bytes = memory.live_bytes() - before;
    if (!backward) return bytes;
    test::Padded<float> grad_y(testing::integers<float>(graph.num_rows(), 64, 5), 8);
    test::Padded<float> grad_x(graph.num_cols(), 64, 8);
    test::Placed<float> placed_y(grad_y, gpu), placed_x(grad_x, gpu);
    ops::run_backward(plan, {placed_y.view()}, {placed_x.view()});
    placed_x.fetch();
    Matrix<float> expected(graph.num_cols(), 64, 0.0f);
    for (VertexId row = 0; row < host.num_rows(); ++row) {
      for (const VertexId col : host.neighbours(row)) {
        for (std::int64_t j = 0; j < 64; ++j) expected(col, j) += grad_y.view()(row, j);
      }
    }
    for (VertexId row = 0; row < host.num_cols(); ++row) {
      for (std::int64_t j = 0; j < 64; ++j) {
        EXPECT_EQ(grad_x.view()(row, j), expected(row, j)) << row << ", " << j;
      }
    }
    return bytes;
  };
  const std::int64_t one_side = bytes_of(symmetric, false);
  EXPECT_LT(2 * bytes_of(symmetric, true), 3 * one_side);
  EXPECT_GT(2 * bytes_of(other, true), 3 * one_side);
}

/// Whatever the GPU counts is what this process would: then the same kernels are chosen, with the
/// same predictions, word for word.
TEST_F(GpuPlanning, ChoosesAsForAGraphInThisProcess) {
  const std::vector<Graph> graphs = {
      batch(),
      weighted(batch()),
      test::memory_graph(),
      generate::build(generate::Rmat{.scale = 12, .edges = 60000, .seed = 5}),
      generate::build(generate::Bipartite{.targets = 700, .sources = 3001, .edges = 9000}),
      generate::build(generate::ErdosRenyi{.vertices = 300, .edges = 20000, .seed = 1}),
      generate::build(generate::ErdosRenyi{.vertices = 17, .edges = 0, .seed = 1}),
      generate::build(generate::ErdosRenyi{.vertices = 1, .edges = 0, .seed = 1})};
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    SCOPED_TRACE("graph " + std::to_string(i));
    const Graph& host = graphs[i];
    const Laid laid(host);
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
      for (const std::int64_t features : {16, 64}) {
        ops::SpmmOptions spmm = spmm_options(features, precision);
        EXPECT_EQ(to_string(ops::plan_spmm(laid.graph(), spmm).explain()),
                  to_string(ops::plan_spmm(host, spmm).explain()));
        const ops::SddmmOptions sddmm = sddmm_options(features, precision);
        EXPECT_EQ(to_string(ops::plan_sddmm(laid.graph(), sddmm).explain()),
                  to_string(ops::plan_sddmm(host, sddmm).explain()));
        if (!host.is_square() || host.has_values()) continue;
        EXPECT_EQ(to_string(ops::plan_spmm(gcn_normalised(laid.graph(), false), spmm).explain()),
                  to_string(ops::plan_spmm(gcn_normalised(host, false), spmm).explain()));
      }
    }
    for (const AttentionForm form : {AttentionForm::gat, AttentionForm::dot}) {
      if (host.has_values()) continue;
      EXPECT_EQ(to_string(ops::plan_attention(laid.graph(), attention_options(form, 8)).explain()),
                to_string(ops::plan_attention(host, attention_options(form, 8)).explain()));
    }
  }
}

TEST_F(GpuPlanning, CountsTheSameWindowsOfHubs) {
  for (const Graph& host :
       {batch(), symmetrised(batch()), test::memory_graph(),
        generate::build(generate::Rmat{.scale = 14, .edges = 400000, .seed = 5}),
        generate::build(generate::Rmat{.scale = 19, .edges = 1500000, .seed = 5}),
        generate::build(generate::ErdosRenyi{.vertices = 5000, .edges = 9000, .seed = 2})}) {
    if (!host.is_square()) continue;
    const Laid laid(host);
    const Graph graph = laid.graph();
    const ops::SddmmPlan plan = ops::plan_sddmm(graph, sddmm_options(128, Precision::fp32));
    const auto found = tiles::sampled_hub_windows(graph);
    const auto expected = tiles::sampled_hub_windows(host);
    ASSERT_EQ(found->size(), expected->size());
    for (std::size_t i = 0; i < found->size(); ++i) {
      EXPECT_EQ((*found)[i].edges, (*expected)[i].edges) << i;
      EXPECT_EQ((*found)[i].columns, (*expected)[i].columns) << i;
    }
  }
}

/// A plan that measured keeps what one keeps that was told to use the same kernels.
TEST_F(GpuPlanning, FreesWhatWasTriedAndNotChosen) {
  const Laid laid(batch());
  const OwnedStream stream;
  CountingMemory memory(gpu);
  ops::SpmmOptions options = spmm_options();
  options.memory = &memory;
  options.stream = stream;
  options.edge_values_at_run = false;
  options.edge_value_gradient = false;  // its kernel has no option that names it
  std::int64_t measured_bytes = 0;
  ops::SpmmOptions named = options;
  {
    const Graph graph = laid.graph(stream, &memory);
    options.tune = ops::Tune::measured;
    const ops::SpmmPlan plan = ops::plan_spmm(graph, options);
    measured_bytes = memory.live_bytes();
    named.kernel = plan.kernel().name;
    const ops::Explanation explanation = plan.explain();
    const ops::Explanation* const backward = find_child(explanation, "backward");
    ASSERT_NE(backward, nullptr);
    named.backward_kernel = backward->summary.substr(0, backward->summary.find(':'));
  }
  EXPECT_EQ(memory.num_live(), 0);
  const Graph graph = laid.graph(stream, &memory);
  const ops::SpmmPlan plan = ops::plan_spmm(graph, named);
  EXPECT_EQ(measured_bytes, memory.live_bytes())
      << named.kernel << " and " << named.backward_kernel << " backward";
}

/// Only a backward pass needs the columns.
TEST_F(GpuPlanning, ForwardPlansKeepNoColumns) {
  const Laid laid(batch());
  CountingMemory memory(gpu);
  const auto bytes_of = [&](bool backward) {
    const Graph graph = laid.graph({}, &memory);
    ops::SpmmOptions options = spmm_options();
    options.memory = &memory;
    options.kernel = options.backward_kernel = "spmm/cuda/rows*";
    options.backward = backward;
    const ops::SpmmPlan plan = ops::plan_spmm(graph, options);
    return memory.live_bytes();
  };
  const std::int64_t columns = batch().num_edges() * std::int64_t{sizeof(VertexId) + 8};
  EXPECT_LT(bytes_of(false), columns);
  EXPECT_GE(bytes_of(true), columns);
}

TEST_F(GpuPlanning, EndsWithOneErrorWhenMemoryRunsDryAndLeaksNothing) {
  const Laid laid(test::memory_graph());
  const OwnedStream stream;
  CountingMemory memory(gpu);
  test::expect_one_error_when_dry(memory, [&] {
    const Graph graph = gcn_normalised(laid.graph(stream, &memory), false);
    ops::SpmmOptions options = spmm_options();
    options.memory = &memory;
    options.stream = stream;
    ops::plan_spmm(graph, options);
  });
}

/// Planning is queued behind much other work, so a run on another stream comes first unless it
/// waits; so does a captured one, on whatever stream it is launched.
TEST_F(GpuPlanning, RunsWaitForPlansThatAreStillBeingMade) {
  for (const test::MemoryCase& one : test::memory_cases()) {
    SCOPED_TRACE(one.name);
    const Graph graph = test::memory_graph();
    ops::PlanOptions options;
    options.device = gpu;
    test::CaseOperands expected(graph);
    one.plan(graph, options).run(expected, {}, {});
    const std::vector<float> results = expected.results({});

    for (const bool captured : {false, true}) {
      const OwnedStream planning, running;
      options.stream = planning;
      Buffer<char> busy(std::int64_t{1} << 28, default_memory(gpu), planning);
      test::CaseOperands operands(graph);
      for (int i = 0; i < 50; ++i) fill_zero(busy.data(), std::size_t{1} << 28, gpu, planning);
      const test::PlannedCase planned = one.plan(test::memory_graph(), options);
      if (captured) {
        cudaGraph_t work = nullptr;
        ASSERT_EQ(cudaStreamBeginCapture(running.raw(), cudaStreamCaptureModeThreadLocal),
                  cudaSuccess);
        planned.run(operands, running, {});
        ASSERT_EQ(cudaStreamEndCapture(running.raw(), &work), cudaSuccess);
        cuda_backend::CapturedWork(work).launch(running.raw());
        synchronise(gpu, running);
      } else {
        planned.run(operands, running, {});
      }
      EXPECT_EQ(operands.results(running), results) << (captured ? "captured" : "not captured");
      synchronise(gpu, planning);
    }
  }
}

}  // namespace
}  // namespace tessera
