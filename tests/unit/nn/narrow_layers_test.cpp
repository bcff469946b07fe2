// SPDX-License-Identifier: Apache-2.0
// Every layer in bf16, tf32 and, on a GPU, fp32 against the same layer in double, with the weights
// and inputs that the narrow one has.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/gradient_check.hpp"
#include "support/layer_zoo.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/nn/gcn.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/nn/sage.hpp"
#include "tessera/ops/dense_workspace.hpp"

#include "train/host.hpp"

namespace tessera {
namespace {

using test::double_placement;
using test::normal_tensor;
using test::weighted_graph;

constexpr std::int64_t in = 5;
constexpr VertexId vertices = 33;

/// One layer and what it is given.
struct Scene {
  Scene(const test::ZooEntry& entry, const step::Placement& placement, bool sparse)
      : Scene(entry.make(in, placement), weighted_graph(vertices, vertices, 5 * vertices, 1), in,
              placement) {
    if (sparse) input = step::Input(features);
  }
  Scene(std::unique_ptr<nn::Layer> given, const Graph& edges, std::int64_t width,
        const step::Placement& placement)
      : layer(std::move(given)),
        graph(edges, placement.place()),
        features(weighted_graph(vertices, in, 80, 4), placement.place()),
        x(placement),
        workspace(placement.place()) {
    context.graph = &graph;
    context.training = true;
    context.seed = 7;
    context.step = 3;
    context.workspace = &workspace;
    // Numbers that bf16 holds are the same in every scene.
    step::Tensor rounded(step::Placement{Precision::bf16});
    rounded.copy_from(normal_tensor(edges.num_cols(), width, 2));
    x.upload(train::to_host(rounded));
    input = step::Input(x);
    layer->reset_parameters(5);
  }

  /// All that a pass gives: the output, the gradient of the input, those of parameters.
  std::vector<std::pair<std::string, Matrix<float>>> pass() {
    const step::Tensor& output = layer->forward(input, context);
    std::vector<std::pair<std::string, Matrix<float>>> results;
    results.emplace_back("output", train::to_host(output));
    step::Tensor gradient(output.placement());
    step::Tensor rounded(step::Placement{Precision::bf16});
    rounded.copy_from(normal_tensor(output.rows(), output.cols(), 99));
    gradient.upload(train::to_host(rounded));
    const step::Tensor* const of_input = layer->backward(gradient, context);
    if (of_input != nullptr) results.emplace_back("input", train::to_host(*of_input));
    for (const auto& [path, parameter] : layer->parameters()) {
      if (parameter->trainable) results.emplace_back(path, train::to_host(parameter->gradient));
    }
    return results;
  }

  std::unique_ptr<nn::Layer> layer;
  step::Topology graph, features;
  step::Tensor x;
  ops::DenseWorkspace workspace;
  step::Context context;
  step::Input input;
};

double length(const Matrix<float>& matrix) {
  double sum = 0;
  for (const float value : matrix.span()) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

double distance(const Matrix<float>& a, const Matrix<float>& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    sum += std::pow(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i]), 2);
  }
  return std::sqrt(sum);
}

/// Two scenes of the same layer, the second in double with the parameters of the first.
void expect_same_passes(Scene& narrow, Scene& wide, double tolerance) {
  const auto from = narrow.layer->parameters();
  const auto to = wide.layer->parameters();
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i].parameter->value.upload(train::to_host(from[i].parameter->used()));
  }
  const auto got = narrow.pass();
  const auto expected = wide.pass();
  ASSERT_EQ(got.size(), expected.size());
  // A bias before a batch norm has no gradient but rounding: small beside the others.
  double largest = 0;
  for (const auto& [name, matrix] : expected) largest = std::max(largest, length(matrix));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double size = std::max(length(expected[i].second), 0.1 * largest);
    EXPECT_LE(distance(got[i].second, expected[i].second), tolerance * size) << got[i].first;
  }
}

class NarrowLayersOnDevice : public ::testing::TestWithParam<std::pair<DeviceKind, Precision>> {
 protected:
  void SetUp() override {
    if (GetParam().first == DeviceKind::cuda && num_gpus() == 0) {
      GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
    }
  }
  static step::Placement placement() {
    step::Placement placement;
    placement.memory = &default_memory({GetParam().first, 0});
    placement.precision = GetParam().second;
    return placement;
  }
  /// A few roundings one after the other: of 8 bits, of 11, or of 24 where the CPU computes. ReLU
  /// has another derivative where rounding moved a number across 0: in GIN, a few of a thousand.
  static double tolerance(const std::string& name) {
    const double at_zero = name.starts_with("gin") ? 4 : 1;
    if (GetParam().second == Precision::bf16) return at_zero * 0x1p-5;
    if (GetParam().second == Precision::fp32) return 1e-4;
    return GetParam().first == DeviceKind::cpu ? 1e-5 : at_zero * 0x1p-8;
  }
};

