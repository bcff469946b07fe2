// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/error_measure.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/random_matrix.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/ops/spmm.hpp"

/// Plans on edges in no order, in both forms, against what the edges mean: in double, term by term.
namespace tessera::ops {
namespace {

using test::Padded;
using test::Placed;

/// Edges as a test gives them, and what is to be made of them.
struct Given {
  std::string name;
  testing::Coo edges;
  bool valued = false;
  EdgeRule rule = EdgeRule::plain;
  float loop_weight = 1;
  WeightFunction function = WeightFunction::product;
  std::vector<float> row_numbers = {};
  std::vector<float> col_numbers = {};
};

/// One term of the matrix: `edge` is -1 for a loop that a rule adds.
struct Term {
  VertexId row;
  VertexId col;
  double value;
  EdgeOffset edge;
};

/// The matrix by its definition.
struct Meaning {
  std::vector<Term> terms;
  std::vector<double> row_numbers, col_numbers;
  std::vector<double> degrees;
  WeightFunction function;

  Meaning(const Given& given, const std::vector<double>& run_values) : function(given.function) {
    const testing::Coo& edges = given.edges;
    const auto rows = static_cast<std::size_t>(edges.num_rows);
    const auto cols = static_cast<std::size_t>(edges.num_cols);
    std::vector<double> sums(rows, 0);
    std::vector<bool> looped(rows, false);
    for (std::size_t k = 0; k < edges.rows.size(); ++k) {
      const bool has_value = given.valued && given.rule != EdgeRule::looped;
      const double own = has_value ? edges.values[k] : 1;
      terms.push_back({edges.rows[k], edges.cols[k], run_values.empty() ? own : run_values[k],
                       static_cast<EdgeOffset>(k)});
      sums[static_cast<std::size_t>(edges.rows[k])] += own;
      if (edges.rows[k] == edges.cols[k]) looped[static_cast<std::size_t>(edges.rows[k])] = true;
    }
    const bool adds = given.rule != EdgeRule::plain && given.loop_weight != 0;
    for (std::size_t v = 0; adds && v < rows; ++v) {
      if (looped[v]) continue;
      const auto vertex = static_cast<VertexId>(v);
      terms.push_back({vertex, vertex, given.loop_weight, -1});
      sums[v] += given.loop_weight;
    }
    row_numbers.assign(rows, 1);
    col_numbers.assign(cols, 1);
    if (!given.row_numbers.empty()) {
      row_numbers.assign(given.row_numbers.begin(), given.row_numbers.end());
    }
    if (!given.col_numbers.empty()) {
      col_numbers.assign(given.col_numbers.begin(), given.col_numbers.end());
    }
    if (given.rule == EdgeRule::gcn) {
      for (std::size_t v = 0; v < rows; ++v) {
        row_numbers[v] = col_numbers[v] = sums[v] <= 0 ? 0 : 1 / std::sqrt(sums[v]);
      }
    }
    degrees.assign(rows, 0);
    for (const Term& term : terms) degrees[static_cast<std::size_t>(term.row)] += 1;
  }

