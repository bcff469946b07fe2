// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/sddmm.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ops/plan/check.hpp"
#include "ops/sddmm/reference.hpp"
#include "ops/simd/isa.hpp"
#include "support/comparisons.hpp"
#include "support/error_measure.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/placed_matrix.hpp"
#include "support/random_matrix.hpp"
#include "tessera/core/error.hpp"

/// Every registered kernel of sddmm against the reference.
namespace tessera::ops {
namespace {

using testing::NamedGraph;
using testing::NumberKind;

struct Case {
  std::string kernel;
  Graph graph;
  EdgeFunction function = EdgeFunction::dot;
  std::int64_t features = 0;
  std::int64_t heads = 1;
  NumberKind kind = NumberKind::normal;
  /// Elements before and after each row. Eight keep rows of 16-bit and 32-bit features that lie on
  /// 16-byte boundaries there, three do not.
  std::int64_t margin = 3;
};

Matrix<double> absolute(const Matrix<double>& matrix) {
  Matrix<double> result = test::copy_of(matrix);
  for (double& value : result.span()) value = std::abs(value);
  return result;
}

/// CPU kernels take every case. A CUDA kernel may decline some, but then another one takes it.
bool supported(const Case& c, SddmmOptions options) {
  if (testing::planned(options.device, [&] { return plan_sddmm(c.graph, options); })) return true;
  options.kernel.clear();
  if (options.precision != Precision::fp64) {
    EXPECT_NO_THROW(plan_sddmm(c.graph, options));
  }
  return false;
}

template <class T, class Spoil>
void run_case(const Case& c, Spoil&& spoil) {
  Matrix<T> u_values = testing::random_matrix<T>(c.graph.num_rows(), c.features, c.kind, 31);
  Matrix<T> v_values = testing::random_matrix<T>(c.graph.num_cols(), c.features, c.kind, 32);
  spoil(u_values, 33);
  spoil(v_values, 34);
  const Matrix<double> u = test::to_double(u_values);
  const Matrix<double> v = test::to_double(v_values);
  SddmmOptions options;
  options.kernel = c.kernel;
  options.function = c.function;
  options.precision = PrecisionOf<T>::value;
  options.features = c.features;
  options.heads = c.heads;
  options.device = testing::device_of(c.kernel);
  if (!supported(c, options)) return;
  test::Padded<T> u_stored(u_values, c.margin);
  test::Padded<T> v_stored(v_values, c.margin);
  test::Padded<T> edges(Matrix<T>(c.graph.num_edges(), c.heads,
                                  static_cast<T>(std::numeric_limits<float>::quiet_NaN())),
                        c.margin);
  test::Placed<T> placed_u(u_stored, options.device);
  test::Placed<T> placed_v(v_stored, options.device);
  test::Placed<T> placed_edges(edges, options.device);
  const SddmmPlan plan = plan_sddmm(c.graph, options);
  EXPECT_EQ(plan.kernel().name, c.kernel);
  run(plan, placed_u.view(), placed_v.view(), placed_edges.view());
  placed_edges.fetch();
  EXPECT_TRUE(edges.margins_intact());

  Matrix<double> expected(c.graph.num_edges(), c.heads);
  Matrix<double> magnitude(c.graph.num_edges(), c.heads);
  reference::sddmm(c.graph, c.function, c.heads, u, v, expected);
  reference::sddmm(c.graph, c.function, c.heads, absolute(u), absolute(v), magnitude);
  testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
  if (!testing::kernel_info(c.kernel).strict) tolerance.of_magnitude = 1e-5;
  if (c.kind == NumberKind::integer) {
    for (double& value : expected.span()) value = testing::rounded_to<T>(value);
    tolerance = {};
  }
  EXPECT_EQ(testing::first_mismatch(edges.view(), expected, magnitude, tolerance), "");
}

/// In every precision of the kernel's device; on a GPU with rows on 16-byte boundaries, too.
template <class Spoil>
void run_all_precisions(const Case& c, Spoil&& spoil) {
  const auto run_in = [&]<class T>(const T&) {
    SCOPED_TRACE(to_string(PrecisionOf<T>::value));
    run_case<T>(c, spoil);
    if (testing::device_of(c.kernel).kind == DeviceKind::cpu) return;
    Case on_boundaries = c;
    on_boundaries.margin = 8;
    run_case<T>(on_boundaries, spoil);
  };
  run_in(float{});
  run_in(double{});
  run_in(Bfloat16{});
  if (testing::device_of(c.kernel).kind == DeviceKind::cuda) run_in(Float16{});
}

void run_all_precisions(const Case& c) {
  run_all_precisions(c, [](const auto&, std::uint64_t) {});
}

class SddmmKernels : public testing::KernelTest {
 protected:
  static bool is(const char* kind) { return GetParam().find(kind) != std::string::npos; }
  /// Of whole lines of the cache.
  static bool has_few_widths() { return is("/cuda/list"); }
};

TEST_P(SddmmKernels, MatchTheReferenceOnOddGraphs) {
  for (const NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    run_all_precisions({GetParam(), named.graph, EdgeFunction::dot, 16, 1});
    run_all_precisions({GetParam(), named.graph, EdgeFunction::dot, 24, 3});
    run_all_precisions({GetParam(), named.graph, EdgeFunction::add, 3, 3});
  }
}

/// Every kernel takes some function, width and number of heads.
TEST_P(SddmmKernels, ServeSomeProblem) {
  must_compare();
  const Graph graph = testing::random_graph(40, 33, 300, 43, false);
  for (const std::int64_t width : {1, 4, 8, 16, 17, 32, 33, 64, 96, 128, 256, 512, 1024}) {
    for (const std::int64_t heads : {1, 4}) {
      run_all_precisions({GetParam(), graph, EdgeFunction::dot, width * heads, heads});
    }
    run_all_precisions({GetParam(), graph, EdgeFunction::add, width, width});
  }
}

TEST_P(SddmmKernels, AreExactOnIntegers) {
  for (const NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    run_all_precisions({GetParam(), named.graph, EdgeFunction::dot, 7, 1, NumberKind::integer});
    run_all_precisions({GetParam(), named.graph, EdgeFunction::add, 7, 7, NumberKind::integer});
  }
}

/// Enough edges that warps of a GPU compute several tiles of them in turn, as lists do.
TEST_P(SddmmKernels, ComputeManyTilesInTurn) {
  if (!has_few_widths() && !is("/cuda/vectors")) {
    GTEST_SKIP() << "kernels whose warps take edges of fixed numbers, which run on GPUs";
  }
  static const Graph graph = testing::random_graph(5000, 5000, 1150000, 44, false);
  for (const std::int64_t features : {8, 32, 64, 96, 128, 256}) {
    if (!has_few_widths() && features != 8 && features != 128) continue;
    run_case<float>({GetParam(), graph, EdgeFunction::dot, features, 1, NumberKind::integer, 8},
                    [](const auto&, std::uint64_t) {});
  }
}

/// Shares that end early, targets without edges, hubs.
TEST_P(SddmmKernels, TakeRowsOfFewWidthsOfOddGraphs) {
  if (!has_few_widths()) GTEST_SKIP() << "runs for lists, by tools/gpu.sh test";
  must_compare();
  for (const NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    for (const std::int64_t features : {32, 64, 96, 128, 256, 512}) {
      run_all_precisions(
          {GetParam(), named.graph, EdgeFunction::dot, features, 1, NumberKind::integer});
    }
  }
  for (const std::int64_t features : {64, 96, 128, 192}) {
    run_all_precisions(
        {GetParam(), testing::hub_graph(3000, 4000, 45), EdgeFunction::dot, features});
  }
}

TEST_P(SddmmKernels, IgnoreValuesAndScales) {
  const NamedGraph pattern{"", testing::random_graph(17, 31, 120, 41, false)};
  for (const NamedGraph& named : testing::with_all_weights(pattern, NumberKind::normal)) {
    SCOPED_TRACE(named.name);
    run_all_precisions({GetParam(), named.graph, EdgeFunction::dot, 16, 2});
  }
}

TEST_P(SddmmKernels, MatchTheReferenceAtEveryWidthWithEveryInstructionSet) {
  const Graph graph = testing::random_graph(33, 40, 300, 42, false);
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(to_string(isa));
    const ForcedIsa forced(isa);
    if (testing::device_of(GetParam()).kind != DeviceKind::cpu && isa != available_isas()[0]) break;
    for (const std::int64_t width : {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 257, 600}) {
      SCOPED_TRACE(width);
      for (const std::int64_t heads : {1, 4}) {
        run_all_precisions({GetParam(), graph, EdgeFunction::dot, width * heads, heads});
      }
      if (width > 0) run_all_precisions({GetParam(), graph, EdgeFunction::add, width, width});
    }
  }
}

TEST_P(SddmmKernels, PassOnWhatIsNotFinite) {
  const auto spoil = [](auto& matrix, std::uint64_t seed) {
    using T = std::remove_cvref_t<decltype(*matrix.data())>;
    const Random random(seed);
    constexpr float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(), 0.0f};
    for (std::int64_t i = 0; i < matrix.size(); ++i) {
      const auto draw = random.below(static_cast<std::uint64_t>(i), 160);
      if (draw < 4) matrix.data()[i] = static_cast<T>(odd[draw]);
    }
  };
  const Graph graph = testing::random_graph(33, 33, 300, 52, false);
  for (const std::int64_t width : {3, 7, 16, 33}) {
    SCOPED_TRACE(width);
    run_all_precisions({GetParam(), graph, EdgeFunction::dot, width, 1}, spoil);
    run_all_precisions({GetParam(), graph, EdgeFunction::add, width, width}, spoil);
  }
}

