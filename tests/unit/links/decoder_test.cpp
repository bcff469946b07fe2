// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/decoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/expect_error.hpp"
#include "support/finite_differences.hpp"
#include "support/random_coo.hpp"

namespace tessera::links {
namespace {

using testing::expect_error;
using testing::gradient_mismatch;
using testing::ThreadScope;

constexpr VertexId sources = 11, targets = 14, relations = 3;
constexpr std::int64_t width = 19;

template <class T>
Matrix<T> drawn(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix<T> result(rows, cols);
  const Random random(seed);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data()[i] = static_cast<T>(random.normal(static_cast<std::uint64_t>(i)));
  }
  return result;
}

/// Pairs in no order, some of them twice; with a relation each.
struct Triples {
  Pairs pairs;
  std::vector<VertexId> of;
};
Triples drawn_triples(int count, std::uint64_t seed) {
  const testing::Coo coo = testing::random_coo(targets, sources, count, seed);
  Triples triples{{coo.cols, coo.rows}, {}};
  const Random random(seed + 1);
  for (int k = 0; k < count; ++k) {
    triples.of.push_back(
        static_cast<VertexId>(random.below(static_cast<std::uint64_t>(k), relations)));
  }
  return triples;
}

/// A decoder beside embeddings for all that it scores. Without relations it is a dot product.
template <class T>
struct Scene {
  Scene(int count, bool has_relations, Precision precision)
      : triples(drawn_triples(count, 3)),
        dot(triples.pairs, sources, targets, {width, precision, true}),
        distmult(triples.pairs, triples.of, sources, targets, relations, {width, precision, true}),
        is_distmult(has_relations) {}

  std::vector<T> scores() {
    std::vector<T> result(triples.of.size());
    if (is_distmult) {
      distmult.score<T>(source, relation, target, result);
    } else {
      dot.score<T>(source, target, result);
    }
    return result;
  }

  void backward(std::span<const T> gradient) {
    if (is_distmult) {
      distmult.backward<T>(source, relation, target, gradient, grad_source, grad_relation,
                           grad_target);
    } else {
      dot.backward<T>(source, target, gradient, grad_source, grad_target);
    }
  }

  double expected(std::size_t k) const {
    double sum = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      const auto factor = is_distmult ? double(relation(triples.of[k], j)) : 1.0;
      sum += factor * double(source(triples.pairs.sources[k], j)) *
             double(target(triples.pairs.targets[k], j));
    }
    return sum;
  }

  Triples triples;
  DotDecoder dot;
  DistMultDecoder distmult;
  bool is_distmult;
  Matrix<T> source = drawn<T>(sources, width, 1), target = drawn<T>(targets, width, 2),
            relation = drawn<T>(relations, width, 3);
  Matrix<T> grad_source = drawn<T>(sources, width, 4), grad_target = drawn<T>(targets, width, 5),
            grad_relation = drawn<T>(relations, width, 6);
};

template <class T>
void expect_scores(Precision precision, double tolerance) {
  for (const bool has_relations : {false, true}) {
    for (const int count : {0, 1, 200}) {
      Scene<T> scene(count, has_relations, precision);
      const auto scores = scene.scores();
      for (std::size_t k = 0; k < scores.size(); ++k) {
        EXPECT_NEAR(double(scores[k]), scene.expected(k), tolerance);
      }
    }
  }
}

TEST(Decoders, ScorePairsInTheirOrder) {
  expect_scores<double>(Precision::fp64, 1e-12);
  expect_scores<float>(Precision::fp32, 1e-4);
}

TEST(Decoders, GradientsAreThoseOfDifferences) {
  for (const bool has_relations : {false, true}) {
    Scene<double> scene(60, has_relations, Precision::fp64);
    const Matrix<double> weights = drawn<double>(60, 1, 9);
    scene.backward(weights.span());
    const auto loss = [&] {
      const auto scores = scene.scores();
      double sum = 0;
      for (std::size_t k = 0; k < scores.size(); ++k) sum += scores[k] * weights.data()[k];
      return sum;
    };
    EXPECT_EQ(gradient_mismatch(scene.source, scene.grad_source, loss), "");
    EXPECT_EQ(gradient_mismatch(scene.target, scene.grad_target, loss), "");
    if (has_relations) {
      EXPECT_EQ(gradient_mismatch(scene.relation, scene.grad_relation, loss), "");
    }
  }
}

