// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/spmm.hpp"

#include <cmath>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "ops/plan/check.hpp"
#include "ops/simd/isa.hpp"
#include "ops/spmm/reference.hpp"
#include "support/comparisons.hpp"
#include "support/error_measure.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/random_matrix.hpp"
#include "tessera/core/error.hpp"
#include "tessera/graph/generate.hpp"

/// Every registered kernel of spmm against the reference.
namespace tessera::ops {
namespace {

using testing::NamedGraph;
using testing::NumberKind;

constexpr Reduction reductions[] = {Reduction::sum, Reduction::mean, Reduction::max,
                                    Reduction::min};

bool has_winners(Reduction reduction) {
  return reduction == Reduction::max || reduction == Reduction::min;
}

/// The operands of one case, stored as T inside wider matrices.
template <class T>
struct Operands {
  Operands(const Graph& graph, const Matrix<T>& x_values, const Matrix<T>& edge_values_given,
           std::int64_t margin)
      : x(x_values, margin),
        edge_values(edge_values_given),
        y(graph.num_rows(), x_values.cols(), margin) {
    poison(y.view());
  }
  static void poison(MatrixView<T> view) {
    for (std::int64_t i = 0; i < view.rows; ++i) {
      for (std::int64_t j = 0; j < view.cols; ++j) {
        view(i, j) = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
      }
    }
  }

