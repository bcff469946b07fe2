// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/messages.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/messages/reference.hpp"
#include "ops/simd/isa.hpp"
#include "support/comparisons.hpp"
#include "support/error_measure.hpp"
#include "support/errors.hpp"
#include "support/gradients.hpp"
#include "support/kernel_names.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/placed_matrix.hpp"
#include "tessera/core/error.hpp"
#include "tessera/graph/build.hpp"

/// Every registered kernel of messages against the reference.
namespace tessera::test {
namespace {

using ops::Message;

constexpr Message all_messages[] = {Message::sum, Message::relu, Message::product};

ops::MessagesOptions options_of(const std::string& kernel, Message message, Precision precision,
                                std::int64_t features) {
  ops::MessagesOptions options;
  options.kernel = kernel;
  options.message = message;
  options.precision = precision;
  options.features = features;
  options.device = testing::device_of(kernel);
  options.backward = true;
  return options;
}

/// Every row once, in an order of its own.
Buffer<EdgeOffset> shuffled_rows(EdgeOffset edges, Device device) {
  Buffer<EdgeOffset> here(edges);
  std::iota(here.begin(), here.end(), EdgeOffset{0});
  const Random random(7);
  for (EdgeOffset i = edges - 1; i > 0; --i) {
    const auto element = static_cast<std::uint64_t>(i);
    std::swap(here[i], here[static_cast<EdgeOffset>(random.below(element, element + 1))]);
  }
  if (device.kind == DeviceKind::cpu) return here;
  Buffer<EdgeOffset> there(edges, default_memory(device));
  copy_bytes(there.data(), here.data(), static_cast<std::size_t>(edges) * sizeof(EdgeOffset),
             device);
  synchronise(device);
  return there;
}

template <class T>
struct Case {
  Matrix<T> x, edge_features, grad_y;
  Matrix<T> y, grad_x, grad_edge_features;

  Case(const Graph& graph, std::int64_t features, std::uint64_t seed)
      : x(normal_matrix<T>(graph.num_cols(), features, seed)),
        edge_features(normal_matrix<T>(graph.num_edges(), features, seed + 1)),
        grad_y(normal_matrix<T>(graph.num_rows(), features, seed + 2)),
        y(graph.num_rows(), features, poison()),
        grad_x(graph.num_cols(), features, poison()),
        grad_edge_features(graph.num_edges(), features, poison()) {}

  static T poison() { return static_cast<T>(std::numeric_limits<float>::quiet_NaN()); }