  /// What the value of a term is multiplied with.
  double factor(const Term& term) const {
    const double a = row_numbers[static_cast<std::size_t>(term.row)];
    const double b = col_numbers[static_cast<std::size_t>(term.col)];
    return function == WeightFunction::product ? a * b : std::exp(-(a - b) * (a - b));
  }
  double share(const Term& term, Reduction reduction) const {
    return reduction == Reduction::mean ? 1 / degrees[static_cast<std::size_t>(term.row)] : 1;
  }
};

struct Expected {
  Matrix<double> values;
  Matrix<double> magnitude;
};

/// A X, or A^T X.
Expected product(const Meaning& meaning, Reduction reduction, const Matrix<double>& x,
                 std::int64_t rows, bool transposed) {
  Expected expected{Matrix<double>(rows, x.cols(), 0.0), Matrix<double>(rows, x.cols(), 0.0)};
  for (const Term& term : meaning.terms) {
    const double weight = term.value * meaning.factor(term) * meaning.share(term, reduction);
    const VertexId to = transposed ? term.col : term.row;
    const VertexId from = transposed ? term.row : term.col;
    for (std::int64_t j = 0; j < x.cols(); ++j) {
      expected.values(to, j) += weight * x(from, j);
      expected.magnitude(to, j) += std::abs(weight * x(from, j));
    }
  }
  return expected;
}

/// dY[row] . X[col] of every edge.
Expected edge_gradients(const Meaning& meaning, Reduction reduction, const Matrix<double>& grad_y,
                        const Matrix<double>& x, std::int64_t num_edges) {
  Expected expected{Matrix<double>(num_edges, 1, 0.0), Matrix<double>(num_edges, 1, 0.0)};
  for (const Term& term : meaning.terms) {
    if (term.edge < 0) continue;
    const double factor = meaning.factor(term) * meaning.share(term, reduction);
    for (std::int64_t j = 0; j < x.cols(); ++j) {
      const double product = factor * grad_y(term.row, j) * x(term.col, j);
      expected.values(term.edge, 0) += product;
      expected.magnitude(term.edge, 0) += std::abs(product);
    }
  }
  return expected;
}

std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  const SharedArray<float> values =
      testing::random_values(count, testing::NumberKind::normal, seed);
  return {values.begin(), values.end()};
}

/// Edges in no order, repeated here and there, under every rule that fits.
std::vector<Given> all_given() {
  std::vector<std::pair<std::string, testing::Coo>> patterns;
  for (const VertexId n : {0, 1, 15, 17, 33}) {
    patterns.emplace_back("square " + std::to_string(n), testing::random_coo(n, n, 5 * n, 11));
  }
  patterns.emplace_back("no edges", testing::Coo{7, 7, {}, {}, {}});
  patterns.emplace_back("mostly empty rows", testing::random_coo(90, 90, 40, 13));
  patterns.emplace_back("wide", testing::random_coo(17, 61, 200, 14));
  patterns.emplace_back("tall", testing::random_coo(61, 17, 200, 15));
  testing::Coo hub = testing::random_coo(600, 600, 700, 16);
  for (VertexId v = 0; v < 600; ++v) {
    hub.rows.insert(hub.rows.end(), {3, v});
    hub.cols.insert(hub.cols.end(), {v, 4});
    hub.values.insert(hub.values.end(), {0.5f, static_cast<float>(v % 5) - 2});
  }
  patterns.emplace_back("hubs", hub);
  std::vector<Given> all;
  for (const auto& [name, edges] : patterns) {
    for (const bool valued : {false, true}) {
      const auto add = [&](const std::string& what, Given given) {
        given.name = name + ", " + what + (valued ? ", values" : "");
        given.edges = edges;
        given.valued = valued;
        all.push_back(std::move(given));
      };
      add("plain", {});
      Given scaled;
      scaled.row_numbers = numbers(edges.num_rows, 21);
      scaled.col_numbers = numbers(edges.num_cols, 22);
      add("scales", scaled);
      scaled.function = WeightFunction::gaussian;
      add("gaussian", scaled);
      if (edges.num_rows != edges.num_cols) continue;
      for (const float weight : {1.0f, 2.5f, 0.0f}) {
        Given looped;
        looped.loop_weight = weight;
        looped.rule = EdgeRule::looped;
        add("looped " + std::to_string(weight), looped);
        looped.rule = EdgeRule::gcn;
        add("gcn " + std::to_string(weight), looped);
      }
    }
  }
  return all;
}

/// Edges where a plan finds them.
class PlacedEdges {
 public:
  PlacedEdges(const Given& given, Device device) {
    BorrowedCoo borrowed;
    const std::span<const float> values =
        given.valued ? std::span<const float>(given.edges.values) : std::span<const float>{};
    rows_ = sent<VertexId>(given.edges.rows, device);
    cols_ = sent<VertexId>(given.edges.cols, device);
    values_ = sent<float>(values, device);
    borrowed.rows = rows_.span();
    borrowed.cols = cols_.span();
    borrowed.values = values_.span();
    BorrowOptions options;
    options.device = device;
    const Coo plain = borrow_coo(given.edges.num_rows, given.edges.num_cols, borrowed, options);
    coo_ = given.rule != EdgeRule::plain
               ? plain.with_rule(given.rule, given.loop_weight)
               : plain.with_numbers(given.row_numbers, given.col_numbers, given.function);
  }
  const Coo& coo() const { return coo_; }

 private:
  template <class T>
  static Buffer<T> sent(std::span<const T> values, Device device) {
    Buffer<T> there(std::ssize(values), default_memory(device));
    copy_bytes(there.data(), values.data(), values.size_bytes(), device);
    synchronise(device);
    return there;
  }

  Buffer<VertexId> rows_, cols_;
  Buffer<float> values_;
  Coo coo_;
};

/// A device and the form of its plans: "cpu/scatter", "cuda/reduce" …
class SpmmEdgesTest : public ::testing::TestWithParam<std::string> {
 protected:
  bool scatters() const { return GetParam().ends_with("scatter"); }
  Device device() const {
    return {GetParam().starts_with("cuda") ? DeviceKind::cuda : DeviceKind::cpu, 0};
  }

  SpmmOptions options(Reduction reduction, Precision precision, std::int64_t features) const {
    SpmmOptions options;
    options.device = device();
    options.reduction = reduction;
    options.precision = precision;
    options.features = features;
    options.backward = true;
    if (scatters()) options.kernel = "spmm/" + GetParam();
    return options;
  }