TEST_P(NarrowLayersOnDevice, agree_with_double_precision) {
  for (const bool sparse : {false, true}) {
    for (const auto& entry : test::layer_zoo()) {
      SCOPED_TRACE(entry.name + (sparse ? ", sparse" : ", dense"));
      Scene narrow(entry, placement(), sparse);
      if (sparse && !narrow.layer->accepts_sparse()) continue;
      Scene wide(entry, double_placement(), sparse);
      expect_same_passes(narrow, wide, tolerance(entry.name));
    }
  }
}

TEST_P(NarrowLayersOnDevice, learn_in_fp32_and_read_a_rounded_copy) {
  for (const auto& entry : test::layer_zoo()) {
    SCOPED_TRACE(entry.name);
    auto layer = entry.make(in, placement());
    layer->reset_parameters(5);
    for (const auto& [path, parameter] : layer->parameters()) {
      EXPECT_EQ(storage_of(parameter->value.precision()), ElementType::fp32) << path;
      parameter->value.fill(1.0 / 3);
    }
    layer->round_parameters();
    for (const auto& [path, parameter] : layer->parameters()) {
      const bool is_rounded = parameter->used().precision() == Precision::bf16;
      const float third = 1.0f / 3;
      const Matrix<float> used = train::to_host(parameter->used());
      for (const float value : used.span()) {
        ASSERT_EQ(value, is_rounded ? static_cast<float>(Bfloat16(third)) : third) << path;
      }
    }
  }
}

/// On a GPU, rows of these widths are filled up to whole vectors and go through products with that.
TEST_P(NarrowLayersOnDevice, of_odd_widths_agree_with_double_precision) {
  const Graph graph = generate::build(
      generate::BlockModel{.vertices = 14000, .communities = 60, .mean_degree = 20, .seed = 11});
  const step::Placement here = placement();
  for (const auto& widths : {std::pair<std::int64_t, std::int64_t>{45, 41}, {22, 70}}) {
    const std::int64_t width = widths.first, out = widths.second;
    SCOPED_TRACE(std::to_string(width) + " to " + std::to_string(out));
    const auto gcn = [&](const step::Placement& placement) {
      return std::make_unique<nn::Gcn>(nn::GcnOptions{.in = width, .out = out}, placement);
    };
    Scene narrow(gcn(here), graph, width, here);
    Scene wide(gcn(double_placement()), graph, width, double_placement());
    expect_same_passes(narrow, wide, tolerance("gcn"));
    const auto sage = [&](const step::Placement& placement) {
      return std::make_unique<nn::Sage>(nn::SageOptions{.in = width, .out = out}, placement);
    };
    Scene narrow_mean(sage(here), graph, width, here);
    Scene wide_mean(sage(double_placement()), graph, width, double_placement());
    expect_same_passes(narrow_mean, wide_mean, tolerance("sage"));
  }
}

/// Where vertices have many neighbours, 16-bit features are scaled before the graph sums them.
TEST_P(NarrowLayersOnDevice, scales_of_dense_graphs_are_multiplied_before_rounding) {
  const Graph graph = generate::build(
      generate::BlockModel{.vertices = 2000, .communities = 20, .mean_degree = 60, .seed = 11});
  const step::Placement here = placement();
  for (const bool loops : {true, false}) {
    for (const std::int64_t out : {41, 64}) {
      SCOPED_TRACE(std::to_string(out) + (loops ? ", with loops" : ", without loops"));
      const auto gcn = [&](const step::Placement& placement) {
        nn::GcnOptions options{.in = 100, .out = out};
        options.add_self_loops = loops;
        options.output.dropout = 0.25;
        return std::make_unique<nn::Gcn>(options, placement);
      };
      Scene narrow(gcn(here), graph, 100, here);
      Scene wide(gcn(double_placement()), graph, 100, double_placement());
      expect_same_passes(narrow, wide, tolerance("gcn"));
      const bool scaled = here.precision == Precision::bf16;
      bool summed = false, differentiated = false;
      for (const auto& request : narrow.graph.requests().spmm) {
        summed = summed || request.derivation == step::gcn_rows ||
                 request.derivation == step::gcn_rows_without_loops;
        differentiated = differentiated || request.derivation == step::gcn_columns ||
                         request.derivation == step::gcn_columns_without_loops;
      }
      EXPECT_EQ(summed, scaled);
      EXPECT_EQ(differentiated, scaled);
    }
  }
}

