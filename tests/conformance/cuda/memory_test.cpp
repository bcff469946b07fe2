// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/cuda/allocation_hook.hpp"
#include "conformance/cuda/memory_cases.hpp"
#include "support/running_dry.hpp"
#include "support/training_data.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tessera/train/trainer.hpp"

#include "core/cuda_handles.hpp"

/// Whose memory and whose streams: docs/design/memory.md, on a GPU, with streams that wait for no
/// other.
namespace tessera {
namespace {

using cuda_backend::OwnedStream;
using ops::PlanOptions;
using test::CaseOperands;
using test::CountingMemory;
using test::memory_cases;
using test::memory_graph;
using test::MemoryCase;
using test::num_cuda_allocations;
using test::PlannedCase;

constexpr Device gpu = test::memory_gpu;

PlanOptions options_in(CountingMemory& memory, Stream stream) {
  PlanOptions options;
  options.device = gpu;
  options.memory = &memory;
  options.stream = stream;
  return options;
}

/// Memory of the test itself, never part of what is counted.
class Lent {
 public:
  explicit Lent(std::int64_t bytes) : memory_(bytes, default_memory(gpu)) {
    const std::vector<char> pattern(static_cast<std::size_t>(bytes), '\x5a');
    copy_bytes(memory_.data(), pattern.data(), pattern.size(), gpu);
    synchronise(gpu);
  }
  operator Workspace() { return {memory_.data(), memory_.size()}; }

 private:
  Buffer<char> memory_;
};

class GpuMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }

  /// What a case gives when everything is waited for.
  static std::vector<float> expected_of(const MemoryCase& one) {
    PlanOptions options;
    options.device = gpu;
    const Graph graph = memory_graph();
    const PlannedCase planned = one.plan(graph, options);
    CaseOperands operands(graph);
    planned.run(operands, {}, {});
    return operands.results({});
  }
};

TEST_F(GpuMemory, PlansTakeAllOfItFromTheResourceAndRunsTakeNone) {
  for (const MemoryCase& one : memory_cases()) {
    SCOPED_TRACE(one.name);
    const OwnedStream stream;
    CountingMemory memory(gpu);
    {
      const Graph graph = memory_graph();
      CaseOperands operands(graph);
      const std::int64_t before = num_cuda_allocations();
      const PlannedCase planned = one.plan(graph, options_in(memory, stream));
      EXPECT_EQ(num_cuda_allocations() - before, memory.num_allocations());
      EXPECT_GT(memory.num_allocations(), 0);
      const std::int64_t planned_allocations = num_cuda_allocations();
      planned.run(operands, stream, {});
      planned.run(operands, stream, {});
      EXPECT_EQ(num_cuda_allocations(), planned_allocations) << "a run allocates";
      synchronise(gpu, stream);
    }
    EXPECT_EQ(memory.num_live(), 0);
    EXPECT_EQ(memory.num_wrong_releases(), 0);
    synchronise(gpu, stream);
  }
}

TEST_F(GpuMemory, PlansEndWithOneErrorWhenItRunsDryAndLeakNothing) {
  for (const MemoryCase& one : memory_cases()) {
    SCOPED_TRACE(one.name);
    const OwnedStream stream;
    CountingMemory memory(gpu);
    const auto plan = [&] { one.plan(memory_graph(), options_in(memory, stream)); };
    test::expect_one_error_when_dry(memory, plan);
    // Where another kernel needs less, one failure is no reason to give up.
    test::expect_nothing_left_after_one_failure(memory, plan);
    synchronise(gpu, stream);
  }
}

TEST_F(GpuMemory, LentWorkspacesNeedNotBeCleared) {
  for (const MemoryCase& one : memory_cases()) {
    SCOPED_TRACE(one.name);
    const std::vector<float> expected = expected_of(one);
    const OwnedStream stream;
    CountingMemory memory(gpu);
    const Graph graph = memory_graph();
    PlanOptions options = options_in(memory, stream);
    options.own_workspace = false;
    const PlannedCase planned = one.plan(graph, options);
    CaseOperands operands(graph);
    for (int repeat = 0; repeat < 2; ++repeat) {
      Lent lent(planned.workspace_bytes + 1);
      planned.run(operands, stream, lent);
      EXPECT_EQ(operands.results(stream), expected) << "run " << repeat;
    }
    synchronise(gpu, stream);
  }
}

