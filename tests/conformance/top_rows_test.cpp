// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/top_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/matrix.hpp"
#include "tessera/core/random.hpp"

/// The best columns of rows, on every device, against sorting them.
namespace tessera::ops {
namespace {

std::vector<Device> devices() {
  std::vector<Device> all{{}};
  if (num_gpus() > 0) all.push_back({DeviceKind::cuda, 0});
  return all;
}

template <class T>
Buffer<T> there(const std::vector<T>& values, Device device) {
  Buffer<T> copy(std::ssize(values), default_memory(device));
  copy_bytes(copy.data(), values.data(), values.size() * sizeof(T), device);
  return copy;
}

template <class T>
std::vector<T> here(const Buffer<T>& values, Device device) {
  std::vector<T> copy(static_cast<std::size_t>(values.size()));
  copy_bytes(copy.data(), values.data(), copy.size() * sizeof(T), device);
  synchronise(device);
  return copy;
}

struct Case {
  std::int64_t rows, cols, stride, count, block;
};

struct Found {
  std::vector<VertexId> cols;
  std::vector<float> scores;
  bool has_odd = false;
};

/// Offers the scores, block by block of columns.
Found found_on(Device device, const Case& one, const std::vector<float>& scores,
               const std::vector<EdgeOffset>& offsets, const std::vector<VertexId>& left_out) {
  const Buffer<float> given = there(scores, device);
  const Buffer<EdgeOffset> begins = there(offsets, device);
  const Buffer<VertexId> without = there(left_out, device);
  const auto size = static_cast<std::size_t>(one.rows * one.count);
  Buffer<TopKey> keys = there(std::vector<TopKey>(size), device);
  Buffer<std::int32_t> odd = there(std::vector<std::int32_t>(1), device);
  for (std::int64_t first = 0; first < one.cols; first += one.block) {
    const ConstOperand block(given.data() + first, ElementType::fp32, device, one.rows,
                             std::min(one.block, one.cols - first), one.stride);
    offer_to_top(block, first, {begins.data(), without.data()},
                 {keys.data(), one.rows, one.count, device}, odd.data(), device);
  }
  Buffer<VertexId> cols = there(std::vector<VertexId>(size), device);
  Buffer<float> best = there(std::vector<float>(size), device);
  list_top(keys.data(), keys.size(), cols.data(), best.data(), device);
  return {here(cols, device), here(best, device), here(odd, device)[0] != 0};
}

Found by_sorting(const Case& one, const std::vector<float>& scores,
                 const std::vector<EdgeOffset>& offsets, const std::vector<VertexId>& left_out) {
  Found found;
  for (std::int64_t i = 0; i < one.rows; ++i) {
    std::vector<std::pair<float, VertexId>> all;
    for (std::int64_t j = 0; j < one.cols; ++j) {
      const auto col = static_cast<VertexId>(j);
      if (std::binary_search(left_out.begin() + offsets[static_cast<std::size_t>(i)],
                             left_out.begin() + offsets[static_cast<std::size_t>(i) + 1], col)) {
        continue;
      }
      all.emplace_back(-scores[static_cast<std::size_t>(i * one.stride + j)], col);
    }
    std::sort(all.begin(), all.end());
    all.resize(static_cast<std::size_t>(one.count), {std::numeric_limits<float>::infinity(), -1});
    for (const auto& [score, col] : all) {
      found.cols.push_back(col);
      found.scores.push_back(-score);
    }
  }
  return found;
}

TEST(TopRows, AreThoseOfSorting) {
  const Case cases[] = {
      {3, 1, 4, 1, 1},           {5, 31, 32, 10, 31},         {7, 517, 520, 32, 517},
      {4, 4099, 4100, 10, 4099}, {4, 4099, 4101, 10, 700},    {3, 9000, 9000, 33, 9000},
      {3, 5003, 5003, 100, 999}, {2, 9000, 9000, 1024, 4096}, {2, 3000, 3000, 4096, 3000}};
  for (const Case& one : cases) {
    for (const int different : {3, 40, 1 << 20}) {  // many ties, some, few
      const Random random(static_cast<std::uint64_t>(one.cols + different));
      std::vector<float> scores(static_cast<std::size_t>(one.rows * one.stride));
      for (std::size_t k = 0; k < scores.size(); ++k) {
        scores[k] = static_cast<float>(random.below(k, static_cast<std::uint64_t>(different))) -
                    static_cast<float>(different / 2);
        if (different == 40 && k % 11 == 0) scores[k] = -std::numeric_limits<float>::infinity();
      }
      std::vector<EdgeOffset> offsets{0};
      std::vector<VertexId> left_out;
      for (std::int64_t i = 0; i < one.rows; ++i) {
        for (std::int64_t j = i; j < one.cols; j += 3 + i) {
          left_out.push_back(static_cast<VertexId>(j));
        }
        offsets.push_back(std::ssize(left_out));
      }
      const Found expected = by_sorting(one, scores, offsets, left_out);
      for (const Device device : devices()) {
        const Found found = found_on(device, one, scores, offsets, left_out);
        EXPECT_EQ(found.cols, expected.cols)
            << to_string(device) << ": " << one.cols << " columns, the best " << one.count << ", "
            << different << " different scores";
        EXPECT_EQ(found.scores, expected.scores);
        EXPECT_FALSE(found.has_odd);
      }
    }
  }
}

TEST(TopRows, SayWhereAScoreIsNoNumber) {
  for (const std::int64_t count : {5, 50}) {
    const Case one{2, 3000, 3000, count, 3000};
    for (const std::size_t place : {std::size_t{0}, std::size_t{2999}, std::size_t{4711}}) {
      std::vector<float> scores(6000, 1.0F);
      scores[place] = std::nanf("");
      for (const Device device : devices()) {
        EXPECT_TRUE(found_on(device, one, scores, {0, 0, 0}, {0}).has_odd) << to_string(device);
      }
    }
  }
}

TEST(TopRows, RefuseWhatDoesNotFit) {
  Matrix<float> scores(2, 3, 1.0F);
  Buffer<TopKey> keys(4, TopKey{0});
  std::int32_t odd = 0;
  testing::expect_error(ErrorCode::invalid_argument, {"offer_to_top"}, [&] {
    offer_to_top(scores, 0, {}, MatrixView<TopKey>{keys.data(), 4, 1}, &odd);
  });
  testing::expect_error(ErrorCode::invalid_argument, {"no memory for not_a_number"}, [&] {
    offer_to_top(scores, 0, {}, MatrixView<TopKey>{keys.data(), 2, 2}, nullptr);
  });
}

}  // namespace
}  // namespace tessera::ops
