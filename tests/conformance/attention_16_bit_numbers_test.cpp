// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/narrow_attention.hpp"
#include "support/odd_graphs.hpp"
#include "support/small_weights.hpp"
#include "tessera/graph/build.hpp"

/// Attention on windows in 16 bits: terms, scores and features of any size.
namespace tessera::test {
namespace {

class NarrowAttentionNumbers : public AttentionKernelTest {};

/// The first row uses columns 0 to 63, the second one the next 64.
Graph two_rows_of_64() {
  std::vector<VertexId> columns(128);
  std::iota(columns.begin(), columns.end(), 0);
  return Graph(2, 128, SharedArray<EdgeOffset>(std::vector<EdgeOffset>{0, 64, 128}),
               SharedArray<VertexId>(std::move(columns)));
}

/// Sources whose terms lie so far apart that no factor per source holds them all, beside some that
/// lie close together; from `first` on, so that a window may begin without them.
template <class T>
void check_spread_terms(const std::string& kernel, const Heads& heads, std::int64_t first) {
  if (!takes<T>(kernel, AttentionForm::gat, heads.count, heads.width)) return;
  const Graph graph = testing::random_graph(200, 300, 6000, 21, false);
  for (const float spread : {0.0f, 3.0f, 30.0f, 300.0f, 3000.0f}) {
    // Beyond that gradients are below the smallest fp32 numbers.
    if ((sizeof(T) == 4 || heads.width > 8) && spread > 30) break;
    SCOPED_TRACE(name_of(heads) + ", spread " + std::to_string(spread) + " from " +
                 std::to_string(first));
    AttentionCase<T> run(graph, options_of(kernel, AttentionForm::gat, heads.count, heads.width, 0),
                         2100);
    for (std::int64_t j = first; j < run.source.rows(); ++j) {
      for (std::int64_t h = 0; h < heads.count; h += 2) {
        const float term = spread * static_cast<float>(j % 7 - 3) / 3;
        run.source(j, h) = static_cast<T>(static_cast<float>(run.source(j, h)) + term);
      }
    }
    run.run_all();
    expect_matches_reference(run);
  }
}

TEST_P(NarrowAttentionNumbers, TermsFarApart) {
  for_instruction_sets([](const std::string& kernel) {
    for (const Heads& heads : {Heads{8, 8}, Heads{2, 64}}) {
      for (const std::int64_t first : {0, 130}) {
        check_spread_terms<float>(kernel, heads, first);
        check_spread_terms<Bfloat16>(kernel, heads, first);
        if (!on_cpu(kernel)) check_spread_terms<Float16>(kernel, heads, first);
      }
    }
  });
}

/// Rows of one window whose terms lie far apart, though those of every row and tile are close.
template <class T>
void check_rows_far_apart(const std::string& kernel, std::int64_t width) {
  if (!takes<T>(kernel, AttentionForm::gat, 2, width)) return;
  const Graph graph = two_rows_of_64();
  for (const float term : {-150.0f, 60.0f, 150.0f}) {
    SCOPED_TRACE("width " + std::to_string(width) + ", term " + std::to_string(term));
    AttentionCase<T> run(graph, options_of(kernel, AttentionForm::gat, 2, width, 0), 2120);
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 2; ++i) run.target(i, h) = static_cast<T>(0.0f);
      for (std::int64_t j = 0; j < 128; ++j) {
        run.source(j, h) = static_cast<T>(j < 64 ? 0.5f : term);
      }
    }
    run.run_all();
    expect_matches_reference(run);
  }
}

TEST_P(NarrowAttentionNumbers, RowsFarApart) {
  for_instruction_sets([](const std::string& kernel) {
    for (const std::int64_t width : {8, 32, 64}) {
      check_rows_far_apart<float>(kernel, width);
      check_rows_far_apart<Bfloat16>(kernel, width);
      if (!on_cpu(kernel)) check_rows_far_apart<Float16>(kernel, width);
    }
  });
}