  /// Both passes, on operands that are brought to the plan's device and back.
  void run(const ops::MessagesPlan& plan, const EdgeOffset* edge_rows = nullptr) {
    const Device device = plan.options().device;
    PlacedMatrix<T> placed_x(x, device), placed_edges(edge_features, device),
        placed_grad(grad_y, device), placed_y(y, device), placed_grad_x(grad_x, device),
        placed_grad_edges(grad_edge_features, device);
    const ops::MessagesInputs inputs{placed_x.view(), placed_edges.view(), edge_rows};
    ops::run(plan, inputs, placed_y.view());
    ops::run_backward(plan, inputs, placed_grad.view(),
                      {placed_grad_x.view(), placed_grad_edges.view()});
    placed_y.fetch();
    placed_grad_x.fetch();
    placed_grad_edges.fetch();
  }
};

template <class T>
Matrix<double> absolute(const Matrix<T>& matrix) {
  Matrix<double> result = to_double(matrix);
  for (std::int64_t i = 0; i < result.size(); ++i) result.data()[i] = std::abs(result.data()[i]);
  return result;
}

template <class T>
void compare(const Graph& graph, Message message, const Case<T>& found, const std::string& what) {
  const std::int64_t features = found.x.cols();
  Matrix<double> y(graph.num_rows(), features), grad_x(graph.num_cols(), features),
      grad_edges(graph.num_edges(), features);
  Matrix<double> size_y(graph.num_rows(), features), size_x(graph.num_cols(), features),
      size_edges(graph.num_edges(), features);
  const Matrix<double> x = to_double(found.x), edges = to_double(found.edge_features),
                       grad_y = to_double(found.grad_y);
  ops::reference::messages(graph, message, x, edges, y);
  ops::reference::messages_backward(graph, message, x, edges, grad_y, grad_x, grad_edges);
  const Message bounding = message == Message::product ? message : Message::sum;
  const Matrix<double> abs_x = absolute(found.x), abs_edges = absolute(found.edge_features);
  ops::reference::messages(graph, bounding, abs_x, abs_edges, size_y);
  ops::reference::messages_backward(graph, bounding, abs_x, abs_edges, absolute(found.grad_y),
                                    size_x, size_edges);
  const testing::Tolerance tolerance = testing::tolerance_of(ops::PrecisionOf<T>::value);
  EXPECT_EQ(testing::first_mismatch(found.y.view(), y, size_y, tolerance), "") << what;
  EXPECT_EQ(testing::first_mismatch(found.grad_x.view(), grad_x, size_x, tolerance), "") << what;
  EXPECT_EQ(
      testing::first_mismatch(found.grad_edge_features.view(), grad_edges, size_edges, tolerance),
      "")
      << what;
}

template <class T>
void check(const std::string& kernel, const Graph& graph, Message message, std::int64_t features) {
  const auto options = options_of(kernel, message, ops::PrecisionOf<T>::value, features);
  const std::string what = std::string(to_string(message)) + ", " + to_string(options.precision) +
                           ", features " + std::to_string(features);
  const auto plan = ops::plan_messages(graph, options);
  Case<T> found(graph, features, 10);
  found.run(plan);
  compare(graph, message, found, what);

  // Rows in another order have the same results, bit for bit.
  const Buffer<EdgeOffset> rows = shuffled_rows(graph.num_edges(), {});
  Case<T> shuffled(graph, features, 10);
  for (EdgeOffset e = 0; e < graph.num_edges(); ++e) {
    std::copy_n(found.edge_features.row(e), features, shuffled.edge_features.row(rows[e]));
  }
  shuffled.run(plan, shuffled_rows(graph.num_edges(), options.device).data());
  EXPECT_TRUE(same_bits(found.y, shuffled.y)) << what;
  EXPECT_TRUE(same_bits(found.grad_x, shuffled.grad_x)) << what;
  for (EdgeOffset e = 0; e < graph.num_edges(); ++e) {
    for (std::int64_t f = 0; f < features; ++f) {
      ASSERT_EQ(static_cast<double>(found.grad_edge_features(e, f)),
                static_cast<double>(shuffled.grad_edge_features(rows[e], f)))
          << what;
    }
  }
}

class MessagesKernels : public testing::KernelTest {
 protected:
  /// Calls body(kernel name): on the CPU for every instruction set.
  template <class Body>
  void for_instruction_sets(Body&& body) {
    testing::note_compared();
    if (testing::device_of(GetParam()).kind != DeviceKind::cpu) return body(GetParam());
    for (const ops::Isa isa : ops::available_isas()) {
      SCOPED_TRACE(to_string(isa));
      const ops::ForcedIsa forced(isa);
      body(GetParam());
    }
  }
};

TEST_P(MessagesKernels, OddGraphsAndWidths) {
  for_instruction_sets([](const std::string& kernel) {
    for (const testing::NamedGraph& odd : testing::odd_patterns()) {
      SCOPED_TRACE(odd.name);
      for (const std::int64_t features : {0, 1, 3, 8, 17, 64, 100, 257}) {
        for (const Message message : all_messages) {
          check<float>(kernel, odd.graph, message, features);
          check<Bfloat16>(kernel, odd.graph, message, features);
          if (testing::device_of(kernel).kind != DeviceKind::cpu) {
            check<Float16>(kernel, odd.graph, message, features);
          } else {
            check<double>(kernel, odd.graph, message, features);
          }
        }
      }
    }
  });
}

TEST_P(MessagesKernels, RepeatedEdgesHaveFeaturesOfTheirOwn) {
  const Graph graph = from_edges(3, std::vector<VertexId>{0, 0, 0, 2},
                                 std::vector<VertexId>{1, 1, 2, 2}, {}, {Duplicates::keep});
  ASSERT_TRUE(graph.has_repeated_edges());
  for_instruction_sets([&](const std::string& kernel) {
    for (const Message message : all_messages) check<float>(kernel, graph, message, 5);
  });
}

TEST_P(MessagesKernels, EachGradientAlone) {
  for_instruction_sets([](const std::string& kernel) {
    const Graph graph = testing::hub_graph(40, 5000, 3);
    const auto plan =
        ops::plan_messages(graph, options_of(kernel, Message::relu, Precision::fp32, 33));
    Case<float> both(graph, 33, 5), one(graph, 33, 5);
    both.run(plan);
    const Device device = plan.options().device;
    PlacedMatrix<float> x(one.x, device), edges(one.edge_features, device),
        grad(one.grad_y, device), grad_x(one.grad_x, device),
        grad_edges(one.grad_edge_features, device);
    const ops::MessagesInputs inputs{x.view(), edges.view()};
    ops::run_backward(plan, inputs, grad.view(), {grad_x.view(), {}});
    ops::run_backward(plan, inputs, grad.view(), {{}, grad_edges.view()});
    ops::run_backward(plan, inputs, grad.view(), {});
    grad_x.fetch();
    grad_edges.fetch();
    EXPECT_TRUE(same_bits(both.grad_x, one.grad_x));
    EXPECT_TRUE(same_bits(both.grad_edge_features, one.grad_edge_features));
  });
}

TEST_P(MessagesKernels, ViewsKeepTheirMargins) {
  for_instruction_sets([](const std::string& kernel) {
    const Graph graph = testing::random_graph(20, 30, 150, 4, false);
    for (const std::int64_t features : {5, 64}) {
      const auto plan = ops::plan_messages(
          graph, options_of(kernel, Message::product, Precision::fp32, features));
      const Device device = plan.options().device;
      Case<float> plain(graph, features, 6);
      plain.run(plan);
      Padded<float> x(plain.x), edges(plain.edge_features), grad(plain.grad_y);
      Padded<float> y(graph.num_rows(), features), grad_x(graph.num_cols(), features),
          grad_edges(graph.num_edges(), features);
      Placed<float> placed_x(x, device), placed_edges(edges, device), placed_grad(grad, device),
          placed_y(y, device), placed_grad_x(grad_x, device), placed_grad_edges(grad_edges, device);
      const ops::MessagesInputs inputs{placed_x.view(), placed_edges.view()};
      ops::run(plan, inputs, placed_y.view());
      ops::run_backward(plan, inputs, placed_grad.view(),
                        {placed_grad_x.view(), placed_grad_edges.view()});
      const auto expect_same = [](Placed<float>& placed, Padded<float>& found,
                                  const Matrix<float>& expected) {
        placed.fetch();
        EXPECT_TRUE(found.margins_intact());
        for (std::int64_t i = 0; i < expected.rows(); ++i) {
          for (std::int64_t f = 0; f < expected.cols(); ++f) {
            ASSERT_NEAR(found.view()(i, f), expected(i, f), 1e-5f);
          }
        }
      };
      expect_same(placed_y, y, plain.y);
      expect_same(placed_grad_x, grad_x, plain.grad_x);
      expect_same(placed_grad_edges, grad_edges, plain.grad_edge_features);
    }
  });
}

TEST_P(MessagesKernels, NotANumberStaysWithItsTarget) {
  for_instruction_sets([](const std::string& kernel) {
    const Graph graph = testing::random_graph(33, 33, 200, 2, false);
    for (const Message message : all_messages) {
      const auto plan = ops::plan_messages(graph, options_of(kernel, message, Precision::fp32, 9));
      Case<float> found(graph, 9, 8);
      found.x(4, 3) = std::numeric_limits<float>::quiet_NaN();
      found.edge_features(17, 5) = std::numeric_limits<float>::infinity();
      found.edge_features(18, 6) = -std::numeric_limits<float>::infinity();
      found.run(plan);
      compare(graph, message, found, to_string(message));
    }
  });
}

TEST_P(MessagesKernels, SameBitsForAnyNumberOfThreads) {
  for_instruction_sets([](const std::string& kernel) {
    const Graph graph = testing::hub_graph(300, 9000, 9);
    const auto plan =
        ops::plan_messages(graph, options_of(kernel, Message::relu, Precision::fp32, 24));
    const auto run_with = [&](int threads) {
      const testing::ThreadScope scope(threads);
      Case<float> found(graph, 24, 12);
      found.run(plan);
      return found;
    };
    const Case<float> once = run_with(1);
    for (const int threads : {2, 3}) {
      const Case<float> other = run_with(threads);
      EXPECT_TRUE(same_bits(once.y, other.y)) << threads;
      EXPECT_TRUE(same_bits(once.grad_x, other.grad_x)) << threads;
      EXPECT_TRUE(same_bits(once.grad_edge_features, other.grad_edge_features)) << threads;
    }
  });
}

TEST_P(MessagesKernels, GradientsAgreeWithFiniteDifferences) {
  for_instruction_sets([](const std::string& kernel) {
    if (testing::device_of(kernel).kind != DeviceKind::cpu) return;
    const Graph graph = testing::random_graph(7, 5, 18, 3, false);
    for (const Message message : all_messages) {
      const auto plan = ops::plan_messages(graph, options_of(kernel, message, Precision::fp64, 3));
      Case<double> found(graph, 3, 20);
      found.run(plan);
      const auto loss = [&] {
        ops::run(plan, {found.x, found.edge_features}, found.y);
        return inner_product(found.y, found.grad_y);
      };
      expect_gradient(loss, found.x, found.grad_x);
      expect_gradient(loss, found.edge_features, found.grad_edge_features);
    }
  });
}

TEST(MessagesConformance, RejectsWhatDoesNotFit) {
  const Graph graph = testing::random_graph(6, 5, 12, 4, false);
  const auto plan = ops::plan_messages(graph, options_of("", Message::relu, Precision::fp32, 2));
  Matrix<float> x(5, 2, 0.0f), y(6, 2, 0.0f), edges(graph.num_edges(), 2, 0.0f), few(3, 2, 0.0f);
  const auto problem = [](auto&& body) { return argument_problem(body); };
  EXPECT_NE(problem([&] {
              ops::run(plan, {x, few}, y);
            }).find("features of edges"),
            std::string::npos);
  const EdgeOffset none = 0;
  EXPECT_NE(problem([&] {
              ops::run(plan, {x, few, &none}, y);
            }).find("features of edges"),
            std::string::npos);
  EXPECT_NE(problem([&] { ops::run(plan, {y, edges}, y); }).find("x"), std::string::npos);
  EXPECT_NE(problem([&] {
              ops::run_backward(plan, {x, edges}, y, {{}, edges});
            }).find("shares memory"),
            std::string::npos);
  EXPECT_NE(problem([&] {
              ops::plan_messages(graph, options_of("", Message::relu, Precision::fp32, -1));
            }).find("features"),
            std::string::npos);
  EXPECT_EQ(ops::parse_message("product"), Message::product);
  EXPECT_THROW(ops::parse_message("max"), Error);
}

INSTANTIATE_TEST_SUITE_P(All, MessagesKernels,
                         ::testing::ValuesIn(testing::kernel_names("messages")),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::test