  test::Padded<T> x;
  test::Padded<T> edge_values;
  test::Padded<T> y;
};

struct Case {
  std::string kernel;
  Graph graph;
  Reduction reduction = Reduction::sum;
  std::int64_t features = 0;
  bool override_values = false;
  NumberKind kind = NumberKind::normal;
  /// Elements before and after each row. Eight keep rows of 16-bit and 32-bit features that lie on
  /// 16-byte boundaries there, three do not.
  std::int64_t margin = 3;
  bool spoiled = false;          ///< x has elements that are not finite
  bool values_expected = false;  ///< the plan is made for runs that override values
  bool zeros = false;            ///< more than half of the values that override the graph's are 0
};

/// Each winner is a source of its row whose product is the best, within the tolerance.
void expect_winners_hold(const Case& c, MatrixView<const double> x,
                         MatrixView<const double> edge_values, MatrixView<const VertexId> winners,
                         const Matrix<VertexId>& expected_winners, const Matrix<double>& expected,
                         const Matrix<double>& magnitude, testing::Tolerance tolerance) {
  for (VertexId row = 0; row < c.graph.num_rows(); ++row) {
    for (std::int64_t f = 0; f < c.features; ++f) {
      const VertexId winner = winners(row, f);
      if (winner == expected_winners(row, f)) continue;
      ASSERT_EQ(c.kind, NumberKind::normal) << "row " << row << ", feature " << f << ": winner "
                                            << winner << ", not " << expected_winners(row, f);
      const auto sources = c.graph.neighbours(row);
      const auto found = std::lower_bound(sources.begin(), sources.end(), winner);
      ASSERT_TRUE(found != sources.end() && *found == winner) << "row " << row;
      const EdgeOffset edge = c.graph.row_offsets()[row] + (found - sources.begin());
      const double scale = (c.graph.has_row_scale() ? c.graph.row_scale()[row] : 1.0) *
                           (c.graph.has_col_scale() ? c.graph.col_scale()[winner] : 1.0);
      const double own = c.graph.has_values() ? c.graph.values()[edge] : 1.0;
      const double value = edge_values.data != nullptr ? edge_values(edge, 0) : own;
      ASSERT_TRUE(testing::close(scale * value * x(winner, f), expected(row, f), magnitude(row, f),
                                 tolerance));
    }
  }
}

/// What is allowed to a kernel for numbers of this kind.
testing::Tolerance tolerance_of(const Case& c, Precision precision) {
  testing::Tolerance tolerance = testing::tolerance_of(precision);
  const KernelInfo info = testing::kernel_info(c.kernel);
  if (!info.strict) tolerance.of_magnitude = 1e-5;
  // Sums of small integers are exact; only the division of a mean and the store round.
  if (c.kind == NumberKind::integer) tolerance = {};
  tolerance.admits_nan = c.spoiled && !info.exact_nonfinite;
  return tolerance;
}

std::optional<SpmmPlan> plan_of(const Case& c, Precision precision) {
  SpmmOptions options;
  options.kernel = c.kernel;
  options.reduction = c.reduction;
  options.precision = precision;
  options.features = c.features;
  options.edge_values_expected = c.values_expected;
  options.device = testing::device_of(c.kernel);
  return testing::planned(options.device, [&] { return plan_spmm(c.graph, options); });
}

/// Runs one case on padded operands and compares; `spoil` may put odd numbers into x.
template <class T, class Spoil>
void run_case(const Case& c, Spoil&& spoil) {
  const std::optional<SpmmPlan> plan = plan_of(c, PrecisionOf<T>::value);
  if (!plan) return;
  EXPECT_EQ(plan->kernel().name, c.kernel);
  const std::int64_t num_values = c.override_values ? c.graph.num_edges() : 0;
  Matrix<T> x_values = testing::random_matrix<T>(c.graph.num_cols(), c.features, c.kind, 31);
  spoil(x_values);
  Matrix<T> edge_values = testing::random_matrix<T>(num_values, 1, c.kind, 32);
  for (std::int64_t e = 0; c.zeros && e < num_values; ++e) {
    if (e % 5 < 3) edge_values(e, 0) = T(0);
  }
  const Matrix<double> x = test::to_double(x_values);
  const Matrix<double> values = test::to_double(edge_values);
  const MatrixView<const double> values_view =
      c.override_values ? values.view() : MatrixView<const double>{};
  Operands<T> operands(c.graph, x_values, edge_values, c.margin);
  const Device device = testing::device_of(c.kernel);
  test::Placed<T> placed_x(operands.x, device);
  test::Placed<T> placed_edge_values(operands.edge_values, device);
  test::Placed<T> placed_y(operands.y, device);
  SpmmInputs inputs{placed_x.view()};
  if (c.override_values) inputs.edge_values = placed_edge_values.view();
  SpmmOutputs outputs{placed_y.view()};
  test::Padded<VertexId> winners(c.graph.num_rows(), c.features, c.margin);
  test::Placed<VertexId> placed_winners(winners, device);
  if (has_winners(c.reduction)) outputs.winners = placed_winners.view();
  run(*plan, inputs, outputs);
  placed_y.fetch();
  placed_winners.fetch();
  EXPECT_TRUE(operands.y.margins_intact());
  EXPECT_TRUE(winners.margins_intact());

  Matrix<double> expected(c.graph.num_rows(), c.features);
  Matrix<double> magnitude(c.graph.num_rows(), c.features);
  Matrix<VertexId> expected_winners(c.graph.num_rows(), c.features);
  reference::spmm(c.graph, c.reduction, x, values_view, expected, expected_winners);
  reference::spmm_magnitude(c.graph, c.reduction, x, values_view, magnitude);
  const testing::Tolerance tolerance = tolerance_of(c, PrecisionOf<T>::value);
  if (c.kind == NumberKind::integer) {
    for (double& value : expected.span()) value = testing::rounded_to<T>(value);
  }
  EXPECT_EQ(testing::first_mismatch(operands.y.view(), expected, magnitude, tolerance), "");
  if (has_winners(c.reduction)) {
    expect_winners_hold(c, x, values_view, winners.view(), expected_winners, expected, magnitude,
                        testing::tolerance_of(PrecisionOf<T>::value));
  }
}

/// In every precision of the kernel's device; on a GPU with rows on 16-byte boundaries, too, and
/// one after the other, with nothing behind the last.
template <class Spoil>
void run_all_precisions(const Case& c, Spoil&& spoil) {
  const auto run_in = [&]<class T>(const T&) {
    SCOPED_TRACE(to_string(PrecisionOf<T>::value));
    run_case<T>(c, spoil);
    if (testing::device_of(c.kernel).kind == DeviceKind::cpu) return;
    for (const std::int64_t margin : {0, 8}) {
      SCOPED_TRACE(margin);
      Case other = c;
      other.margin = margin;
      run_case<T>(other, spoil);
    }
  };
  run_in(float{});
  run_in(double{});
  run_in(Bfloat16{});
  if (testing::device_of(c.kernel).kind == DeviceKind::cuda) run_in(Float16{});
}

void run_all_precisions(const Case& c) {
  run_all_precisions(c, [](const auto&) {});
}

class SpmmKernels : public testing::KernelTest {
 protected:
  /// Calls body(graph, reduction) for every odd graph with every kind of weight.
  template <class Body>
  void for_all_graphs(NumberKind kind, Body&& body) {
    for (const NamedGraph& pattern : testing::odd_patterns()) {
      for (const NamedGraph& named : testing::with_all_weights(pattern, kind)) {
        SCOPED_TRACE(named.name);
        for (const Reduction reduction : reductions) {
          if (!testing::takes(GetParam(), reduction)) continue;
          SCOPED_TRACE(to_string(reduction));
          body(named.graph, reduction);
        }
      }
    }
  }
};

TEST_P(SpmmKernels, MatchTheReferenceOnOddGraphs) {
  for_all_graphs(NumberKind::normal, [&](const Graph& graph, Reduction reduction) {
    for (const bool override_values : {false, true}) {
      run_all_precisions({GetParam(), graph, reduction, 16, override_values});
    }
    Case expected{GetParam(), graph, reduction, 24, true};
    expected.values_expected = true;
    run_all_precisions(expected);
  });
}

TEST_P(SpmmKernels, AreExactOnIntegers) {
  for_all_graphs(NumberKind::integer, [&](const Graph& graph, Reduction reduction) {
    run_all_precisions({GetParam(), graph, reduction, 7, false, NumberKind::integer});
  });
}

/// With scales, and with values as well: some kernels take the one, some the other.
TEST_P(SpmmKernels, MatchTheReferenceAtEveryWidth) {
  const std::vector<NamedGraph> weighted = testing::with_all_weights(
      {"random", testing::random_graph(33, 40, 300, 41, false)}, NumberKind::normal);
  for (const NamedGraph& named : {weighted[2], weighted[3]}) {
    SCOPED_TRACE(named.name);
    for (const std::int64_t features :
         {0,  1,  2,  3,  4,  5,  7,  8,  9,  12,  15,  16,  17,  31,  33,
          40, 41, 46, 47, 63, 64, 65, 89, 96, 100, 128, 257, 300, 1000}) {
      SCOPED_TRACE(features);
      for (const Reduction reduction : reductions) {
        if (!testing::takes(GetParam(), reduction)) continue;
        SCOPED_TRACE(to_string(reduction));
        run_all_precisions({GetParam(), named.graph, reduction, features});
      }
    }
  }
}

TEST_P(SpmmKernels, MatchTheReferenceOnLongRowsAtEveryWidth) {
  const Graph graph =
      testing::with_all_weights({"", testing::hub_graph(3, 2500, 42)}, NumberKind::normal)[2].graph;
  for (const std::int64_t features : {1, 7, 16, 33, 64, 257}) {
    SCOPED_TRACE(features);
    for (const Reduction reduction : reductions) {
      if (!testing::takes(GetParam(), reduction)) continue;
      SCOPED_TRACE(to_string(reduction));
      run_all_precisions({GetParam(), graph, reduction, features});
    }
  }
}

/// The teams of a warp have neighbouring parts of one row where the plan says so; long rows are cut
/// as ever, and operands off boundaries have another number of parts.
TEST_P(SpmmKernels, MatchTheReferenceWithPartsBesideEachOther) {
  if (GetParam() != "spmm/cuda/rows_16x1x4_listed" && GetParam() != "spmm/cuda/best") {
    GTEST_SKIP() << "takes no parts beside each other";
  }
  const Graph pattern = generate::build(generate::Rmat{.scale = 12, .edges = 60000, .seed = 1});
  const std::vector<NamedGraph> weighted =
      testing::with_all_weights({"R-MAT", pattern}, NumberKind::normal);
  int beside = 0;
  for (const std::int64_t features : {25, 100, 124, 200}) {
    SCOPED_TRACE(features);
    for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
      if (!testing::takes(GetParam(), reduction)) continue;
      for (const NamedGraph& named : {weighted.front(), weighted.back()}) {
        SCOPED_TRACE(named.name);
        const Case c{GetParam(), named.graph, reduction, features};
        run_all_precisions(c);
        for (const Precision precision : {Precision::fp32, Precision::bf16}) {
          const auto plan = plan_of(c, precision);
          if (!plan) continue;
          const std::string said = to_string(plan->explain());
          beside += said.find("parts of rows beside each other") != std::string::npos ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(beside, 0);
}

/// Where an accumulator is rounded in one direction only, errors of such sums add up.
TEST_P(SpmmKernels, MatchTheReferenceOnSumsOfOneSign) {
  constexpr VertexId rows = 64, cols = 16 * 1024, apart = 16;
  std::vector<VertexId> targets, sources;
  for (VertexId row = 0; row < rows; ++row) {
    for (VertexId col = row % apart; col < cols; col += apart) {
      targets.push_back(row);
      sources.push_back(col);
    }
  }
  const Graph pattern = from_coo(rows, cols, targets, sources);
  std::vector<float> values(targets.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1 + static_cast<float>(i % 97) / 97;
  for (const Graph& graph : {pattern, pattern.with_values(SharedArray<float>(values))}) {
    run_all_precisions({GetParam(), graph, Reduction::sum, 16}, [](auto& x) {
      for (auto& value : x.span()) {
        value = std::decay_t<decltype(value)>(std::abs(static_cast<float>(value)) + 0.5f);
      }
    });
  }
}

TEST_P(SpmmKernels, PassOnWhatIsNotFinite) {
  const auto spoil = [](auto& x) {
    using T = std::remove_cvref_t<decltype(*x.data())>;
    const Random random(51);
    constexpr float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(), -0.0f};
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const auto draw = random.below(static_cast<std::uint64_t>(i), 40);
      if (draw < 4) x.data()[i] = static_cast<T>(odd[draw]);
    }
  };
  for (const NamedGraph& pattern :
       {NamedGraph{"square", testing::random_graph(33, 33, 150, 52, false)},
        NamedGraph{"hub", testing::hub_graph(3, 2500, 53)}}) {
    for (const NamedGraph& named : testing::with_all_weights(pattern, NumberKind::integer)) {
      SCOPED_TRACE(named.name);
      for (const Reduction reduction : reductions) {
        if (!testing::takes(GetParam(), reduction)) continue;
        SCOPED_TRACE(to_string(reduction));
        for (const std::int64_t features : {32, 33}) {
          run_all_precisions({.kernel = GetParam(),
                              .graph = named.graph,
                              .reduction = reduction,
                              .features = features,
                              .spoiled = true},
                             spoil);
        }
      }
    }
  }
}

/// Columns that are equal all the way down, in rows on boundaries and in others: infinities, zeros
/// of both signs, not a number.
TEST_P(SpmmKernels, PickTheFirstOfEquals) {
  if (!testing::takes(GetParam(), Reduction::max))
    GTEST_SKIP() << "sums and means only; spmm/cuda/best_* runs it";
  const auto spoil = [](auto& x) {
    using T = std::remove_cvref_t<decltype(*x.data())>;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      const float equal[] = {-infinity, infinity, i % 2 == 0 ? -0.0f : 0.0f,
                             std::numeric_limits<float>::quiet_NaN(), 1.0f};
      for (std::int64_t j = 0; j < 5; ++j) x(i, j) = static_cast<T>(equal[j]);
    }
  };
  for (const NamedGraph& pattern :
       {NamedGraph{"square", testing::random_graph(33, 33, 150, 54, false)},
        NamedGraph{"hub", testing::hub_graph(3, 2500, 55)}}) {
    for (const NamedGraph& named : testing::with_all_weights(pattern, NumberKind::integer)) {
      SCOPED_TRACE(named.name);
      for (const Reduction reduction : {Reduction::max, Reduction::min}) {
        SCOPED_TRACE(to_string(reduction));
        for (const std::int64_t features : {33, 64}) {
          run_all_precisions({.kernel = GetParam(),
                              .graph = named.graph,
                              .reduction = reduction,
                              .features = features,
                              .kind = NumberKind::integer,
                              .spoiled = true},
                             spoil);
        }
      }
    }
  }
}

/// Sparse features with dropout times a small matrix: what is multiplied by 0 counts where it is
/// not finite.
TEST_P(SpmmKernels, MultiplyByZero) {
  const auto spoil = [](auto& x) {
    using T = std::remove_cvref_t<decltype(*x.data())>;
    x.data()[x.size() / 2] = static_cast<T>(std::numeric_limits<float>::infinity());
  };
  for (const Graph& graph : {testing::random_graph(200, 12, 1500, 55, false),
                             testing::random_graph(50, 2600, 110000, 56, false)}) {
    for (const Reduction reduction : reductions) {
      if (!testing::takes(GetParam(), reduction)) continue;
      SCOPED_TRACE(to_string(reduction));
      for (const std::int64_t features : {2, 33}) {
        Case c{.kernel = GetParam(), .graph = graph, .reduction = reduction, .features = features};
        c.override_values = true;
        c.zeros = true;
        run_all_precisions(c);
        c.spoiled = true;
        run_all_precisions(c, spoil);
      }
    }
  }
}

TEST_P(SpmmKernels, MatchTheReferenceWithEveryInstructionSet) {
  if (testing::device_of(GetParam()).kind != DeviceKind::cpu) GTEST_SKIP() << "of the CPU";
  const Graph graph = testing::with_all_weights({"", testing::random_graph(40, 33, 300, 61, false)},
                                                NumberKind::normal)[2]
                          .graph;
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(to_string(isa));
    const ForcedIsa forced(isa);
    for (const std::int64_t features : {1, 3, 7, 15, 16, 33, 64, 257}) {
      for (const Reduction reduction : reductions) {
        if (!testing::takes(GetParam(), reduction)) continue;
        run_all_precisions({GetParam(), graph, reduction, features});
      }
    }
  }
}

TEST_P(SpmmKernels, GiveTheSameBitsForAnyNumberOfThreads) {
  if (testing::device_of(GetParam()).kind != DeviceKind::cpu) GTEST_SKIP() << "of the CPU";
  const Graph graph =
      testing::with_all_weights({"", testing::hub_graph(2000, 5000, 71)}, NumberKind::normal)[3]
          .graph;
  const Matrix<float> x = test::normal_matrix<float>(graph.num_cols(), 33, 72);
  for (const Reduction reduction : reductions) {
    if (!testing::takes(GetParam(), reduction)) continue;
    SpmmOptions options;
    options.kernel = GetParam();
    options.reduction = reduction;
    options.features = x.cols();
    const auto result_with = [&](int threads) {
      const testing::ThreadScope scope(threads);
      Matrix<float> y(graph.num_rows(), x.cols(), std::numeric_limits<float>::quiet_NaN());
      run(plan_spmm(graph, options), {x}, {y});
      testing::note_compared();
      return y;
    };
    const Matrix<float> expected = result_with(1);
    for (const int threads : {2, 3}) {
      EXPECT_TRUE(test::same_bits(expected, result_with(threads)))
          << to_string(reduction) << " with " << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpmmKernels, ::testing::ValuesIn(testing::kernel_names("spmm")),
                         testing::kernel_test_name);

/// What one kernel declines, another takes.
TEST(SpmmPlans, TakeEveryProblemOnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  for (const NamedGraph& pattern : testing::odd_patterns()) {
    for (const NamedGraph& named : testing::with_all_weights(pattern, NumberKind::normal)) {
      for (const Reduction reduction : reductions) {
        for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
          for (const std::int64_t features : {1, 7, 16, 300}) {
            SpmmOptions options;
            options.device = {DeviceKind::cuda, 0};
            options.reduction = reduction;
            options.precision = precision;
            options.features = features;
            EXPECT_NO_THROW(plan_spmm(named.graph, options))
                << named.name << ", " << to_string(reduction) << ", " << to_string(precision)
                << ", " << features << " features";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::ops