/// Whole windows of vertices without an edge, whose terms are of any size: nothing comes of them.
template <class T>
void check_extreme_terms_without_edges(const std::string& kernel, const Heads& heads) {
  if (!takes<T>(kernel, AttentionForm::gat, heads.count, heads.width)) return;
  constexpr VertexId with_edges = 70, all = 300;
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  for (VertexId row = 0; row < all; ++row) {
    for (VertexId column = row % 3; row < with_edges && column < with_edges; column += 5) {
      columns.push_back(column);
    }
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  const Graph graph(all, all, SharedArray<EdgeOffset>(std::move(offsets)),
                    SharedArray<VertexId>(std::move(columns)));
  SCOPED_TRACE(name_of(heads));
  AttentionCase<T> run(graph, options_of(kernel, AttentionForm::gat, heads.count, heads.width, 0),
                       2140);
  for (Matrix<T>* matrix : {&run.target, &run.source}) {
    for (std::int64_t i = with_edges; i < all; ++i) {
      for (std::int64_t h = 0; h < heads.count; ++h) {
        (*matrix)(i, h) = static_cast<T>((i + h) % 2 == 0 ? 1500.0f : -1500.0f);
      }
    }
  }
  run.run_all();
  expect_matches_reference(run);
}

TEST_P(NarrowAttentionNumbers, ExtremeTermsWithoutEdges) {
  for_instruction_sets([](const std::string& kernel) {
    for (const Heads& heads : {Heads{8, 8}, Heads{4, 16}, Heads{9, 8}, Heads{1, 64}}) {
      check_extreme_terms_without_edges<float>(kernel, heads);
      check_extreme_terms_without_edges<Bfloat16>(kernel, heads);
      if (!on_cpu(kernel)) check_extreme_terms_without_edges<Float16>(kernel, heads);
    }
  });
}

/// The same weights for every row of a hub's window and more pieces than one: rows without an edge
/// in some pieces, rows with all of them.
template <class T>
void check_cut_windows(const std::string& kernel, const Heads& heads) {
  if (!takes<T>(kernel, AttentionForm::gat, heads.count, heads.width)) return;
  const Graph graph = testing::star_graph(20000);
  for (const float term : {-100.0f, -20.0f, 0.0f, 20.0f, 100.0f}) {
    // Beyond that gradients are below the smallest fp32 numbers.
    if (sizeof(T) == 4 && std::abs(term) > 30) continue;
    SCOPED_TRACE(name_of(heads) + ", term " + std::to_string(term));
    AttentionCase<T> run(graph, options_of(kernel, AttentionForm::gat, heads.count, heads.width, 0),
                         2150);
    for (std::int64_t j = 0; j < run.source.rows(); ++j) {
      run.source(j, 1) = static_cast<T>(j < 10000 ? term : -term);
    }
    run.run_all();
    expect_matches_reference(run);
  }
}

TEST_P(NarrowAttentionNumbers, CutWindows) {
  for_instruction_sets([](const std::string& kernel) {
    for (const Heads& heads : {Heads{4, 8}, Heads{9, 8}, Heads{3, 32}, Heads{2, 64}}) {
      check_cut_windows<float>(kernel, heads);
      check_cut_windows<Bfloat16>(kernel, heads);
    }
  });
}

/// The same for dot products: bases of pieces lie far apart.
template <class T>
void check_cut_dots(const std::string& kernel, std::int64_t width) {
  if (!takes<T>(kernel, AttentionForm::dot, 2, width)) return;
  const Graph graph = testing::star_graph(4000);
  for (const float size : {1.0f, 8.0f}) {
    SCOPED_TRACE("width " + std::to_string(width) + ", size " + std::to_string(size));
    AttentionCase<T> run(graph, options_of(kernel, AttentionForm::dot, 2, width, 0), 2160);
    for (std::int64_t j = 0; j < 2000; ++j) {
      for (std::int64_t f = 0; f < width; ++f) {
        run.source(j, f) = static_cast<T>(static_cast<float>(run.source(j, f)) * size);
      }
    }
    run.run_all();
    expect_matches_reference(run);
  }
}

TEST_P(NarrowAttentionNumbers, CutWindowsOfDotProducts) {
  for_instruction_sets([](const std::string& kernel) {
    for (const std::int64_t width : {8, 64, 128}) check_cut_dots<Bfloat16>(kernel, width);
    if (!on_cpu(kernel)) check_cut_dots<Float16>(kernel, 64);
  });
}

/// Rows use the columns of their own parity alone. Scores with the others are far larger, or with a
/// minus far smaller, and count for nothing.
template <class T>
void check_scores_without_edges(const std::string& kernel, std::int64_t width) {
  if (!takes<T>(kernel, AttentionForm::dot, 1, width)) return;
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  for (VertexId row = 0; row < 70; ++row) {
    for (VertexId column = row % 2; column < 150; column += 2) columns.push_back(column);
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  const Graph graph(70, 150, SharedArray<EdgeOffset>(std::move(offsets)),
                    SharedArray<VertexId>(std::move(columns)));
  for (const double scale : {1.0, -1.0}) {
    SCOPED_TRACE("width " + std::to_string(width) + ", scale " + std::to_string(scale));
    AttentionCase<T> run(graph, options_of(kernel, AttentionForm::dot, 1, width, 0), 2170);
    run.scale = scale;
    for (std::int64_t i = 0; i < 70; ++i)
      run.target(i, 0) = static_cast<T>(i % 2 == 0 ? 12.0f : -12.0f);
    for (std::int64_t j = 0; j < 150; ++j)
      run.source(j, 0) = static_cast<T>(j % 2 == 0 ? -12.0f : 12.0f);
    for (Matrix<T>* matrix : {&run.target, &run.source}) {
      for (std::int64_t i = 0; i < matrix->rows(); ++i) {
        for (std::int64_t f = 1; f < width; ++f) {
          (*matrix)(i, f) = static_cast<T>(static_cast<float>((*matrix)(i, f)) / 8);
        }
      }
    }
    run.run_all();
    expect_matches_reference(run);
  }
}

TEST_P(NarrowAttentionNumbers, ScoresWithoutEdges) {
  for_instruction_sets([](const std::string& kernel) {
    for (const std::int64_t width : {8, 64, 128})
      check_scores_without_edges<Bfloat16>(kernel, width);
    if (!on_cpu(kernel)) check_scores_without_edges<Float16>(kernel, 64);
  });
}

template <class T>
void check_slopes(const std::string& kernel, const Heads& heads) {
  if (!takes<T>(kernel, AttentionForm::gat, heads.count, heads.width)) return;
  const Graph graph = testing::random_graph(70, 90, 900, 22, false);
  for (const double slope : {0.0, 0.2, 1.0, 1.5, -0.5}) {
    SCOPED_TRACE(name_of(heads) + ", slope " + std::to_string(slope));
    AttentionOptions options = options_of(kernel, AttentionForm::gat, heads.count, heads.width, 0);
    options.negative_slope = slope;
    options.precision = ops::PrecisionOf<T>::value;
    if (!supports(kernel, options)) {
      testing::note_declined("slope " + std::to_string(slope));
      continue;
    }
    AttentionCase<T> run(graph, options, 2200);
    run.run_all();
    expect_matches_reference(run);
  }
}

TEST_P(NarrowAttentionNumbers, AnySlope) {
  for_instruction_sets([](const std::string& kernel) {
    for (const Heads& heads : {Heads{4, 16}, Heads{8, 8}, Heads{2, 64}}) {
      check_slopes<float>(kernel, heads);
      check_slopes<Bfloat16>(kernel, heads);
    }
  });
}

TEST_P(NarrowAttentionNumbers, LargeScoresDoNotOverflow) {
  const Graph graph = testing::random_graph(80, 80, 1600, 23, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const AttentionForm form : {AttentionForm::gat, AttentionForm::dot}) {
      if (!takes<Bfloat16>(kernel, form, 2, 64)) continue;
      for (const float size : {1e4f, -1e4f, 80.0f}) {
        SCOPED_TRACE(std::string(to_string(form)) + ", size " + std::to_string(size));
        AttentionCase<Bfloat16> run(graph, options_of(kernel, form, 2, 64, 0), 2300);
        for (Bfloat16& score : run.target.span()) {
          const auto value = static_cast<float>(score);
          score = static_cast<Bfloat16>(form == AttentionForm::gat ? value + size : value * size);
        }
        run.run_all();
        for (const Bfloat16 element : run.output.span()) {
          ASSERT_TRUE(std::isfinite(static_cast<float>(element)));
        }
      }
    }
  });
}

