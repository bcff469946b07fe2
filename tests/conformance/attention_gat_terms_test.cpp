// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/attention_kernels.hpp"
#include "support/odd_graphs.hpp"

/// GAT where factors of rows and columns in place of exponentials are at their limits: terms that
/// add up to 0, steep slopes, large terms and features of any size.
namespace tessera::test {
namespace {

class GatTerms : public AttentionKernelTest {
 protected:
  /// Calls body(case) for fp32 and bf16, narrow heads and wide ones, wherever the kernel takes
  /// them.
  template <class Body>
  void for_cases(double slope, Body&& body) {
    for_instruction_sets([&](const std::string& kernel) {
      const Graph graph = testing::random_graph(200, 300, 3000, 61, false);
      for (const std::int64_t width : {8, 64}) {
        AttentionOptions options = options_of(kernel, AttentionForm::gat, 2, width, 0);
        options.negative_slope = slope;
        check<float>(graph, options, body);
        check<Bfloat16>(graph, options, body);
      }
    });
  }

 private:
  template <class T, class Body>
  static void check(const Graph& graph, AttentionOptions options, Body&& body) {
    options.precision = ops::PrecisionOf<T>::value;
    if (!supports(options.kernel, options)) return;
    SCOPED_TRACE(describe(options) + ", " + to_string(options.precision));
    AttentionCase<T> run(graph, options, 6100);
    body(run);
    run.run_all();
    expect_matches_reference(run);
  }
};

template <class T>
void fill(Matrix<T>& matrix, float number) {
  for (T& element : matrix.span()) element = static_cast<T>(number);
}
template <class T>
void scale(Matrix<T>& matrix, float factor) {
  for (T& element : matrix.span()) {
    element = static_cast<T>(static_cast<float>(element) * factor);
  }
}

/// A score of exactly 0 has the slope as its derivative.
TEST_P(GatTerms, SumsOfZero) {
  for (const float other : {0.0f, -1.0f}) {
    for (const bool of_sources : {true, false}) {
      SCOPED_TRACE(std::to_string(other) + (of_sources ? " of sources" : " of targets"));
      for_cases(0.2, [&](auto& run) {
        using T = std::decay_t<decltype(run.target(0, 0))>;
        fill(run.target, 0);
        fill(run.source, 0);
        auto& some = of_sources ? run.source : run.target;
        for (std::int64_t i = 0; i < some.rows(); i += 2) {
          for (std::int64_t h = 0; h < some.cols(); ++h) some(i, h) = static_cast<T>(other);
        }
      });
    }
  }
}

/// The same of terms so large that kernels take an exponential for each edge.
TEST_P(GatTerms, SumsOfZeroOfLargeTerms) {
  for (const float size : {30.0f, -30.0f}) {
    SCOPED_TRACE(size);
    for_cases(0.2, [&](auto& run) {
      using T = std::decay_t<decltype(run.target(0, 0))>;
      fill(run.target, size);
      fill(run.source, -size);
      for (std::int64_t i = 0; i < run.source.rows(); i += 2) {
        for (std::int64_t h = 0; h < run.source.cols(); ++h) {
          run.source(i, h) = static_cast<T>(3 - size);
        }
      }
    });
  }
}

TEST_P(GatTerms, SteepSlopes) {
  for (const double slope : {5.0, -5.0}) {
    SCOPED_TRACE(slope);
    for_cases(slope, [](auto& run) {
      fill(run.target, 0);
      fill(run.source, 20.8f);
    });
  }
}

TEST_P(GatTerms, LargeTermsAndFeaturesOfAnySize) {
  struct Sizes {
    float target, source, value, gradient;
  };
  for (const Sizes& sizes :
       {Sizes{30, -27, 1, 1e28f}, Sizes{11, 11, 3e30f, 1}, Sizes{-20, 27.7f, 1, 1e-30f},
        Sizes{5, 5, 1e30f, 1}, Sizes{5, 5, 1, 1e30f}, Sizes{-5, 1, 1e-30f, 1},
        Sizes{-5, 1, 1, 1e-30f}}) {
    SCOPED_TRACE(::testing::Message() << sizes.target << ", " << sizes.source << ", " << sizes.value
                                      << ", " << sizes.gradient);
    for_cases(0.2, [&](auto& run) {
      fill(run.target, sizes.target);
      fill(run.source, sizes.source);
      scale(run.value, sizes.value);
      scale(run.grad_output, sizes.gradient);
    });
  }
}

std::vector<std::string> kernels_of_gat() {
  std::vector<std::string> names = kernels_without_terms();
  std::erase_if(names, [](const std::string& name) {
    for (const AttentionForm form : forms_of_any(name)) {
      if (form == AttentionForm::gat) return false;
    }
    return true;
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, GatTerms, ::testing::ValuesIn(kernels_of_gat()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::test
