// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/attention_kernels.hpp"
#include "support/odd_graphs.hpp"
#include "support/small_weights.hpp"
#include "tessera/graph/build.hpp"

/// Attention on windows: every kernel that takes heads of eight 16-bit features, or dot products of
/// 64, with narrow heads and wide ones.
namespace tessera::test {
namespace {

template <class T>
bool takes(const std::string& kernel, AttentionForm form, std::int64_t heads, std::int64_t width) {
  AttentionOptions options = options_of(kernel, form, heads, width, 0);
  options.precision = ops::PrecisionOf<T>::value;
  return supports(kernel, options);
}

std::vector<std::string> narrow_kernels() {
  std::vector<std::string> names = testing::kernel_names("attention");
  std::erase_if(names, [](const std::string& name) {
    return !takes<Bfloat16>(name, AttentionForm::gat, 8, 8) &&
           !takes<Bfloat16>(name, AttentionForm::dot, 8, 8) &&
           !takes<Bfloat16>(name, AttentionForm::dot, 1, 64);
  });
  return names;
}

class NarrowAttentionKernels : public AttentionKernelTest {};

struct Heads {
  std::int64_t count;
  std::int64_t width;
};
std::string name_of(const Heads& heads) {
  return std::to_string(heads.count) + " heads of " + std::to_string(heads.width);
}

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

TEST_P(NarrowAttentionKernels, TermsFarApart) {
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

TEST_P(NarrowAttentionKernels, RowsFarApart) {
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

TEST_P(NarrowAttentionKernels, ExtremeTermsWithoutEdges) {
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

TEST_P(NarrowAttentionKernels, CutWindows) {
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

TEST_P(NarrowAttentionKernels, CutWindowsOfDotProducts) {
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

TEST_P(NarrowAttentionKernels, ScoresWithoutEdges) {
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

TEST_P(NarrowAttentionKernels, AnySlope) {
  for_instruction_sets([](const std::string& kernel) {
    for (const Heads& heads : {Heads{4, 16}, Heads{8, 8}, Heads{2, 64}}) {
      check_slopes<float>(kernel, heads);
      check_slopes<Bfloat16>(kernel, heads);
    }
  });
}

TEST_P(NarrowAttentionKernels, LargeScoresDoNotOverflow) {
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
TEST_P(NarrowAttentionKernels, LargeDotProductsOfFp16DoNotOverflow) {
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

TEST_P(NarrowAttentionKernels, ManySmallWeights) {
  for_instruction_sets([](const std::string& kernel) {
    for (const std::int64_t width : {8, 64}) {
      check_small_weights<Bfloat16>(kernel, AttentionForm::dot, width);
      if (on_cpu(kernel)) continue;
      check_small_weights<Float16>(kernel, AttentionForm::dot, width);
      check_small_weights<Float16>(kernel, AttentionForm::gat, width);
    }
  });
}

TEST_P(NarrowAttentionKernels, RowsOfMinusInfinityAreNotANumber) {
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
TEST_P(NarrowAttentionKernels, FeaturesOfAnySize) {
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
TEST_P(NarrowAttentionKernels, GradientsOfAnySize) {
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
TEST_P(NarrowAttentionKernels, FeaturesOfOddSizeInSomeOfManyWindows) {
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

/// Some long windows of 16 rows, which as many warps have enough to do with, and many of few edges
/// or none, of which each of the others takes more than 32 one after another. `other_way`: windows
/// of columns.
Graph long_and_short_windows(VertexId num_long, bool other_way) {
  constexpr VertexId num_others = 4096, long_row = 171, num_short = 1000;
  const VertexId num_rows = (num_long + num_short) * 16 - 5;
  std::vector<VertexId> own, others;
  for (VertexId row = 0; row < num_rows; ++row) {
    const VertexId window = row / 16;
    const VertexId degree = window < num_long ? long_row : window % 9 == 4 ? 0 : row % 2;
    const VertexId first = window < num_long ? row % 16 * long_row + window * 37 : row * 7;
    for (VertexId k = 0; k < degree; ++k) {
      own.push_back(row);
      others.push_back((first + k) % num_others);
    }
  }
  return other_way ? from_coo(num_others, num_rows, others, own)
                   : from_coo(num_rows, num_others, own, others);
}

/// Among them windows for which factors do not serve.
TEST_P(NarrowAttentionKernels, ManyShortWindowsOfAWarp) {
  if (GetParam() != "attention/cuda/short") GTEST_SKIP() << "no windows of 16 rows";
  const std::string& kernel = GetParam();
  for (const bool other_way : {false, true}) {
    SCOPED_TRACE(other_way ? "columns" : "rows");
    AttentionCase<Bfloat16> run(long_and_short_windows(other_way ? 170 : 236, other_way),
                                options_of(kernel, AttentionForm::gat, 8, 64, 0), 2680);
    for (std::int64_t j = 3; j < run.source.rows(); j += 80) {
      for (std::int64_t h = 0; h < 8; h += 2) {
        run.source(j, h) = static_cast<Bfloat16>(static_cast<float>(run.source(j, h)) + 30);
      }
    }
    run.run_all();
    expect_matches_reference(run);
  }
}

/// Sums that the forward run keeps spare the backward run a sweep where there is a kernel for it;
/// without them, or where they would lie on no boundary of 16 bytes, gradients are the same. Over
/// whole windows and cut ones, by factors and by exponentials.
TEST_P(NarrowAttentionKernels, GradientsOfWideHeadsWhateverWasKept) {
  const std::string& kernel = GetParam();
  if (!takes<Bfloat16>(kernel, AttentionForm::gat, 3, 64))
    GTEST_SKIP() << "no heads of 64; attention/cuda/short runs it";
  enum class Kept { all, none, beside_boundaries };
  for (const Kept kept : {Kept::all, Kept::none, Kept::beside_boundaries}) {
    for (const float shift : {0.0f, 9.0f}) {
      for (const Graph& graph :
           {testing::random_graph(301, 260, 5000, 41, false), long_and_short_windows(20, false)}) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(kept) << ", " << shift);
        AttentionCase<Bfloat16> run(graph, options_of(kernel, AttentionForm::gat, 3, 64, 0), 2690);
        for (Bfloat16& term : run.target.span()) {
          term = static_cast<Bfloat16>(static_cast<float>(term) + shift);
        }
        PlacedAttention<Bfloat16> placed(run);
        if (kept != Kept::all && placed.host_kept.size() == 0) continue;
        placed.keeps = kept == Kept::all;
        Matrix<float> room(1, placed.host_kept.size() + 1);
        PlacedMatrix<float> placed_room(room, placed.device);
        ops::Operand beside = placed_room.view();
        beside.data = static_cast<float*>(beside.data) + 1;
        --beside.cols;
        if (kept == Kept::beside_boundaries) {
          ops::run_keeping(placed.plan, placed.inputs(), placed.outputs(), beside);
          ops::run_backward_kept(placed.plan, placed.inputs(), placed.output.view(),
                                 placed.log_sum.view(), beside, placed.grad_output.view(),
                                 placed.gradients());
        } else {
          placed.run_forward();
          placed.run_backward(placed.gradients());
        }
        placed.fetch();
        expect_matches_reference(run);
      }
    }
  }
}

/// A graph without the edges from one vertex to rows from `first` on.
Graph without_edges(const Graph& graph, VertexId source, VertexId first) {
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (const VertexId column : graph.neighbours(row)) {
      if (column != source || row < first) columns.push_back(column);
    }
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  return Graph(graph.num_rows(), graph.num_cols(), SharedArray<EdgeOffset>(std::move(offsets)),
               SharedArray<VertexId>(std::move(columns)));
}

/// Rows before `first_finite` may be other than finite, but where they are finite they are right.
void expect_no_wrong_number(const Matrix<Bfloat16>& computed, const Matrix<double>& expected,
                            std::int64_t first_finite, const char* what) {
  for (std::int64_t i = 0; i < computed.rows(); ++i) {
    for (std::int64_t f = 0; f < computed.cols(); ++f) {
      const auto found = static_cast<float>(computed(i, f));
      const auto right = static_cast<float>(expected(i, f));
      if (!std::isfinite(found) && i < first_finite) continue;
      ASSERT_NEAR(found, right, 0.02f * (1 + std::abs(right))) << what << " " << i << ", " << f;
    }
  }
}

/// A number that is not finite may turn other rows of its window of 64 into NaN, but none into a
/// wrong number, and no row of windows that do not use it.
void check_non_finite(const std::string& kernel, AttentionForm form, const Heads& heads) {
  constexpr VertexId odd_vertex = 150, first_without = 128;
  const Graph graph =
      without_edges(testing::random_graph(200, 300, 3000, 26, false), odd_vertex, first_without);
  if (!takes<Bfloat16>(kernel, form, heads.count, heads.width)) return;
  for (const float odd :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const bool of_value : {true, false}) {
      SCOPED_TRACE(std::string(to_string(form)) + ", " + name_of(heads) + ", " +
                   std::to_string(odd) + (of_value ? " of V" : " of sources"));
      AttentionCase<Bfloat16> run(graph, options_of(kernel, form, heads.count, heads.width, 0),
                                  2700);
      (of_value ? run.value(odd_vertex, 9) : run.source(odd_vertex, 1)) =
          static_cast<Bfloat16>(odd);
      run.run_all();
      const AttentionCase<double> expected = reference_of(run);
      expect_no_wrong_number(run.output, expected.output, first_without, "output");
      expect_no_wrong_number(run.grad_target, expected.grad_target, first_without, "target");
      // Targets of any window may use a source.
      const std::int64_t all = graph.num_cols();
      expect_no_wrong_number(run.grad_source, expected.grad_source, all, "source");
      expect_no_wrong_number(run.grad_value, expected.grad_value, all, "value");
    }
  }
}

TEST_P(NarrowAttentionKernels, NonFiniteFeaturesAndTermsMakeNoWrongNumber) {
  for_instruction_sets([](const std::string& kernel) {
    for (const AttentionForm form : {AttentionForm::gat, AttentionForm::dot}) {
      check_non_finite(kernel, form, {4, 8});
      check_non_finite(kernel, form, {2, 32});
      check_non_finite(kernel, form, {2, 64});
    }
  });
}

template <class T>
void check_same_bits_twice(const Graph& graph, const AttentionOptions& options) {
  if (!takes<T>(options.kernel, options.form, options.heads, options.features / options.heads)) {
    return;
  }
  SCOPED_TRACE(describe(options));
  AttentionCase<T> once(graph, options, 2500);
  once.run_all();
  expect_matches_reference(once);
  AttentionCase<T> again(graph, once.options, 2500);
  again.run_all();
  EXPECT_TRUE(same_bits(once.output, again.output));
  EXPECT_TRUE(same_bits(once.log_sum, again.log_sum));
  EXPECT_TRUE(same_bits(once.grad_target, again.grad_target));
  EXPECT_TRUE(same_bits(once.grad_source, again.grad_source));
  EXPECT_TRUE(same_bits(once.grad_value, again.grad_value));
}

TEST_P(NarrowAttentionKernels, WidthsOfHeadsAndSameBitsTwice) {
  const Graph graph = testing::random_graph(300, 260, 5000, 24, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const std::int64_t width : {8, 16, 32, 64, 128}) {
      for (const std::int64_t heads : {1, 3, 5, 8}) {
        for (const AttentionForm form : {AttentionForm::gat, AttentionForm::dot}) {
          const AttentionOptions options = options_of(kernel, form, heads, width, 0);
          check_same_bits_twice<Bfloat16>(graph, options);
          if (heads == 1) check_same_bits_twice<float>(graph, options);
        }
      }
    }
  });
}

/// Rows and columns without edges, single vertices, hubs: of wide heads.
TEST_P(NarrowAttentionKernels, OddGraphsOfWideHeads) {
  for_instruction_sets([&](const std::string& kernel) {
    if (!takes<Bfloat16>(kernel, AttentionForm::gat, 1, 64)) return;
    for (const testing::NamedGraph& odd : testing::odd_patterns()) {
      SCOPED_TRACE(odd.name);
      check_same_bits_twice<Bfloat16>(odd.graph, options_of(kernel, AttentionForm::gat, 1, 64, 0));
      check_same_bits_twice<float>(odd.graph, options_of(kernel, AttentionForm::gat, 2, 32, 0));
    }
  });
}

void check_each_gradient_alone(const Graph& graph, const AttentionOptions& options) {
  AttentionCase<Bfloat16> all(graph, options, 2800);
  all.run_all();
  expect_matches_reference(all);
  for (int wanted = 0; wanted < 3; ++wanted) {
    SCOPED_TRACE(wanted);
    AttentionCase<Bfloat16> one(graph, options, 2800);
    PlacedAttention<Bfloat16> placed(one);
    placed.run_forward();
    const ops::AttentionGradOutputs whole = placed.gradients();
    ops::AttentionGradOutputs part;
    if (wanted == 0) part.target = whole.target;
    if (wanted == 1) part.source = whole.source;
    if (wanted == 2) part.value = whole.value;
    placed.run_backward(part);
    placed.fetch();
    const auto untouched = AttentionCase<Bfloat16>(graph, options, 2800);
    const auto expect_alone = [&](bool is_wanted, const Matrix<Bfloat16>& found,
                                  const Matrix<Bfloat16>& of_all, const Matrix<Bfloat16>& none) {
      if (is_wanted) {
        EXPECT_LT(largest_difference(found, to_double(of_all)), 0.02);
      } else {
        EXPECT_TRUE(same_bits(found, none));
      }
    };
    expect_alone(wanted == 0, one.grad_target, all.grad_target, untouched.grad_target);
    expect_alone(wanted == 1, one.grad_source, all.grad_source, untouched.grad_source);
    expect_alone(wanted == 2, one.grad_value, all.grad_value, untouched.grad_value);
  }
}

TEST_P(NarrowAttentionKernels, EachGradientOfWideHeadsAlone) {
  const Graph graph = testing::random_graph(90, 150, 2000, 28, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const AttentionForm form : {AttentionForm::gat, AttentionForm::dot}) {
      if (!takes<Bfloat16>(kernel, form, 2, 64)) continue;
      SCOPED_TRACE(to_string(form));
      check_each_gradient_alone(graph, options_of(kernel, form, 2, 64, 0));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, NarrowAttentionKernels, ::testing::ValuesIn(narrow_kernels()),
                         testing::kernel_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NarrowAttentionKernels);

}  // namespace
}  // namespace tessera::test