/// All that a pass of a model gives where `copies` of a graph are one, with the same features.
std::vector<std::pair<std::string, Matrix<float>>> pass_of_copies(
    nn::ModelKind kind, int copies, const step::Placement& placement) {
  constexpr VertexId of_copy = 17000;
  constexpr std::int64_t features = 24, classes = 3;
  std::vector<VertexId> sources, targets;
  const Random random(3);
  for (VertexId copy = 0; copy < copies; ++copy) {
    for (VertexId i = 0; i < 3 * of_copy; ++i) {
      const auto below = [&](int which) {
        const auto element = static_cast<std::uint64_t>(2 * i + which);
        return static_cast<VertexId>(random.below(element, of_copy)) + copy * of_copy;
      };
      sources.push_back(below(0));
      targets.push_back(below(1));
    }
  }
  const VertexId all = copies * of_copy;
  step::Topology graph(from_coo(all, all, targets, sources, {}, {.duplicates = Duplicates::first}),
                       placement.place());
  nn::ModelConfig config;
  config.kind = kind;
  config.hidden = 16;
  config.layers = 2;
  config.batch_norm = kind == nn::ModelKind::gin;
  config.dropout = 0;
  nn::Model model(config, features, classes, 5, placement);
  const auto copied = [&](std::int64_t cols, std::uint64_t seed) {
    step::Tensor rounded(step::Placement{Precision::bf16});
    rounded.copy_from(normal_tensor(of_copy, cols, seed));
    const Matrix<float> once = train::to_host(rounded);
    Matrix<float> values(all, cols);
    for (std::int64_t i = 0; i < values.size(); ++i)
      values.data()[i] = once.data()[i % once.size()];
    step::Tensor tensor(placement);
    tensor.upload(values);
    return tensor;
  };
  const step::Tensor x = copied(features, 2);
  step::Tensor gradient = copied(classes, 99);
  const ops::DenseWorkspace workspace(placement.place());
  step::Context context;
  context.graph = &graph;
  context.training = true;
  context.workspace = &workspace;
  std::vector<std::pair<std::string, Matrix<float>>> results;
  results.emplace_back("output", train::to_host(model.forward(x, context)));
  model.backward(gradient, context);
  for (const auto& [path, parameter] : model.parameters()) {
    if (parameter->trainable) results.emplace_back(path, train::to_host(parameter->gradient));
  }
  for (const auto& [path, tensor] : model.state()) {
    if (path.find("running_mean") != std::string::npos) {
      results.emplace_back(path, train::to_host(*tensor));
    }
  }
  return results;
}

/// From 32769 rows on, dense layers do the work of the batch norms around them, and gradients of
/// few classes are multiplied where they are read. Copies have the same means and variances, and
/// gradients that add up.
TEST_P(NarrowLayersOnDevice, models_are_the_same_for_copies_of_a_graph) {
  for (const nn::ModelKind kind : {nn::ModelKind::gin, nn::ModelKind::gcn}) {
    SCOPED_TRACE(to_string(kind));
    const auto once = pass_of_copies(kind, 1, placement());
    const auto twice = pass_of_copies(kind, 2, placement());
    ASSERT_EQ(once.size(), twice.size());
    double largest = 0;
    for (const auto& [name, matrix] : once) {
      if (name != "output") largest = std::max(largest, length(matrix));
    }
    for (std::size_t i = 0; i < once.size(); ++i) {
      const auto& [name, matrix] = once[i];
      const bool is_gradient = name != "output" && name.find("running") == std::string::npos;
      Matrix<float> expected(twice[i].second.rows(), twice[i].second.cols());
      for (std::int64_t j = 0; j < expected.size(); ++j) {
        expected.data()[j] = matrix.data()[j % matrix.size()] * (is_gradient ? 2.0f : 1.0f);
      }
      const double size = std::max(length(expected), is_gradient ? 0.1 * largest : 0.0);
      EXPECT_LE(distance(twice[i].second, expected), tolerance("gin") * size) << name;
    }
  }
}

std::string case_name(const ::testing::TestParamInfo<std::pair<DeviceKind, Precision>>& info) {
  return std::string(info.param.first == DeviceKind::cpu ? "cpu_" : "cuda_") +
         to_string(info.param.second);
}

INSTANTIATE_TEST_SUITE_P(Precisions, NarrowLayersOnDevice,
                         ::testing::Values(std::pair{DeviceKind::cpu, Precision::bf16},
                                           std::pair{DeviceKind::cpu, Precision::tf32},
                                           std::pair{DeviceKind::cuda, Precision::bf16},
                                           std::pair{DeviceKind::cuda, Precision::fp32},
                                           std::pair{DeviceKind::cuda, Precision::tf32}),
                         case_name);

TEST(NarrowLayers, few_bits_need_fp32) {
  nn::ModelConfig config;
  config.bits = {8};
  testing::expect_error(ErrorCode::unsupported, {"8 bits", "bf16", "fp32"}, [&] {
    const nn::Model model(config, 4, 2, 0, step::Placement{Precision::bf16});
  });
}

}  // namespace
}  // namespace tessera