/// Scores so far apart that one weight of a row is all there is, at the limits of fp16.
TEST_P(NarrowAttentionNumbers, LargeDotProductsOfFp16DoNotOverflow) {
  if (on_cpu(GetParam())) GTEST_SKIP() << "fp16 exists on GPUs only";
  const Graph graph = testing::random_graph(80, 80, 1600, 29, false);
  if (!takes<Float16>(GetParam(), AttentionForm::dot, 2, 64)) return;
  for (const float size : {10.0f, 100.0f, 1000.0f, 8000.0f}) {
    SCOPED_TRACE(size);
    AttentionCase<Float16> run(graph, options_of(GetParam(), AttentionForm::dot, 2, 64, 0), 2350);
    for (Matrix<Float16>* matrix : {&run.target, &run.source}) {
      for (Float16& score : matrix->span()) {
        score = static_cast<Float16>(static_cast<float>(score) * size);
      }
    }
    run.run_all();
    for (const Float16 element : run.output.span()) {
      ASSERT_TRUE(std::isfinite(static_cast<float>(element)));
    }
  }
}

TEST_P(NarrowAttentionNumbers, ManySmallWeights) {
  for_instruction_sets([](const std::string& kernel) {
    for (const std::int64_t width : {8, 64}) {
      check_small_weights<Bfloat16>(kernel, AttentionForm::dot, width);
      if (on_cpu(kernel)) continue;
      check_small_weights<Float16>(kernel, AttentionForm::dot, width);
      check_small_weights<Float16>(kernel, AttentionForm::gat, width);
    }
  });
}