TEST_F(GpuMemory, OnePlanRunsOnTwoStreamsAtOnce) {
  for (const MemoryCase& one : memory_cases()) {
    SCOPED_TRACE(one.name);
    const std::vector<float> expected = expected_of(one);
    const OwnedStream planning, first, second;
    CountingMemory memory(gpu);
    const Graph graph = memory_graph();
    CaseOperands first_operands(graph), second_operands(graph);
    const PlannedCase planned = one.plan(graph, options_in(memory, planning));
    Lent first_lent(planned.workspace_bytes + 1), second_lent(planned.workspace_bytes + 1);
    for (int repeat = 0; repeat < 20; ++repeat) {
      planned.run(first_operands, first, first_lent);
      planned.run(second_operands, second, second_lent);
    }
    EXPECT_EQ(first_operands.results(first), expected);
    EXPECT_EQ(second_operands.results(second), expected);
  }
}

TEST_F(GpuMemory, APlanIsCompleteForEveryStreamWhenItIsMade) {
  for (const MemoryCase& one : memory_cases()) {
    SCOPED_TRACE(one.name);
    const std::vector<float> expected = expected_of(one);
    const OwnedStream planning, running;
    CountingMemory memory(gpu);
    const Graph graph = memory_graph();
    CaseOperands operands(graph);
    const PlannedCase planned = one.plan(graph, options_in(memory, planning));
    planned.run(operands, running, {});
    EXPECT_EQ(operands.results(running), expected);
  }
}

/// What goes back to the resource is overwritten at once, in the order of the plan's stream: too
/// early, and the runs that are still queued on the other stream would read that.
TEST_F(GpuMemory, PlansAndGraphsMayBeDestroyedInFlight) {
  for (const MemoryCase& one : memory_cases()) {
    SCOPED_TRACE(one.name);
    const std::vector<float> expected = expected_of(one);
    const OwnedStream planning, running;
    CountingMemory memory(gpu);
    auto graph = std::make_unique<Graph>(memory_graph());
    CaseOperands operands(*graph);
    {
      const PlannedCase planned = one.plan(*graph, options_in(memory, planning));
      for (int repeat = 0; repeat < 200; ++repeat) planned.run(operands, running, {});
    }
    graph.reset();
    EXPECT_EQ(memory.num_live(), 0);
    EXPECT_EQ(operands.results(running), expected);
    synchronise(gpu, planning);
  }
}

/// Two plans of one graph on two streams share what the graph keeps. The first asker's stream
/// releases it, after the other one is done with it.
TEST_F(GpuMemory, PlansOnDifferentStreamsShareWhatTheGraphKeeps) {
  const MemoryCase one = test::spmm_backward_case();
  const std::vector<float> expected = expected_of(one);
  const OwnedStream first, second;
  CountingMemory memory(gpu);
  auto graph = std::make_unique<Graph>(memory_graph());
  CaseOperands operands(*graph);
  {
    auto first_plan = std::make_unique<PlannedCase>(one.plan(*graph, options_in(memory, first)));
    const std::int64_t alone = memory.num_allocations();
    const PlannedCase second_plan = one.plan(*graph, options_in(memory, second));
    EXPECT_LT(memory.num_allocations() - alone, alone) << "the graph's arrays were made again";
    first_plan.reset();
    for (int repeat = 0; repeat < 200; ++repeat) second_plan.run(operands, second, {});
  }
  graph.reset();
  EXPECT_EQ(memory.num_live(), 0);
  EXPECT_EQ(operands.results(second), expected);
  synchronise(gpu, first);
}

