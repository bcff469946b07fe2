// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/aggregate_update/reference.hpp"
#include "support/comparisons.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/error_measure.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/aggregate_update.hpp"

/// Sums with the dense layer after them: operands, and runs against the reference.
namespace tessera::ops {

using test::DeviceMatrix;
using test::normal_matrix;
using test::to_double;
using View = MatrixView<const double>;

inline AggregateUpdateOptions widths(std::int64_t in, std::int64_t out) {
  AggregateUpdateOptions options;
  options.in = in;
  options.out = out;
  return options;
}

/// What layers ask for: plain, as GIN, as GraphSAGE, and all at once.
inline std::vector<AggregateUpdateOptions> all_forms(const Graph& graph, std::int64_t in,
                                                     std::int64_t out) {
  std::vector<AggregateUpdateOptions> forms = {widths(in, out)};
  const bool square = graph.num_rows() == graph.num_cols();
  AggregateUpdateOptions gin = widths(in, out);
  gin.self = gin.self_scale = square;
  gin.bias = true;
  gin.keep_aggregated = true;
  gin.activation = Activation::relu;
  forms.push_back(gin);
  AggregateUpdateOptions sage = widths(in, out);
  sage.reduction = Reduction::mean;
  sage.root = square;
  sage.bias = true;
  sage.activation = Activation::elu;
  sage.dropout = 0.4;
  forms.push_back(sage);
  AggregateUpdateOptions all = sage;
  all.self = square;
  all.keep_aggregated = true;
  all.activation = Activation::leaky_relu;
  forms.push_back(all);
  return forms;
}

inline Matrix<double> absolute(const Matrix<double>& matrix) {
  Matrix<double> result(matrix.rows(), matrix.cols());
  for (std::int64_t i = 0; i < matrix.size(); ++i) result.data()[i] = std::abs(matrix.data()[i]);
  return result;
}

inline SharedArray<float> absolute(const SharedArray<float>& values) {
  std::vector<float> result(values.begin(), values.end());
  for (float& value : result) value = std::abs(value);
  return SharedArray<float>(std::move(result));
}

/// Numbers of one case, drawn and rounded to T, and the same in double.
template <class T>
struct UpdateCase {
  UpdateCase(const Graph& of, const AggregateUpdateOptions& how)
      : graph(of),
        options(how),
        x(normal_matrix<T>(of.num_cols(), how.in, 1)),
        weight(normal_matrix<T>(how.out, how.in, 2)),
        root(normal_matrix<T>(how.out, how.in, 3)),
        bias(normal_matrix<T>(1, how.out, 4)),
        scale(normal_matrix<T>(1, 1, 5)),
        grad_y(normal_matrix<T>(of.num_rows(), how.out, 6)) {}

  /// The numbers, or their sizes.
  struct InDouble {
    Matrix<double> x, weight, root, bias;
    double scale;
    reference::AggregateUpdateNumbers numbers(const AggregateUpdateOptions& options) const {
      return {x.view(),
              weight.view(),
              root.view(),
              options.bias ? bias.view() : View{},
              options.self_scale ? scale : 0,
              Random(11, 3, 5)};
    }
  };
  InDouble exact() const {
    return {to_double(x), to_double(weight), to_double(root), to_double(bias),
            static_cast<double>(scale(0, 0))};
  }
  InDouble sizes() const {
    const InDouble of = exact();
    return {absolute(of.x), absolute(of.weight), absolute(of.root), absolute(of.bias),
            std::abs(of.scale)};
  }

  /// The graph of the sizes.
  Graph positive() const {
    return graph.with_values(absolute(graph.values()))
        .with_scales(absolute(graph.row_scale()), absolute(graph.col_scale()));
  }