TEST_P(NarrowAttentionNumbers, RowsOfMinusInfinityAreNotANumber) {
  const Graph graph = testing::star_graph(200);
  for_instruction_sets([&](const std::string& kernel) {
    for (const std::int64_t width : {8, 64}) {
      if (!takes<Bfloat16>(kernel, AttentionForm::gat, 2, width)) continue;
      AttentionCase<Bfloat16> run(graph, options_of(kernel, AttentionForm::gat, 2, width, 0), 2400);
      for (std::int64_t j = 1; j <= 200; ++j) {
        run.source(j, 1) = static_cast<Bfloat16>(-std::numeric_limits<float>::infinity());
      }
      run.run_all();
      for (std::int64_t f = 0; f < 2 * width; ++f) {
        EXPECT_EQ(std::isnan(static_cast<float>(run.output(0, f))), f >= width) << f;
      }
    }
  });
}

/// Features that fp16 does not hold, in whole windows and from the middle of one on.
TEST_P(NarrowAttentionNumbers, FeaturesOfAnySize) {
  const Graph graph = testing::random_graph(200, 300, 6000, 25, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const Heads& heads : {Heads{8, 8}, Heads{1, 64}}) {
      if (!takes<Bfloat16>(kernel, AttentionForm::gat, heads.count, heads.width)) continue;
      for (const std::int64_t first : {0, 130}) {
        for (const float size : {0.0f, 1e-20f, 1e-6f, 300.0f, 2000.0f, 1e20f}) {
          SCOPED_TRACE(name_of(heads) + ", size " + std::to_string(size) + " from " +
                       std::to_string(first));
          AttentionCase<Bfloat16> run(
              graph, options_of(kernel, AttentionForm::gat, heads.count, heads.width, 0), 2600);
          for (std::int64_t j = first; j < run.value.rows(); ++j) {
            for (std::int64_t f = 0; f < run.value.cols(); ++f) {
              run.value(j, f) = static_cast<Bfloat16>(static_cast<float>(run.value(j, f)) * size);
            }
          }
          run.run_all();
          expect_matches_reference(run);
        }
      }
    }
  });
}

/// The same of the gradient: all of it, or of the rows from the middle of a window on, which then
/// are the largest or the smallest there are.
TEST_P(NarrowAttentionNumbers, GradientsOfAnySize) {
  const Graph graph = testing::random_graph(300, 200, 6000, 26, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const Heads& heads : {Heads{8, 8}, Heads{5, 16}, Heads{1, 64}}) {
      if (!takes<Bfloat16>(kernel, AttentionForm::gat, heads.count, heads.width)) continue;
      for (const std::int64_t first : {0, 130}) {
        for (const float size : {0.0f, 1e-20f, 1e-6f, 1e6f, 1e20f}) {
          SCOPED_TRACE(name_of(heads) + ", size " + std::to_string(size) + " from " +
                       std::to_string(first));
          AttentionCase<Bfloat16> run(
              graph, options_of(kernel, AttentionForm::gat, heads.count, heads.width, 0), 2620);
          for (std::int64_t i = first; i < run.grad_output.rows(); ++i) {
            for (std::int64_t f = 0; f < run.grad_output.cols(); ++f) {
              run.grad_output(i, f) =
                  static_cast<Bfloat16>(static_cast<float>(run.grad_output(i, f)) * size);
            }
          }
          run.run_all();
          expect_matches_reference(run);
        }
      }
    }
  });
}

/// More windows than a GPU holds at once, some of which fp16 does not hold, among others.
TEST_P(NarrowAttentionNumbers, FeaturesOfOddSizeInSomeOfManyWindows) {
  const Graph graph = testing::random_graph(60000, 300, 120000, 27, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const Heads& heads : {Heads{4, 8}, Heads{8, 8}, Heads{1, 64}}) {
      if (!takes<Bfloat16>(kernel, AttentionForm::gat, heads.count, heads.width)) continue;
      SCOPED_TRACE(name_of(heads));
      AttentionCase<Bfloat16> run(
          graph, options_of(kernel, AttentionForm::gat, heads.count, heads.width, 0), 2650);
      for (std::int64_t f = 0; f < run.value.cols(); ++f) {
        run.value(299, f) = static_cast<Bfloat16>(f % 2 == 0 ? 1e-9f : 1e9f);
      }
      run.run_all();
      expect_matches_reference(run);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, NarrowAttentionNumbers, ::testing::ValuesIn(narrow_kernels()),
                         testing::kernel_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NarrowAttentionNumbers);

}  // namespace
}  // namespace tessera::test
