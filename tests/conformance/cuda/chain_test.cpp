// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/mixed_windows.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/linear.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

#include "core/cuda_handles.hpp"
#include "ops/dense/call_chain.hpp"

/// Kernels that follow each other closely read what the ones before wrote: the results are those of
/// runs that are waited for one by one, bit for bit.
namespace tessera::ops {
namespace {

constexpr Device gpu{DeviceKind::cuda, 0};
constexpr std::int64_t width = 64;
constexpr int replays = 20;

using cuda_backend::OwnedStream;
using Steps = std::vector<std::function<void(Stream)>>;

/// Marks a place in one stream that another waits for.
class Crossing {
 public:
  Crossing() {
    cuda_check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
  }
  ~Crossing() { cudaEventDestroy(event_); }
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  void operator()(Stream from, Stream to) const {
    cuda_check(cudaEventRecord(event_, static_cast<cudaStream_t>(from.handle)),
               "recording an event");
    cuda_check(cudaStreamWaitEvent(static_cast<cudaStream_t>(to.handle), event_, 0),
               "waiting for an event");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

SpmmOptions options_of(Precision precision, const std::string& kernel) {
  SpmmOptions options;
  options.features = width;
  options.precision = precision;
  options.device = gpu;
  options.kernel = kernel;
  return options;
}

/// A plan for each kernel of the GPU that takes the graph and gives the same bits twice.
std::vector<SpmmPlan> all_plans(const Graph& graph, Precision precision) {
  std::vector<SpmmPlan> plans;
  for (const std::string& name : testing::kernel_names("spmm")) {
    const KernelInfo info = testing::kernel_info(name);
    if (info.device != DeviceKind::cuda || !info.deterministic) continue;
    try {
      plans.push_back(plan_spmm(graph, options_of(precision, name)));
    } catch (const Error& error) {
      // Not for this graph or precision.
      if (error.code() != ErrorCode::unsupported) throw;
    }
  }
  return plans;
}

/// One with short rows, one whose rows are cut, and one whose windows want different cores.
std::vector<Graph> graphs() {
  return {testing::random_graph(2600, 2600, 11000, 5, false), testing::hub_graph(3000, 3000, 6),
          testing::mixed_windows(2600, 2600, 7)};
}

/// Matrices that a chain goes back and forth between.
struct Features {
  explicit Features(const Graph& graph)
      : x(graph.num_rows(), width, gpu, 0),
        y(graph.num_rows(), width, gpu, 0),
        x16(graph.num_rows(), width, gpu, 0),
        y16(graph.num_rows(), width, gpu, 0),
        mixer(test::normal_matrix<float>(width, width, 3), gpu, 0),
        scores(graph.num_edges(), 1, gpu, 0),
        weights(graph.num_edges(), 1, gpu, 0),
        start_(test::normal_matrix<float>(graph.num_rows(), width, 4)) {}

  void reset() {
    x.set(start_);
    y.set(start_);
    synchronise(gpu);
  }

  test::DeviceMatrix<float> x, y;
  test::DeviceMatrix<Bfloat16> x16, y16;
  test::DeviceMatrix<float> mixer, scores, weights;

 private:
  Matrix<float> start_;
};

class GpuChain : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
    test::workspace_on(gpu);  // made before anything is recorded
  }

  static void run_all(const Steps& steps, Stream stream) {
    for (const auto& step : steps) step(stream);
  }

