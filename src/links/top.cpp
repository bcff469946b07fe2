// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/top.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/ops/gemm.hpp"

#include "graph/requirements.hpp"

namespace tessera::links {
namespace {

constexpr const char* where = "top lists";

[[noreturn]] void refuse(std::string problem, std::string fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

struct Scored {
  float score;
  VertexId candidate;

  /// Whether this one stands ahead of another in a list.
  bool ahead_of(const Scored& other) const {
    return score != other.score ? score > other.score : candidate < other.candidate;
  }
};

/// The best of those offered so far, as a heap whose top is the worst of them.
class BestOf {
 public:
  explicit BestOf(std::int64_t count) : count_(static_cast<std::size_t>(count)) {}

  void offer(Scored one) {
    if (kept_.size() < count_) {
      kept_.push_back(one);
      std::push_heap(kept_.begin(), kept_.end(), ahead);
    } else if (one.ahead_of(kept_.front())) {
      std::pop_heap(kept_.begin(), kept_.end(), ahead);
      kept_.back() = one;
      std::push_heap(kept_.begin(), kept_.end(), ahead);
    }
  }

  const std::vector<Scored>& sorted() {
    std::sort_heap(kept_.begin(), kept_.end(), ahead);
    return kept_;
  }

 private:
  static bool ahead(const Scored& a, const Scored& b) { return a.ahead_of(b); }

  std::size_t count_;
  std::vector<Scored> kept_;
};

/// Offers a row of scores, for candidates from `begin` on, but those that are left out.
void offer_row(const float* scores, std::int64_t begin, std::int64_t end,
               std::span<const VertexId> left_out, BestOf& best) {
  auto next = std::lower_bound(left_out.begin(), left_out.end(), begin);
  for (std::int64_t j = begin; j < end; ++j) {
    const float score = scores[j - begin];
    if (std::isnan(score)) {
      throw Error(ErrorCode::bad_data, "a score is not a number", where,
                  "check the embeddings: one of them is not finite");
    }
    while (next != left_out.end() && *next < j) ++next;
    const bool is_left_out = next != left_out.end() && *next == j;
    if (!is_left_out) best.offer({score, static_cast<VertexId>(j)});
  }
}

void check(MatrixView<const float> queries, MatrixView<const float> candidates,
           const TopOptions& options) {
  if (queries.cols != candidates.cols) {
    refuse(fmt::format("queries of {} numbers, candidates of {}", queries.cols, candidates.cols),
           "give both the same width");
  }
  if (options.count < 1 || options.block_bytes < 1) {
    refuse(fmt::format("{} candidates by blocks of {} bytes", options.count, options.block_bytes),
           "give positive numbers");
  }
  if (candidates.rows > std::numeric_limits<VertexId>::max()) {
    refuse(fmt::format("{} candidates", candidates.rows), "ids have 32 bits: give fewer");
  }
  if (options.leave_out == nullptr) return;
  detail::require_whole(*options.leave_out);
  if (options.leave_out->num_rows() != queries.rows) {
    refuse(fmt::format("{} rows to leave out for {} queries", options.leave_out->num_rows(),
                       queries.rows),
           "give a graph with a row for each query");
  }
}

MatrixView<const float> rows_of(MatrixView<const float> matrix, std::int64_t begin,
                                std::int64_t count) {
  return {matrix.row(begin), count, matrix.cols, matrix.stride, matrix.device};
}

}  // namespace

TopLists top_candidates(MatrixView<const float> queries, MatrixView<const float> candidates,
                        const TopOptions& options) {
  check(queries, candidates, options);
  constexpr std::int64_t widest = 4096;
  const std::int64_t cols = std::clamp<std::int64_t>(candidates.rows, 1, widest);
  const auto bytes_per_row = cols * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t rows = std::clamp<std::int64_t>(options.block_bytes / bytes_per_row, 1,
                                                     std::max<std::int64_t>(1, queries.rows));
  Matrix<float> block(rows, cols);
  TopLists result{
      Matrix<VertexId>(queries.rows, options.count, VertexId{-1}),
      Matrix<float>(queries.rows, options.count, -std::numeric_limits<float>::infinity())};
  for (std::int64_t first = 0; first < queries.rows; first += rows) {
    const std::int64_t count = std::min(rows, queries.rows - first);
    std::vector<BestOf> best(static_cast<std::size_t>(count), BestOf(options.count));
    for (std::int64_t begin = 0; begin < candidates.rows; begin += cols) {
      const std::int64_t width = std::min(cols, candidates.rows - begin);
      ops::gemm(ops::Transpose::no, ops::Transpose::yes, 1, rows_of(queries, first, count),
                rows_of(candidates, begin, width), 0,
                MatrixView<float>{block.data(), count, width, cols});
      parallel_for(count, even_grain(count, 1), [&](std::int64_t i) {
        std::span<const VertexId> left_out;
        if (options.leave_out != nullptr) {
          left_out = options.leave_out->neighbours(static_cast<VertexId>(first + i));
        }
        offer_row(block.row(i), begin, begin + width, left_out, best[static_cast<std::size_t>(i)]);
      });
    }
    parallel_for(count, even_grain(count, 16), [&](std::int64_t i) {
      std::int64_t place = 0;
      for (const Scored& one : best[static_cast<std::size_t>(i)].sorted()) {
        result.candidates(first + i, place) = one.candidate;
        result.scores(first + i, place++) = one.score;
      }
    });
  }
  return result;
}

}  // namespace tessera::links
