// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/odd_graphs.hpp"
#include "support/replay_scene.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/messages.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

/// Every op on edges recorded once and replayed on other numbers.
namespace tessera::ops {
namespace {

constexpr Device gpu = test::replay_gpu;

class GpuEdgeReplay : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }

  /// One with short rows, one with a row that is cut.
  static std::vector<Graph> graphs() {
    return {testing::random_graph(300, 200, 2500, 5, false), testing::hub_graph(40, 3000, 6)};
  }

  static void expect_spmm_replays(const Graph& graph, SpmmOptions options) {
    SCOPED_TRACE(options.kernel);
    options.backward = true;
    options.backward_kernel = options.kernel;
    const SpmmPlan plan = plan_spmm(graph, options);
    test::ReplayScene scene;
    auto &x = scene.matrix(graph.num_cols(), 32), &y = scene.matrix(graph.num_rows(), 32);
    auto &values = scene.matrix(graph.num_edges(), 1), &grad_x = scene.matrix(graph.num_cols(), 32);
    auto& grad_values = scene.matrix(graph.num_edges(), 1);
    scene.expect_replays("spmm", [&](Stream stream) {
      run(plan, {x, values}, {y}, stream);
      run_backward(plan, {y, x, values}, {grad_x, grad_values}, stream);
    });
  }

  /// What a plan says that cannot be made here; empty if it can.
  static std::string why_not_on_tiles(const Graph& graph, const SpmmOptions& options) {
    try {
      plan_spmm(graph, options);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }
};

TEST_F(GpuEdgeReplay, sddmm) {
  for (const Graph& graph : graphs()) {
    for (const std::int64_t heads : {1, 4}) {
      SddmmOptions options;
      options.features = 32;
      options.heads = heads;
      options.device = gpu;
      options.backward = true;
      const SddmmPlan plan = plan_sddmm(graph, options);
      test::ReplayScene scene;
      auto &u = scene.matrix(graph.num_rows(), 32), &v = scene.matrix(graph.num_cols(), 32);
      auto& edges = scene.matrix(graph.num_edges(), heads);
      auto &grad_u = scene.matrix(graph.num_rows(), 32),
           &grad_v = scene.matrix(graph.num_cols(), 32);
      scene.expect_replays("sddmm", [&](Stream stream) {
        run(plan, u, v, edges, stream);
        run_backward(plan, u, v, edges, grad_u, grad_v, stream);
      });
    }
  }
}

/// With the kernel that a plan chooses, and with one that puts values in order first.
TEST_F(GpuEdgeReplay, spmm_and_the_gradient_of_edge_values) {
  SpmmOptions options;
  options.features = 32;
  options.device = gpu;
  options.edge_values_expected = true;
  for (const Graph& graph : graphs()) {
    expect_spmm_replays(graph, options);
    options.kernel = "spmm/cuda/valued_64";
    if (why_not_on_tiles(graph, options).empty()) expect_spmm_replays(graph, options);
    options.kernel.clear();
  }
}

TEST_F(GpuEdgeReplay, edge_softmax) {
  for (const Graph& graph : graphs()) {
    EdgeSoftmaxOptions options;
    options.heads = 3;
    options.device = gpu;
    options.backward = true;
    const EdgeSoftmaxPlan plan = plan_edge_softmax(graph, options);
    test::ReplayScene scene;
    auto &scores = scene.matrix(graph.num_edges(), 3),
         &weights = scene.matrix(graph.num_edges(), 3);
    auto& grad = scene.matrix(graph.num_edges(), 3);
    scene.expect_replays("edge_softmax", [&](Stream stream) {
      run(plan, scores, weights, stream);
      run_backward(plan, weights, scores, grad, stream);
    });
  }
}

TEST_F(GpuEdgeReplay, messages) {
  for (const Graph& graph : graphs()) {
    MessagesOptions options;
    options.features = 32;
    options.device = gpu;
    options.backward = true;
    const MessagesPlan plan = plan_messages(graph, options);
    test::ReplayScene scene;
    auto &x = scene.matrix(graph.num_cols(), 32), &edges = scene.matrix(graph.num_edges(), 32);
    auto &y = scene.matrix(graph.num_rows(), 32), &grad_x = scene.matrix(graph.num_cols(), 32);
    auto& grad_edges = scene.matrix(graph.num_edges(), 32);
    scene.expect_replays("messages", [&](Stream stream) {
      run(plan, {x, edges}, y, stream);
      run_backward(plan, {x, edges}, y, {grad_x, grad_edges}, stream);
    });
  }
}

TEST_F(GpuEdgeReplay, attention) {
  for (const Graph& graph : graphs()) {
    struct FormAndKernel {
      AttentionForm form;
      std::string kernel;
    };
    const std::vector<FormAndKernel> kernels = {{AttentionForm::gat, "attention/cuda/rows"},
                                                {AttentionForm::gatv2, "attention/cuda/rows"},
                                                {AttentionForm::dot, "attention/cuda/rows"},
                                                {AttentionForm::dot, "attention/cuda/staged"}};
    for (const auto& [form, kernel] : kernels) {
      AttentionOptions options;
      options.form = form;
      options.kernel = kernel;
      options.heads = 4;
      options.features = 32;
      options.dropout = 0.3;
      options.device = gpu;
      options.backward = true;
      const AttentionPlan plan = plan_attention(graph, options);
      const std::int64_t cols = form == AttentionForm::gat ? 4 : 32;
      test::ReplayScene scene;
      auto &target = scene.matrix(graph.num_rows(), cols),
           &source = scene.matrix(graph.num_cols(), cols);
      auto &value = scene.matrix(graph.num_cols(), 32), &vector = scene.matrix(1, 32);
      auto &output = scene.matrix(graph.num_rows(), 32),
           &log_sum = scene.matrix(graph.num_rows(), 4);
      auto &grad_target = scene.matrix(graph.num_rows(), cols),
           &grad_source = scene.matrix(graph.num_cols(), cols);
      auto &grad_value = scene.matrix(graph.num_cols(), 32), &grad_vector = scene.matrix(1, 32);
      Buffer<double> grad_scale(1, default_memory(gpu));
      AttentionInputs inputs{target, source, value, {}, 0.2, Random(7)};
      AttentionGradOutputs gradients{grad_target, grad_source, grad_value, {}, nullptr};
      if (form == AttentionForm::gatv2) {
        inputs.vector = vector;
        gradients.vector = grad_vector;
      }
      if (form == AttentionForm::dot) gradients.scale = grad_scale.data();
      scene.expect_replays(kernel + " " + to_string(form), [&](Stream stream) {
        run(plan, inputs, {output, log_sum}, stream);
        run_backward(plan, inputs, output, log_sum, output, gradients, stream);
      });
    }
  }
}

}  // namespace
}  // namespace tessera::ops
