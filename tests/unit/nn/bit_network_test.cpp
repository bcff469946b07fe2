// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/bit_network.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/training_data.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/ops/rounding.hpp"

/// Every step of a network against its formula in double precision, on the very codes that it read.
namespace tessera::nn {
namespace {

constexpr VertexId vertices = 150;
constexpr std::int64_t width = 12;

struct Case {
  ModelKind kind;
  std::int64_t hidden;
  bool batch_norm;
  double lowest;  ///< of the features; below 0 codes have a lower bound
};

/// A model of bits that has seen a graph.
struct Scene {
  Scene(const Case& wanted, std::vector<std::int64_t> bits) : features(vertices, width) {
    generate::BlockModel drawn;
    drawn.vertices = vertices;
    drawn.mean_degree = 7;
    drawn.seed = 4;
    graph = generate::build(drawn);
    const Random random(9);
    for (std::int64_t i = 0; i < features.size(); ++i) {
      features.data()[i] =
          static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)) + wanted.lowest);
    }
    const int first_bits = static_cast<int>(bits.front());
    Matrix<float> range(1, 2);
    ops::round_to_codes(features, first_bits, ops::RoundingRange::matrix, range, features);
    ModelConfig config = test::small_model(wanted.kind);
    config.layers = 3;
    config.hidden = wanted.hidden;
    config.batch_norm = wanted.batch_norm;
    config.bits = std::move(bits);
    Model model(config, width, 5, 2);
    Topology topology(graph);
    Tensor input;
    input.upload(features);
    Context context;
    context.graph = &topology;
    // Once in training, so that batch norm has seen something.
    context.training = true;
    model.forward(input, context);
    context.training = false;
    model.forward(input, context);
    steps = model.bit_steps();
    steps.set_feature_range(affine_of(range.span(), first_bits));
    const auto summing = std::find_if(steps.steps().begin(), steps.steps().end(),
                                      [](const BitStep& step) { return step.aggregates; });
    adjacency = bit_adjacency(summing->adjacency(graph));
  }

  BitVertices with(const quant::BitTensor& codes) const {
    const auto column = [](const std::vector<float>& numbers) {
      return numbers.empty() ? MatrixView<const float>()
                             : MatrixView<const float>(numbers.data(), vertices, 1);
    };
    BitVertices given;
    given.features = codes;
    given.row_scale = column(adjacency.row_scale);
    given.col_scale = column(adjacency.col_scale);
    given.row_weights = column(adjacency.row_weights);
    return given;
  }

  Matrix<float> features;
  Graph graph;
  BitSteps steps;
  BitAdjacency adjacency;
};

/// Codes as an epilogue makes them.
Matrix<std::uint16_t> codes_of(const Matrix<float>& values, const quant::Affine& affine) {
  Matrix<std::uint16_t> codes(values.rows(), values.cols());
  for (std::int64_t i = 0; i < values.rows(); ++i) {
    for (std::int64_t j = 0; j < values.cols(); ++j) {
      const std::size_t range = affine.range_of(i, j);
      const float code = std::rint((values(i, j) - affine.lower[range]) / affine.scale[range]);
      codes(i, j) =
          static_cast<std::uint16_t>(std::clamp(code, 0.0f, static_cast<float>(affine.max_code())));
    }
  }
  return codes;
}

struct Exact {
  double value = 0;
  double size = 0;  ///< sum of all terms' absolute values

  void add(double term) {
    value += term;
    size += std::abs(term);
  }
};

/// What a step makes of codes.
Exact exact(const Scene& scene, const BitStep& step, const Matrix<std::uint16_t>& codes, VertexId i,
            std::int64_t j) {
  Exact sum;
  const auto number = [&](VertexId row, std::int64_t col, double factor) {
    const std::size_t range = step.input.range_of(row, col);
    sum.add(factor * step.input.lower[range]);
    sum.add(factor * step.input.scale[range] * codes(row, col));
  };
  const auto of = [&](const std::vector<float>& numbers, std::int64_t at, double otherwise) {
    return numbers.empty() ? otherwise : static_cast<double>(numbers[static_cast<std::size_t>(at)]);
  };
  if (step.aggregates) {
    for (const VertexId source : scene.adjacency.pattern.neighbours(i)) {
      number(source, j, of(scene.adjacency.row_scale, i, 1));
    }
    if (step.own != 0) number(i, j, step.own);
  } else {
    for (std::int64_t k = 0; k < step.in; ++k) {
      number(i, k, step.weight_ranges.lower[static_cast<std::size_t>(j)]);
      number(i, k,
             static_cast<double>(step.weight_ranges.scale[static_cast<std::size_t>(j)]) *
                 step.weights.view().code(j, k));
    }
  }
  sum.add(of(step.bias, j, 0));
  const double norm = of(step.norm_scale, j, 1);
  sum.value = sum.value * norm + of(step.norm_shift, j, 0);
  sum.size = sum.size * std::abs(norm) + std::abs(of(step.norm_shift, j, 0));
  if (step.activation == ops::BitActivation::relu) sum.value = std::max(sum.value, 0.0);
  return sum;
}