TEST_F(GpuMemory, GraphsAndTilesAreMadeOfIt) {
  const Graph host = memory_graph();
  std::vector<VertexId> rows, cols;
  for (VertexId row = 0; row < host.num_rows(); ++row) {
    for (const VertexId col : host.neighbours(row)) {
      rows.push_back(row);
      cols.push_back(col);
    }
  }
  const OwnedStream stream;
  CountingMemory memory(gpu);
  const auto make = [&] {
    BuildOptions options;
    options.device = gpu;
    options.memory = &memory;
    options.stream = stream;
    options.keep_edge_ids = true;
    const Graph built = from_coo(host.num_rows(), host.num_cols(), rows, cols, {}, options);
    const Graph normalised = gcn_normalised(built);
    tiles::translate(normalised, 64, tiles::Side::forward, {gpu, &memory, stream});
    tiles::translate_dense(normalised, 64, 4, tiles::Side::forward, {gpu, &memory, stream});
    return built;
  };
  const std::int64_t before = num_cuda_allocations();
  EXPECT_EQ(make().with_edge_ids({}), host);
  EXPECT_EQ(num_cuda_allocations() - before, memory.num_allocations());
  test::expect_one_error_when_dry(memory, make);
  synchronise(gpu, stream);
}

/// A model that was made in a place of its own, trained there step by step and by replay.
TEST_F(GpuMemory, TrainingTakesAllOfItFromTheResource) {
  for (const nn::ModelKind kind : {nn::ModelKind::gcn, nn::ModelKind::gat, nn::ModelKind::gin,
                                   nn::ModelKind::sage, nn::ModelKind::agnn}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const OwnedStream stream;
    CountingMemory memory(gpu);
    const Dataset data = test::learnable_vertices();
    const nn::ModelConfig config = test::small_model(kind);
    train::TrainOptions options = test::short_training(3);
    options.placement.memory = &memory;
    options.placement.stream = stream;
    const train::Problem problem = train::prepare(data, config, options);
    {
      const std::int64_t before = num_cuda_allocations();
      train::Trainer trainer(problem, problem.split, config, options, 1);
      trainer.train_epoch();
      trainer.evaluate();
      EXPECT_EQ(num_cuda_allocations() - before, memory.num_allocations());
      const std::int64_t made = num_cuda_allocations();
      for (int epoch = 0; epoch < 3; ++epoch) {
        trainer.train_epoch();
        trainer.evaluate();
      }
      EXPECT_EQ(num_cuda_allocations(), made) << "a later epoch allocates";
    }
    EXPECT_EQ(memory.num_wrong_releases(), 0);
    synchronise(gpu, stream);
  }
}

void expect_training_ends_with_one_error(nn::ModelKind kind) {
  const Dataset data = test::learnable_vertices();
  const OwnedStream stream;
  CountingMemory memory(gpu);
  test::expect_one_error_when_dry(memory, [&] {
    const nn::ModelConfig config = test::small_model(kind);
    train::TrainOptions options = test::short_training(3);
    options.placement.memory = &memory;
    options.placement.stream = stream;
    const train::Problem problem = train::prepare(data, config, options);
    train::Trainer trainer(problem, problem.split, config, options, 1);
    trainer.train_epoch();
    trainer.evaluate();
    synchronise(gpu, stream);
  });
  synchronise(gpu, stream);
}

TEST_F(GpuMemory, TrainingGcnEndsWithOneErrorWhenItRunsDryAndLeaksNothing) {
  expect_training_ends_with_one_error(nn::ModelKind::gcn);
}

TEST_F(GpuMemory, TrainingGatEndsWithOneErrorWhenItRunsDryAndLeaksNothing) {
  expect_training_ends_with_one_error(nn::ModelKind::gat);
}

TEST_F(GpuMemory, OfOtherLibrariesIsLeftAlone) {
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, gpu.index), cudaSuccess);
  const auto ask = [&](cudaMemPoolAttr attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(cudaMemPoolGetAttribute(pool, attribute, &value), cudaSuccess);
    return value;
  };
  const Buffer<char> buffer(1 << 20, default_memory(gpu));
  EXPECT_EQ(ask(cudaMemPoolAttrReleaseThreshold), 0u);
  EXPECT_EQ(ask(cudaMemPoolAttrUsedMemCurrent), 0u);
}

}  // namespace
}  // namespace tessera