TEST(Decoders, NoPairsHaveNoGradients) {
  for (const bool has_relations : {false, true}) {
    Scene<double> scene(0, has_relations, Precision::fp64);
    scene.backward({});
    const auto is_zero = [](const Matrix<double>& gradient) {
      return std::ranges::all_of(gradient.span(), [](double g) { return g == 0; });
    };
    EXPECT_TRUE(is_zero(scene.grad_source) && is_zero(scene.grad_target));
    EXPECT_TRUE(!has_relations || is_zero(scene.grad_relation));
  }
}

TEST(Decoders, WithoutRelationsAllPairsHaveTheFirst) {
  Scene<double> scene(80, true, Precision::fp64);
  DistMultDecoder one(scene.triples.pairs, {}, sources, targets, 1, {width, Precision::fp64});
  std::ranges::fill(scene.triples.of, 0);
  std::vector<double> scores(80);
  one.score<double>(scene.source, MatrixView<const double>(scene.relation.data(), 1, width),
                    scene.target, scores);
  for (std::size_t k = 0; k < 80; ++k) EXPECT_NEAR(scores[k], scene.expected(k), 1e-12);
}

TEST(Decoders, TheSameBitsForAnyNumberOfThreads) {
  const auto run = [](int threads) {
    const ThreadScope scope(threads);
    Scene<float> scene(3000, true, Precision::fp32);
    std::vector<float> all = scene.scores();
    scene.backward(std::vector<float>(all));
    for (const auto* gradient : {&scene.grad_source, &scene.grad_target, &scene.grad_relation}) {
      all.insert(all.end(), gradient->span().begin(), gradient->span().end());
    }
    return all;
  };
  EXPECT_EQ(run(1), run(16));
}

TEST(Decoders, RefuseWhatDoesNotFit) {
  const DecoderOptions options{.features = 4};
  const auto dot = [&](const Pairs& pairs) { DotDecoder(pairs, 3, 5, options); };
  expect_error(ErrorCode::invalid_argument, {"pair 1 has source 3, of 3"}, [&] {
    dot({{0, 3}, {4, 4}});
  });
  expect_error(ErrorCode::invalid_argument, {"pair 0 has target -1, of 5"}, [&] {
    dot({{0}, {-1}});
  });
  expect_error(ErrorCode::invalid_argument, {"1 targets for 2 pairs"}, [&] { dot({{0, 1}, {2}}); });
  expect_error(ErrorCode::invalid_argument, {"embeddings of 0 numbers"},
               [] { DotDecoder({}, 3, 5, {}); });
  expect_error(ErrorCode::invalid_argument, {"scores in bf16"},
               [] { DotDecoder({}, 3, 5, {.features = 4, .precision = Precision::bf16}); });
  const std::vector<VertexId> odd{2}, many{0, 0};
  const Pairs pair{{0}, {0}};
  expect_error(ErrorCode::invalid_argument, {"pair 0 has relation 2, of 2"},
               [&] { DistMultDecoder(pair, odd, 3, 5, 2, options); });
  expect_error(ErrorCode::invalid_argument, {"2 relations for 1 pairs"},
               [&] { DistMultDecoder(pair, many, 3, 5, 2, options); });
  expect_error(ErrorCode::invalid_argument, {"no relations"},
               [&] { DistMultDecoder(pair, {}, 3, 5, 0, options); });
}

TEST(Decoders, RefuseEmbeddingsThatDoNotFit) {
  Scene<double> scene(5, true, Precision::fp64);
  std::vector<double> scores(5), few(4);
  expect_error(ErrorCode::invalid_argument, {"scores", "4 x 1", "5 x 1"},
               [&] { scene.dot.score<double>(scene.source, scene.target, few); });
  expect_error(ErrorCode::invalid_argument, {"14 x 19", "11 x 19"},
               [&] { scene.dot.score<double>(scene.target, scene.target, scores); });
  expect_error(ErrorCode::invalid_argument, {"relations", "11 x 19", "3 x 19"}, [&] {
    scene.distmult.score<double>(scene.source, scene.source, scene.target, scores);
  });
  const Matrix<float> narrow(sources, width, 1.0f);
  std::vector<float> narrow_scores(5);
  expect_error(ErrorCode::invalid_argument, {"fp32", "fp64"}, [&] {
    scene.dot.score<float>(narrow, Matrix<float>(targets, width, 1.0f), narrow_scores);
  });
  DotDecoder forward(scene.triples.pairs, sources, targets, {width, Precision::fp64});
  expect_error(ErrorCode::invalid_argument, {"backward"}, [&] {
    forward.backward<double>(scene.source, scene.target, scores, scene.grad_source,
                             scene.grad_target);
  });
}

}  // namespace
}  // namespace tessera::links
