// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/top.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "support/random_matrix.hpp"

namespace tessera::links {
namespace {

using testing::expect_error;
using testing::integers;
using testing::random_graph;
using testing::ThreadScope;

constexpr float lowest = -std::numeric_limits<float>::infinity();

Matrix<float> drawn(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix<float> result(rows, cols);
  const Random random(seed);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data()[i] = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
  }
  return result;
}

/// The same by sorting all candidates.
void expect_best(const TopLists& lists, const Matrix<float>& queries,
                 const Matrix<float>& candidates, const Graph* leave_out) {
  for (std::int64_t i = 0; i < queries.rows(); ++i) {
    std::vector<std::pair<float, VertexId>> all;
    for (std::int64_t j = 0; j < candidates.rows(); ++j) {
      const auto row =
          leave_out ? leave_out->neighbours(static_cast<VertexId>(i)) : std::span<const VertexId>{};
      if (std::binary_search(row.begin(), row.end(), j)) continue;
      float score = 0;
      for (std::int64_t k = 0; k < queries.cols(); ++k) score += queries(i, k) * candidates(j, k);
      all.emplace_back(-score, static_cast<VertexId>(j));
    }
    std::sort(all.begin(), all.end());
    all.resize(static_cast<std::size_t>(lists.candidates.cols()), {-lowest, -1});
    for (std::int64_t place = 0; place < lists.candidates.cols(); ++place) {
      EXPECT_EQ(lists.candidates(i, place), all[static_cast<std::size_t>(place)].second);
      EXPECT_EQ(lists.scores(i, place), -all[static_cast<std::size_t>(place)].first);
    }
  }
}

/// From embeddings in memory of a device.
TopLists listed_on(Device device, const Matrix<float>& queries, const Matrix<float>& candidates,
                   TopOptions options) {
  const auto there = [&](const Matrix<float>& rows) {
    Matrix<float> copy(rows.rows(), rows.cols(), default_memory(device));
    copy_bytes(copy.data(), rows.data(), rows.span().size_bytes(), device);
    return copy;
  };
  options.place = device;
  return top_candidates(there(queries), there(candidates), options);
}

/// Small integers: products are exact, and many are tied.
void expect_best_on(Device device, const std::vector<std::int64_t>& counts) {
  using Shape = std::array<int, 3>;
  for (const auto [rows, cols, width] :
       {Shape{37, 90, 5}, Shape{1, 1, 1}, Shape{3, 0, 4}, Shape{0, 9, 4}, Shape{5, 5000, 3},
        Shape{17, 4096, 1}, Shape{4, 7, 0}}) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << cols << ", " << width << " wide");
    const Matrix<float> queries = integers<float>(rows, width, 1);
    const Matrix<float> candidates = integers<float>(cols, width, 2);
    const Graph known = random_graph(rows, cols, 200, 3);
    for (const Graph* leave_out : {static_cast<const Graph*>(nullptr), &known}) {
      for (const std::int64_t count : counts) {
        for (const std::int64_t block : {1, 1 << 16, 1 << 26}) {
          const TopLists lists =
              listed_on(device, queries, candidates,
                        {.count = count, .leave_out = leave_out, .block_bytes = block});
          expect_best(lists, queries, candidates, leave_out);
        }
      }
    }
  }
}

TEST(TopCandidates, AreTheBestOfAllWithTheLowerIdFirst) { expect_best_on({}, {1, 10, 100}); }

TEST(TopCandidates, AreTheBestOfAllOnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  expect_best_on({DeviceKind::cuda, 0}, {1, 10, 32, 33, 100, 1000});
}

TEST(TopCandidates, WhatIsLeftOutMayBeListedTwice) {
  const Matrix<float> query = integers<float>(1, 3, 1), candidates = integers<float>(6, 3, 2);
  const std::vector<VertexId> rows{0, 0, 0, 0}, known{2, 2, 3, 5};
  const Graph leave_out = from_coo(1, 6, rows, known, {}, {.duplicates = Duplicates::keep});
  const TopLists lists = top_candidates(query, candidates, {.count = 6, .leave_out = &leave_out});
  std::vector<VertexId> listed(lists.candidates.row(0), lists.candidates.row(0) + 6);
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(listed, (std::vector<VertexId>{-1, -1, -1, 0, 1, 4}));
}

TEST(TopCandidates, AreTheSameForAnyNumberOfThreads) {
  const Matrix<float> queries = drawn(200, 16, 1), candidates = drawn(5000, 16, 2);
  const auto listed = [&](int threads) {
    const ThreadScope scope(threads);
    return top_candidates(queries, candidates);
  };
  const TopLists one = listed(1), many = listed(16);
  EXPECT_TRUE(std::ranges::equal(one.candidates.span(), many.candidates.span()));
  EXPECT_TRUE(std::ranges::equal(one.scores.span(), many.scores.span()));
}

TEST(TopCandidates, RefusesWhatDoesNotFit) {
  const Matrix<float> queries(2, 3, 1.0f), candidates(4, 3, 1.0f), wide(4, 5, 1.0f);
  expect_error(ErrorCode::invalid_argument, {"queries of 3 numbers, candidates of 5"},
               [&] { top_candidates(queries, wide); });
  expect_error(ErrorCode::invalid_argument, {"0 candidates"},
               [&] { top_candidates(queries, candidates, {.count = 0}); });
  const Graph other = random_graph(3, 4, 2, 1);
  expect_error(ErrorCode::invalid_argument, {"3 rows to leave out for 2 queries"},
               [&] { top_candidates(queries, candidates, {.leave_out = &other}); });
  Matrix<float> odd(4, 3, 1.0f);
  odd(3, 1) = std::numeric_limits<float>::quiet_NaN();
  expect_error(ErrorCode::bad_data, {"not a number"}, [&] { top_candidates(queries, odd); });
}

}  // namespace
}  // namespace tessera::links