  /// Both passes and both gradients, with the edges' own values or a run's.
  template <class T>
  void compare(const Given& given, Reduction reduction, std::int64_t features, bool override_values,
               std::int64_t margin) {
    SCOPED_TRACE(given.name + ", " + to_string(reduction) + ", " + std::to_string(features) +
                 " features, " + to_string(PrecisionOf<T>::value) +
                 (override_values ? ", values of the run" : ""));
    const PlacedEdges edges(given, device());
    const SpmmPlan plan =
        plan_spmm(edges.coo(), options(reduction, PrecisionOf<T>::value, features));
    EXPECT_EQ(plan.kernel().name.ends_with("/scatter"), scatters());
    const auto num_edges = static_cast<std::int64_t>(given.edges.rows.size());
    const auto values = testing::random_matrix<T>(override_values ? num_edges : 0, 1,
                                                  testing::NumberKind::normal, 31);
    const auto x =
        testing::random_matrix<T>(given.edges.num_cols, features, testing::NumberKind::normal, 32);
    const auto grad_y =
        testing::random_matrix<T>(given.edges.num_rows, features, testing::NumberKind::normal, 33);
    std::vector<double> run_values;
    for (const T& value : values.span()) run_values.push_back(static_cast<double>(value));
    const Meaning meaning(given, run_values);

    Padded<T> padded_x(x, margin), padded_grad_y(grad_y, margin), padded_values(values);
    Padded<T> y(given.edges.num_rows, features, margin),
        grad_x(given.edges.num_cols, features, margin);
    Padded<T> grad_values(num_edges, 1);
    Placed<T> at_x(padded_x, device()), at_grad_y(padded_grad_y, device());
    Placed<T> at_values(padded_values, device()), at_y(y, device()), at_grad_x(grad_x, device());
    Placed<T> at_grad_values(grad_values, device());
    SpmmInputs inputs{at_x.view()};
    SpmmGradInputs grad_inputs{at_grad_y.view(), at_x.view()};
    if (override_values) inputs.edge_values = grad_inputs.edge_values = at_values.view();
    run(plan, inputs, {at_y.view()});
    run_backward(plan, grad_inputs, {at_grad_x.view(), at_grad_values.view()});
    at_y.fetch();
    at_grad_x.fetch();
    at_grad_values.fetch();
    EXPECT_TRUE(y.margins_intact() && grad_x.margins_intact() && grad_values.margins_intact());

    testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
    // Long chains of sums in one precision; scales and functions that are rounded to fp32.
    const bool exact = std::is_same_v<T, double> && given.function == WeightFunction::product;
    tolerance.of_magnitude = exact ? 3e-7 : 1e-5;
    // Rows that run by rows have values of weighed edges in the precision of the features.
    const bool rounds = sizeof(T) == 2 && override_values &&
                        given.function != WeightFunction::product && !scatters();
    if (rounds) tolerance.of_magnitude += 0x1p-8;
    const auto expect = [&](const char* what, MatrixView<T> found, const Expected& expected) {
      EXPECT_EQ(testing::first_mismatch(found, expected.values, expected.magnitude, tolerance), "")
          << what;
    };
    const Matrix<double> wide_x = test::to_double(x), wide_grad_y = test::to_double(grad_y);
    expect("y", y.view(), product(meaning, reduction, wide_x, given.edges.num_rows, false));
    expect("grad_x", grad_x.view(),
           product(meaning, reduction, wide_grad_y, given.edges.num_cols, true));
    expect("grad_edge_values", grad_values.view(),
           edge_gradients(meaning, reduction, wide_grad_y, wide_x, num_edges));
  }

