// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/dense_workspace.hpp"
#include "support/gradient_check.hpp"
#include "support/random_coo.hpp"
#include "support/random_matrix.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/step/execution.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/rewrites.hpp"

/// Rewrites that depend on precision, graph or device.
namespace tessera {
namespace {

using step::Program;
using step::Value;

/// A perceptron with batch norm behind sums over neighbours, and what its program became.
class Scene {
 public:
  Scene(const step::Placement& placement, Graph graph, std::int64_t in, std::int64_t out,
        std::int64_t hidden = 64)
      : placement_(placement),
        topology_(std::move(graph), placement.device()),
        x(placement),
        first("w", hidden, in, step::Initial::uniform(0.5), placement),
        second("v", out, hidden, step::Initial::uniform(0.5), placement),
        gamma("gamma", 1, hidden, step::Initial::constant(1.5), placement.wide()),
        beta("beta", 1, hidden, step::Initial::uniform(0.5), placement.wide()),
        mean_(1, hidden, placement.wide()),
        variance_(1, hidden, placement.wide()) {
    x.upload(testing::random_matrix<float>(topology_.num_rows(), in, testing::NumberKind::normal, 1)
                 .view());
    std::uint64_t seed = 5;
    for (step::Parameter* parameter : {&first, &second, &gamma, &beta}) {
      parameter->reset(Random(seed++));
    }
    mean_.fill(0);
    variance_.fill(1);
    context_.graph = &topology_;
    context_.training = true;
    context_.workspace = test::workspace_on(placement.device());
  }

  using Build = std::function<Value(Scene& scene, Program& p, Value x)>;
  struct Result {
    std::vector<step::Fired> fired;
    std::vector<Matrix<float>> matrices;  ///< the result, and gradients

    std::int64_t times(const std::string& name) const {
      for (const step::Fired& one : fired) {
        if (one.name == name) return one.times;
      }
      return 0;
    }
  };

  Result run(const Build& build, const std::vector<std::string>& off = {}) {
    Program program;
    const Value input = program.input("x", false);
    const Value y = build(*this, program, input);
    const step::Bound bound[] = {{input, step::Input(x)}};
    step::note_shapes(program, placement_, bound, context_);
    const Value results[] = {y};
    const step::Surroundings around{results, placement_, context_};
    Result result;
    result.fired = step::rewrite(program, around, step::Side::before, off);
    const Value gradient = program.scratch_input("dy", y);
    step::differentiate(program, y, gradient, {});
    program.remove_unused(results);
    for (step::Fired& one : step::rewrite(program, around, step::Side::after, off))
      result.fired.push_back(one);
    step::Execution execution(program, placement_);
    step::Tensor output(placement_), grad(placement_);
    grad.upload(testing::random_matrix<float>(x.rows(), program.info(y).shape.cols,
                                              testing::NumberKind::normal, 2)
                    .view());
    execution.keep(y, output);
    execution.bind(input, step::Input(x));
    execution.bind_scratch(gradient, grad);
    execution.prepare(context_);
    execution.run(0, program.nodes().size(), context_);
    result.matrices.push_back(on_host(output));
    for (step::Parameter* parameter : {&first, &second, &gamma, &beta}) {
      if (parameter->gradient.size() > 0) result.matrices.push_back(on_host(parameter->gradient));
    }
    return result;
  }

  Value perceptron(Program& p, Value summed) {
    const step::BatchNormValues values{p.parameter(gamma), p.parameter(beta),
                                       p.state("mean", mean_), p.state("variance", variance_)};
    Value y = step::linear(p, summed, p.parameter(first));
    y = step::batch_norm(p, y, values, {.training = true});
    y = step::activate(p, y, {ops::Activation::relu});
    return step::linear(p, y, p.parameter(second));
  }

 private:
  Matrix<float> on_host(const step::Tensor& tensor) const {
    step::Tensor copy({tensor.precision()});
    copy.resize(tensor.rows(), tensor.cols());
    ops::download(tensor, copy, tensor.device(), {});
    synchronise(tensor.device());
    step::Tensor wide({Precision::fp32});
    wide.copy_from(copy);
    Matrix<float> numbers(wide.rows(), wide.cols());
    for (std::int64_t i = 0; i < wide.size(); ++i) {
      numbers.data()[i] = wide.as<float>()(i / wide.cols(), i % wide.cols());
    }
    return numbers;
  }

  step::Placement placement_;
  step::Topology topology_;

 public:
  step::Tensor x;
  step::Parameter first, second, gamma, beta;