  Graph graph;
  AggregateUpdateOptions options;
  Matrix<T> x, weight, root, bias, scale, grad_y;
};

template <class T>
testing::Tolerance tolerance_for(const AggregateUpdateOptions& options) {
  testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
  if (std::is_same_v<T, float>) tolerance.of_magnitude = options.strict ? 3e-6 : 1.2e-5;
  // Sums and products that are stored in between are rounded there.
  if (sizeof(T) == 2) tolerance.of_magnitude = 3 * tolerance.of_result;
  return tolerance;
}

template <class T>
void check_forward(const AggregateUpdatePlan& plan, UpdateCase<T>& c, std::int64_t margin) {
  const AggregateUpdateOptions& options = plan.options();
  const Device device = options.device;
  DeviceMatrix<T> x(c.x, device, margin), weight(c.weight, device, margin);
  DeviceMatrix<T> root(c.root, device, margin), bias(c.bias, device, 0), scale(c.scale, device, 0);
  DeviceMatrix<T> y(c.graph.num_rows(), options.out, device, margin);
  DeviceMatrix<T> kept(c.graph.num_rows(), options.in, device, margin);
  AggregateUpdateInputs inputs{x, weight};
  if (options.root) inputs.root_weight = root;
  if (options.self_scale) inputs.self_scale = scale;
  if (options.bias) inputs.bias = bias;
  inputs.random = Random(11, 3, 5);
  AggregateUpdateOutputs outputs{y};
  if (options.keep_aggregated) outputs.aggregated = kept;
  const auto once = [&] { run(plan, inputs, outputs, {}, {}, test::workspace_on(device)); };
  once();
  Matrix<double> expected(c.graph.num_rows(), options.out);
  Matrix<double> magnitude(expected.rows(), expected.cols());
  Matrix<double> sums(c.graph.num_rows(), options.in);
  const auto exact = c.exact();
  reference::aggregate_update(c.graph, options, exact.numbers(options), expected, sums);
  // Errors are measured by the absolute products behind what is activated.
  AggregateUpdateOptions plain = options;
  plain.activation = Activation::none;
  plain.dropout = 0;
  Matrix<double> sum_sizes(sums.rows(), sums.cols());
  const auto sizes = c.sizes();
  reference::aggregate_update(c.positive(), plain, sizes.numbers(options), magnitude, sum_sizes);
  const double factor = options.dropout > 0 ? 1 / (1 - options.dropout) : 1;
  for (double& size : magnitude.span()) size *= factor;
  const Matrix<T> first = y.values();
  EXPECT_EQ(testing::first_mismatch(first.view(), expected, magnitude, tolerance_for<T>(options)),
            "");
  once();
  EXPECT_TRUE(test::same_bits(first, y.values())) << "twice";
  if (!options.keep_aggregated) return;
  EXPECT_EQ(
      testing::first_mismatch(kept.values().view(), sums, sum_sizes, tolerance_for<T>(options)),
      "");
}

template <class T>
void check_backward(const AggregateUpdatePlan& plan, UpdateCase<T>& c, std::int64_t margin) {
  const AggregateUpdateOptions& options = plan.options();
  const Device device = options.device;
  const auto exact = c.exact(), sizes = c.sizes();
  Matrix<double> sums(c.graph.num_rows(), options.in), unused(c.graph.num_rows(), options.out);
  reference::aggregate_update(c.graph, options, exact.numbers(options), unused, sums);
  Matrix<T> stored(sums.rows(), sums.cols());
  for (std::int64_t i = 0; i < sums.size(); ++i) {
    if constexpr (std::is_same_v<T, double>) {
      stored.data()[i] = sums.data()[i];
    } else {
      stored.data()[i] = static_cast<T>(static_cast<float>(sums.data()[i]));
    }
  }
  DeviceMatrix<T> x(c.x, device, margin), weight(c.weight, device, margin);
  DeviceMatrix<T> root(c.root, device, margin), scale(c.scale, device, 0);
  DeviceMatrix<T> grad_y(c.grad_y, device, margin), kept(stored, device, margin);
  DeviceMatrix<T> grad_x(c.graph.num_cols(), options.in, device, margin);
  DeviceMatrix<T> grad_weight(options.out, options.in, device, margin);
  DeviceMatrix<T> grad_root(options.out, options.in, device, margin);
  DeviceMatrix<T> grad_bias(1, options.out, device, 0);
  AggregateUpdateGradInputs inputs{grad_y, weight};
  inputs.aggregated = kept;
  inputs.x = x;
  if (options.root) inputs.root_weight = root;
  if (options.self_scale) inputs.self_scale = scale;
  AggregateUpdateGradOutputs outputs{grad_x, grad_weight, {}, grad_bias};
  if (options.root) outputs.grad_root_weight = grad_root;
  run_backward(plan, inputs, outputs, {}, {}, test::workspace_on(device));

  struct Gradients {
    Matrix<double> x, weight, root, bias;
    Gradients(const Graph& graph, const AggregateUpdateOptions& how)
        : x(graph.num_cols(), how.in),
          weight(how.out, how.in),
          root(how.out, how.in),
          bias(1, how.out) {}
    reference::AggregateUpdateGradients views() {
      return {x.view(), weight.view(), root.view(), bias.view()};
    }
  };
  Gradients expected(c.graph, options), magnitude(c.graph, options);
  const Matrix<double> slopes = to_double(c.grad_y);
  reference::aggregate_update_backward(c.graph, options, exact.numbers(options), slopes,
                                       expected.views());
  reference::aggregate_update_backward(c.positive(), options, sizes.numbers(options),
                                       absolute(slopes), magnitude.views());
  const testing::Tolerance tolerance = tolerance_for<T>(options);
  const auto compare = [&](const char* what, DeviceMatrix<T>& got, const Matrix<double>& values,
                           const Matrix<double>& size) {
    EXPECT_EQ(testing::first_mismatch(got.values().view(), values, size, tolerance), "") << what;
  };
  compare("grad_x", grad_x, expected.x, magnitude.x);
  compare("grad_weight", grad_weight, expected.weight, magnitude.weight);
  compare("grad_bias", grad_bias, expected.bias, magnitude.bias);
  if (options.root) compare("grad_root", grad_root, expected.root, magnitude.root);
}

}  // namespace tessera::ops