  template <class Body>
  void for_precisions(Body&& body) {
    body(float{});
    body(Bfloat16{});
    if (device().kind == DeviceKind::cpu) {
      body(double{});
    } else {
      body(Float16{});
    }
  }
};

TEST_P(SpmmEdgesTest, MatchesTheDefinition) {
  for (const Given& given : all_given()) {
    for (const Reduction reduction : {Reduction::sum, Reduction::mean}) {
      for (const bool override_values : {false, true}) {
        compare<float>(given, reduction, 16, override_values, 4);
      }
    }
  }
}

TEST_P(SpmmEdgesTest, MatchesTheDefinitionInEveryPrecisionAndWidth) {
  for (const Given& given : all_given()) {
    const bool some = given.name.starts_with("square 33") || given.name.starts_with("wide") ||
                      given.name.starts_with("hubs, gcn 2.5");
    if (!some) continue;
    for_precisions([&]<class T>(T) {
      for (const std::int64_t features : {0, 1, 3, 8, 33, 64, 130, 300}) {
        for (const std::int64_t margin : {8, 3}) {
          compare<T>(given, Reduction::sum, features, features % 2 == 0, margin);
          compare<T>(given, Reduction::mean, features, features % 2 == 1, margin);
        }
      }
    });
  }
}

/// Directed edges; both gradients by differences of sum(grad_y * Y), which is linear in each.
TEST_P(SpmmEdgesTest, GradientsMatchFiniteDifferences) {
  Given given;
  given.edges = testing::random_coo(13, 13, 40, 71);
  given.rule = EdgeRule::gcn;
  given.loop_weight = 2;
  const PlacedEdges edges(given, device());
  constexpr std::int64_t features = 5;
  const SpmmPlan plan = plan_spmm(edges.coo(), options(Reduction::mean, Precision::fp32, features));
  const auto num_edges = static_cast<std::int64_t>(given.edges.rows.size());
  Padded<float> x(test::normal_matrix<float>(13, features, 72));
  Padded<float> values(test::normal_matrix<float>(num_edges, 1, 73));
  Padded<float> grad_y(test::normal_matrix<float>(13, features, 74));
  Padded<float> y(13, features), grad_x(13, features), grad_values(num_edges, 1);
  Placed<float> at_x(x, device()), at_values(values, device()), at_grad_y(grad_y, device());
  Placed<float> at_y(y, device()), at_grad_x(grad_x, device());
  Placed<float> at_grad_values(grad_values, device());
  const auto loss = [&] {
    at_x.send();
    at_values.send();
    run(plan, {at_x.view(), at_values.view()}, {at_y.view()});
    at_y.fetch();
    double sum = 0;
    for (std::int64_t i = 0; i < 13; ++i) {
      for (std::int64_t j = 0; j < features; ++j) {
        sum += static_cast<double>(y.view()(i, j)) * static_cast<double>(grad_y.view()(i, j));
      }
    }
    return sum;
  };
  run_backward(plan, {at_grad_y.view(), at_x.view(), at_values.view()},
               {at_grad_x.view(), at_grad_values.view()});
  at_grad_x.fetch();
  at_grad_values.fetch();
  const auto expect_gradient = [&](Padded<float>& variable, Padded<float>& gradient) {
    for (std::int64_t i = 0; i < variable.view().rows; ++i) {
      for (std::int64_t j = 0; j < variable.view().cols; ++j) {
        float& number = variable.view()(i, j);
        const float before = number;
        number = before + 1;
        const double above = loss();
        number = before - 1;
        const double below = loss();
        number = before;
        EXPECT_NEAR(gradient.view()(i, j), (above - below) / 2, 2e-5) << i << ", " << j;
      }
    }
  };
  expect_gradient(x, grad_x);
  expect_gradient(values, grad_values);
}

/// Sums are begun anew in every run, whatever Y held.
TEST_P(SpmmEdgesTest, ReplaysOnDevice) {
  if (device().kind == DeviceKind::cpu) {
    GTEST_SKIP() << "only a GPU records; tools/gpu.sh test runs the cases of cuda";
  }
  Given given;
  given.edges = testing::random_coo(50, 50, 300, 81);
  given.rule = EdgeRule::gcn;
  const PlacedEdges edges(given, device());
  for (const Reduction reduction : {Reduction::sum, Reduction::mean}) {
    const SpmmPlan plan = plan_spmm(edges.coo(), options(reduction, Precision::fp32, 16));
    Padded<float> x(test::normal_matrix<float>(50, 16, 82), 4), y(50, 16, 4);
    Placed<float> at_x(x, device()), at_y(y, device());
    const Recording recording = Recording::of(
        device(), [&](Stream stream) { run(plan, {at_x.view()}, {at_y.view()}, stream); });
    for (const std::uint64_t seed : {83, 84}) {
      const Matrix<float> other = test::normal_matrix<float>(50, 16, seed);
      for (std::int64_t i = 0; i < 50; ++i) {
        for (std::int64_t j = 0; j < 16; ++j) x.view()(i, j) = other(i, j);
      }
      at_x.send();
      recording.replay();
      at_y.fetch();
      const Meaning meaning(given, {});
      const Expected expected = product(meaning, reduction, test::to_double(other), 50, false);
      EXPECT_EQ(testing::first_mismatch(y.view(), expected.values, expected.magnitude, {1e-5}), "");
    }
  }
}

std::vector<std::string> forms() {
  std::vector<std::string> forms = {"cpu/scatter", "cpu/reduce"};
  if (num_gpus() > 0) forms.insert(forms.end(), {"cuda/scatter", "cuda/reduce"});
  return forms;
}

INSTANTIATE_TEST_SUITE_P(All, SpmmEdgesTest, ::testing::ValuesIn(forms()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