  /// Queued one after the other, and recorded and replayed, as often as it takes to fail.
  static void expect_same(Features& features, const Steps& steps) {
    features.reset();
    const OwnedStream stream;
    for (const auto& step : steps) {
      step(stream);
      synchronise(gpu, stream);
    }
    const Matrix<float> expected = features.x.values();
    const Recording recording =
        Recording::of(gpu, [&](Stream recorded) { run_all(steps, recorded); });
    for (int i = 0; i < replays; ++i) {
      SCOPED_TRACE(i);
      features.reset();
      run_all(steps, stream);
      synchronise(gpu, stream);
      ASSERT_TRUE(test::same_bits(expected, features.x.values())) << "queued";
      features.reset();
      recording.replay(stream);
      synchronise(gpu, stream);
      ASSERT_TRUE(test::same_bits(expected, features.x.values())) << "recorded";
    }
  }
};

TEST_F(GpuChain, of_all_sums_and_other_ops_between_them) {
  for (const Graph& graph : graphs()) {
    Features features(graph);
    auto &x = features.x, &y = features.y, &scores = features.scores, &weights = features.weights;
    auto &x16 = features.x16, &y16 = features.y16;
    const std::vector<SpmmPlan> plans = all_plans(graph, Precision::fp32);
    const std::vector<SpmmPlan> plans16 = all_plans(graph, Precision::bf16);
    ASSERT_FALSE(plans.empty());
    ASSERT_FALSE(plans16.empty());
    SddmmOptions dots;
    dots.features = width;
    dots.device = gpu;
    const SddmmPlan edge_plan = plan_sddmm(graph, dots);
    EdgeSoftmaxOptions softmax;
    softmax.device = gpu;
    const EdgeSoftmaxPlan softmax_plan = plan_edge_softmax(graph, softmax);
    Steps steps;
    const auto add = [&](std::function<void(Stream)> step) { steps.push_back(std::move(step)); };
    for (std::size_t i = 0; i < std::max(plans.size(), plans16.size()); ++i) {
      const SpmmPlan& plan = plans[i % plans.size()];
      const SpmmPlan& plan16 = plans16[i % plans16.size()];
      add([&](Stream stream) { run(plan, {x}, {y}, stream); });
      add([&](Stream stream) { row_normalise(y, x, 1e-12, gpu, stream); });
      add([&](Stream stream) { copy(x, y16, gpu, stream); });
      add([&](Stream stream) { run(plan16, {y16}, {x16}, stream); });
      add([&](Stream stream) { add_scaled(1, x16, 1, y16, gpu, stream); });
      add([&](Stream stream) { copy(y16, y, gpu, stream); });
      add([&](Stream stream) { row_normalise(y, x, 1e-12, gpu, stream); });
      if (i % 3 == 0) {
        add([&](Stream stream) { run(edge_plan, x, y, scores, stream); });
        add([&](Stream stream) { run(softmax_plan, scores, weights, stream); });
        add([&](Stream stream) { run(plan, {x, weights}, {y}, stream); });
        add([&](Stream stream) {
          gemm(Transpose::no, Transpose::no, 0.1, y, features.mixer, 1, x, gpu, stream,
               test::workspace_on(gpu));
        });
        add([&](Stream stream) {
          const MatrixView<float> cleared = scores.view();
          cuda_check(cudaMemsetAsync(cleared.data, 0,
                                     static_cast<std::size_t>(cleared.rows) * sizeof(float),
                                     static_cast<cudaStream_t>(stream.handle)),
                     "clearing");
        });
      }
    }
    expect_same(features, steps);
  }
}

TEST_F(GpuChain, of_one_kernel_that_is_its_own_neighbour) {
  for (const Graph& graph : graphs()) {
    Features features(graph);
    for (const SpmmPlan& plan : all_plans(graph, Precision::fp32)) {
      SCOPED_TRACE(plan.kernel().name);
      Steps steps;
      for (int i = 0; i < 6; ++i) {
        steps.emplace_back([&](Stream stream) { run(plan, {features.x}, {features.y}, stream); });
        steps.emplace_back([&](Stream stream) { run(plan, {features.y}, {features.x}, stream); });
      }
      expect_same(features, steps);
    }
  }
}

TEST_F(GpuChain, across_streams_that_wait_for_events) {
  for (const Graph& graph : graphs()) {
    Features features(graph);
    auto &x = features.x, &y = features.y;
    const OwnedStream other;
    const std::vector<SpmmPlan> plans = all_plans(graph, Precision::fp32);
    std::vector<Crossing> there(plans.size()), back(plans.size());
    Steps steps;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      steps.emplace_back([&, i](Stream stream) { run(plans[i], {x}, {y}, stream); });
      steps.emplace_back([&, i](Stream stream) {
        there[i](stream, other);
        // Beside each other: both read y, and neither what the other writes.
        copy(y, features.x16, gpu, stream);
        run(plans[(i + 1) % plans.size()], {y}, {x}, other);
        back[i](other, stream);
      });
      steps.emplace_back([&](Stream stream) { add_scaled(0.5, y, 1, x, gpu, stream); });
      steps.emplace_back([&](Stream stream) { row_normalise(x, y, 1e-12, gpu, stream); });
      steps.emplace_back([&](Stream stream) { copy(y, x, gpu, stream); });
    }
    expect_same(features, steps);
  }
}

TEST_F(GpuChain, through_memory_that_is_freed_on_the_stream) {
  for (const Graph& graph : graphs()) {
    Features features(graph);
    Steps steps;
    for (const SpmmPlan& plan : all_plans(graph, Precision::fp32)) {
      steps.emplace_back([&features, plan](Stream stream) {
        auto* const raw = static_cast<cudaStream_t>(stream.handle);
        MatrixView<float> between = features.x.view();
        void* memory = nullptr;
        cuda_check(
            cudaMallocAsync(&memory,
                            static_cast<std::size_t>(between.rows * between.stride) * sizeof(float),
                            raw),
            "allocating");
        between.data = static_cast<float*>(memory);
        run(plan, {features.x}, {between}, stream);
        row_normalise(between, features.x, 1e-12, gpu, stream);
        cuda_check(cudaFreeAsync(memory, raw), "freeing");
      });
    }
    expect_same(features, steps);
  }
}

/// Blocks of a chain of many rows wait for each other: those of several chains at once must not
/// keep each other from running.
TEST_F(GpuChain, of_many_rows_on_several_streams_at_once) {
  constexpr std::int64_t rows = 30000, cols = 16;
  constexpr int streams = 8, repeats = 30;
  struct Line {
    OwnedStream stream;
    DenseWorkspace workspace{Place(gpu)};
    test::DeviceMatrix<float> x{test::normal_matrix<float>(rows, cols, 3), gpu, 0};
    test::DeviceMatrix<float> y{rows, cols, gpu, 0}, z{rows, cols, gpu, 0};
    test::DeviceMatrix<float> weight{test::normal_matrix<float>(cols, cols, 4), gpu, 0};
    test::DeviceMatrix<float> mean{1, cols, gpu, 0}, deviation{1, cols, gpu, 0};
  };
  std::vector<std::unique_ptr<Line>> lines;
  for (int i = 0; i < streams; ++i) lines.push_back(std::make_unique<Line>());
  synchronise(gpu);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (const std::unique_ptr<Line>& line : lines) {
      CallChain chain;
      CallChain* const joined = &chain;
      const Stream stream = line->stream;
      linear(line->x, line->weight, {}, line->y, gpu, stream, &line->workspace, Precision::fp32, {},
             joined);
      batch_norm(line->y, {}, {}, {1e-5, 0.1, true}, {}, line->z, line->mean, line->deviation, gpu,
                 stream, &line->workspace, {}, {}, {}, joined);
      chain.run();
    }
  }
  for (const std::unique_ptr<Line>& line : lines) synchronise(gpu, line->stream);
  const Matrix<float> expected = lines[0]->z.values();
  for (const std::unique_ptr<Line>& line : lines) {
    EXPECT_TRUE(test::same_bits(expected, line->z.values()));
  }
}

}  // namespace
}  // namespace tessera::ops