 private:
  step::Tensor mean_, variance_;
  step::Context context_;
};

void expect_close(const Scene::Result& a, const Scene::Result& b, double tolerance) {
  ASSERT_EQ(a.matrices.size(), b.matrices.size());
  for (std::size_t k = 0; k < a.matrices.size(); ++k) {
    double largest = 1e-3;
    for (const float number : b.matrices[k].span()) {
      largest = std::max(largest, std::abs(static_cast<double>(number)));
    }
    for (std::int64_t i = 0; i < a.matrices[k].size(); ++i) {
      ASSERT_NEAR(a.matrices[k].data()[i], b.matrices[k].data()[i], tolerance * largest)
          << "matrix " << k << ", number " << i;
    }
  }
}

Value narrow_sums(Scene& scene, Program& p, Value x) {
  return step::aggregate(p, step::linear(p, x, p.parameter(scene.first)), {step::gcn_adjacency});
}

TEST(PlacedRewrites, ScaleBeforeRoundingTo16BitsWhereEdgesAreMany) {
  const step::Placement bf16{Precision::bf16}, fp32{Precision::fp32};
  const Graph dense = testing::random_graph(60, 60, 60 * 50, 3, false);
  const Graph sparse = testing::random_graph(60, 60, 60 * 5, 3, false);
  const auto fired = [](const step::Placement& placement, const Graph& graph) {
    return Scene(placement, graph, 80, 8).run(narrow_sums).times("scale-before-rounding");
  };
  EXPECT_EQ(fired(bf16, dense), 1);
  EXPECT_EQ(fired(bf16, sparse), 0);
  EXPECT_EQ(fired(fp32, dense), 0);
  const auto with = Scene(bf16, dense, 80, 8).run(narrow_sums);
  const auto without = Scene(bf16, dense, 80, 8).run(narrow_sums, {"scale-before-rounding"});
  expect_close(with, without, 0x1p-5);
}

Value normed(Scene& scene, Program& p, Value x) {
  return scene.perceptron(p, step::aggregate(p, x, {step::pattern}));
}

/// ReLU behind the last product.
Value activated(Scene& scene, Program& p, Value x) {
  return step::activate(p, step::linear(p, x, p.parameter(scene.first)), {ops::Activation::relu});
}

/// One perceptron behind the other, so that a product stands between batch norms.
void expect_same_on_gpu(const Scene::Build& build, const std::string& name, std::int64_t in,
                        std::int64_t out) {
  const step::Placement gpu{Precision::fp32, &default_memory({DeviceKind::cuda, 0})};
  const Graph many = testing::random_graph(33333, 33333, 100000, 4, false);
  const Graph few = testing::random_graph(500, 500, 2000, 4, false);
  const auto with = Scene(gpu, many, in, out).run(build);
  EXPECT_GT(with.times(name), 0);
  EXPECT_EQ(Scene(gpu, few, in, out).run(build).times(name), 0);
  const auto without = Scene(gpu, many, in, out).run(build, {name});
  EXPECT_EQ(without.times(name), 0);
  expect_close(with, without, 1e-3);
}

TEST(PlacedRewrites, EndProductsOfManyRowsInReluOnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  expect_same_on_gpu(activated, "relu-in-linear", 16, 8);
}

TEST(PlacedRewrites, MakeGradientsOfBatchNormInProductsOnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  expect_same_on_gpu(normed, "norm-gradient-in-linear", 16, 12);
  expect_same_on_gpu(normed, "norm-gradient-in-linear", 75, 12);
}

TEST(PlacedRewrites, FindSumsForTheGradientOfBatchNormOnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  expect_same_on_gpu(normed, "norm-sums-in-linear", 16, 2);
}

/// Two products of a matrix of so many rows and columns.
std::int64_t chained(const step::Placement& placement, std::int64_t rows, std::int64_t cols) {
  step::Parameter weight("w", cols, cols, step::Initial::uniform(1));
  Program program;
  const Value x = program.input("x"), w = program.parameter(weight);
  program.info(x).shape = {rows, cols, Precision::fp32};
  const Value between = step::linear(program, x, w);
  program.info(between).shape = program.info(x).shape;
  const Value results[] = {step::linear(program, between, w)};
  const step::Context context;
  const std::string name = "small-ops-in-one-launch";
  for (const step::Fired& one :
       step::rewrite(program, {results, placement, context}, step::Side::before)) {
    if (one.name == name) return one.times;
  }
  return 0;
}

TEST(PlacedRewrites, RunSmallDenseOpsOfAGpuTogether) {
  // The rewrite asks for the device alone, which need not be there.
  struct OnGpu final : MemoryResource {
    void* allocate(std::size_t, Stream) override { return nullptr; }
    void deallocate(void*, std::size_t, Stream) noexcept override {}
    Device device() const noexcept override { return {DeviceKind::cuda, 0}; }
  } memory;
  const step::Placement cpu, gpu{Precision::fp32, &memory};
  EXPECT_EQ(chained(gpu, 300, 16), 1);
  EXPECT_EQ(chained(gpu, 32768, 1), 1);
  EXPECT_EQ(chained(gpu, 32769, 16), 0);
  EXPECT_EQ(chained(gpu, 300, 17), 0);
  EXPECT_EQ(chained(cpu, 300, 16), 0);
}

TEST(PlacedRewrites, RunSmallDenseOpsTogetherOnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const step::Placement gpu{Precision::fp32, &default_memory({DeviceKind::cuda, 0})};
  const Graph graph = testing::random_graph(500, 500, 2000, 4, false);
  const std::string name = "small-ops-in-one-launch";
  const auto with = Scene(gpu, graph, 12, 7, 16).run(normed);
  EXPECT_GT(with.times(name), 0);
  const auto without = Scene(gpu, graph, 12, 7, 16).run(normed, {name});
  EXPECT_EQ(without.times(name), 0);
  expect_close(with, without, 1e-4);
}

TEST(PlacedRewrites, FinishProductsOfSparseMatrices) {
  const step::Placement placement;
  const step::Context context;
  const auto fired = [&](const step::ActivationKind& kind) {
    step::Parameter weight("w", 4, 9, step::Initial::uniform(1));
    Program program;
    const Value x = program.sparse_input("x");
    const Value y =
        step::activate(program, step::linear(program, x, program.parameter(weight)), kind);
    const Value results[] = {y};
    return step::rewrite(program, {results, placement, context}, step::Side::before).size();
  };
  EXPECT_EQ(fired({ops::Activation::relu}), 1u);
  EXPECT_EQ(fired({ops::Activation::elu}), 0u);
}

}  // namespace
}  // namespace tessera