TEST_P(SddmmKernels, GiveTheSameBitsForAnyNumberOfThreads) {
  const Graph graph = testing::hub_graph(2000, 5000, 71);
  for (const std::int64_t features : {33, 128}) {
    Matrix<float> u = test::normal_matrix<float>(graph.num_rows(), features, 72);
    Matrix<float> v = test::normal_matrix<float>(graph.num_cols(), features, 73);
    SddmmOptions options;
    options.kernel = GetParam();
    options.features = features;
    options.device = testing::device_of(GetParam());
    if (!supported({GetParam(), graph, EdgeFunction::dot, features, 1}, options)) continue;
    test::PlacedMatrix<float> placed_u(u, options.device);
    test::PlacedMatrix<float> placed_v(v, options.device);
    const auto result_with = [&](int threads) {
      const testing::ThreadScope scope(threads);
      Matrix<float> edges(graph.num_edges(), 1, std::numeric_limits<float>::quiet_NaN());
      test::PlacedMatrix<float> placed_edges(edges, options.device);
      run(plan_sddmm(graph, options), placed_u.view(), placed_v.view(), placed_edges.view());
      placed_edges.fetch();
      return edges;
    };
    const Matrix<float> expected = result_with(1);
    for (const int threads : {2, 3}) EXPECT_TRUE(test::same_bits(expected, result_with(threads)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SddmmKernels, ::testing::ValuesIn(testing::kernel_names("sddmm")),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