void expect_steps(const Case& wanted, const std::vector<std::int64_t>& bits) {
  const Scene scene(wanted, bits);
  const auto& steps = scene.steps.steps();
  const BitStep& first = steps.front();
  Matrix<float> scaled(vertices, width);
  for (std::int64_t i = 0; i < vertices; ++i) {
    const bool scales = first.aggregates && !scene.adjacency.col_scale.empty();
    const float factor = scales ? scene.adjacency.col_scale[static_cast<std::size_t>(i)] : 1.0f;
    for (std::int64_t j = 0; j < width; ++j) scaled(i, j) = scene.features(i, j) * factor;
  }
  const quant::BitTensor features =
      quant::pack_rows(codes_of(scaled, first.input), first.input.bits);
  Matrix<std::uint16_t> codes = quant::unpack(features);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    SCOPED_TRACE("step " + std::to_string(s) + ", " + steps[s].layer);
    const BitStep* const next = s + 1 < steps.size() ? &steps[s + 1] : nullptr;
    // The last step of a chain has nothing behind it that its result is scaled for.
    BitNetwork network(scene.steps.first(static_cast<std::int64_t>(s) + 1),
                       scene.adjacency.pattern);
    Matrix<float> values(vertices, network.output_width());
    network.run(scene.with(features), values);
    for (VertexId i = 0; i < vertices; ++i) {
      for (std::int64_t j = 0; j < values.cols(); ++j) {
        const Exact right = exact(scene, steps[s], codes, i, j);
        ASSERT_NEAR(values(i, j), right.value, 2e-6 * right.size + 1e-30) << i << ' ' << j;
      }
    }
    if (next == nullptr) break;
    if (next->aggregates && !scene.adjacency.col_scale.empty()) {
      for (VertexId i = 0; i < vertices; ++i) {
        const float factor = scene.adjacency.col_scale[static_cast<std::size_t>(i)];
        for (std::int64_t j = 0; j < values.cols(); ++j) values(i, j) *= factor;
      }
    }
    codes = codes_of(values, next->input);
  }
}

class BitNetworkOf : public ::testing::TestWithParam<Case> {};

TEST_P(BitNetworkOf, ComputesEveryStepOfItsChain) {
  for (const std::int64_t bits : {16, 8, 4, 2, 1}) {
    SCOPED_TRACE(std::to_string(bits) + " bits");
    expect_steps(GetParam(), {bits});
  }
  expect_steps(GetParam(), {8, 3, 5});
}

INSTANTIATE_TEST_SUITE_P(Models, BitNetworkOf,
                         ::testing::Values(Case{ModelKind::gcn, 5, false, 0.0},
                                           Case{ModelKind::gcn, 20, true, -0.4},
                                           Case{ModelKind::gin, 5, true, -0.4},
                                           Case{ModelKind::gin, 20, false, 0.0}));

TEST(BitNetwork, SaysWhatItHoldsAndWhatItKeeps) {
  const Scene scene({ModelKind::gcn, 5, false, 0.0}, {4});
  BitNetwork network(scene.steps, scene.adjacency.pattern);
  EXPECT_EQ(network.output_width(), 5);
  EXPECT_GT(network.weight_bytes(), 0);
  const Scene wide({ModelKind::gcn, 5, false, 0.0}, {8});
  EXPECT_LT(network.activation_bytes(),
            BitNetwork(wide.steps, wide.adjacency.pattern).activation_bytes());
  // Codes of 16 bits take no more than the numbers, in layers that fill words: 32 columns.
  const Scene many({ModelKind::gcn, 32, false, 0.0}, {16});
  const BitNetwork full(many.steps, many.adjacency.pattern);
  EXPECT_LE(full.activation_bytes(), full.full_activation_bytes() * 33 / 32);
  EXPECT_EQ(network.explain().children.size(), 6u);
  testing::expect_error(ErrorCode::unsupported, {"not kept"}, [&] { network.last_input(); });
  testing::expect_error(ErrorCode::invalid_argument, {"no product"},
                        [&] { BitNetwork(BitSteps(), scene.adjacency.pattern); });
}

TEST(BitNetwork, CountsActivationsOfStepsThatRunTogether) {
  constexpr std::int64_t rows = 256;
  const Scene scene({ModelKind::gcn, 20, false, 0.0}, {8});
  const BitNetwork together(scene.steps, rows, 128);
  ASSERT_NE(together.explain().summary.find("bit_chain"), std::string::npos);
  BitNetworkOptions options;
  options.scales_features = true;
  const BitNetwork one_by_one(scene.steps, rows, 128, options);
  ASSERT_EQ(one_by_one.explain().summary.find("bit_chain"), std::string::npos);
  EXPECT_GT(together.activation_bytes(), 0);
  EXPECT_GT(together.full_activation_bytes(), 0);
  EXPECT_EQ(together.full_activation_bytes(), one_by_one.full_activation_bytes());
}

}  // namespace
}  // namespace tessera::nn
