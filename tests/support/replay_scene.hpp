// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/dense_backends.hpp"
#include "support/matrices.hpp"
#include "tessera/core/recording.hpp"

namespace tessera::test {

/// The first GPU.
inline constexpr Device replay_gpu{DeviceKind::cuda, 0};

/// Matrices of one op, and how to run it.
class ReplayScene {
 public:
  using Work = std::function<void(Stream)>;

  DeviceMatrix<float>& matrix(std::int64_t rows, std::int64_t cols, std::int64_t margin = 0) {
    shapes_.push_back({rows, cols});
    matrices_.push_back(
        std::make_unique<DeviceMatrix<float>>(Matrix<float>(rows, cols, 0.0f), replay_gpu, margin));
    return *matrices_.back();
  }

  /// Numbers that belong to the seed, in all matrices, outputs too.
  void draw(std::uint64_t seed) {
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      auto values = normal_matrix<float>(shapes_[i].first, shapes_[i].second, seed + i);
      // Second moments are squares.
      for (float& value : values.span()) value = std::abs(value);
      matrices_[i]->set(values);
    }
  }

  std::vector<Matrix<float>> results() {
    std::vector<Matrix<float>> all;
    for (auto& matrix : matrices_) all.push_back(matrix->values());
    return all;
  }

  void expect_replays(const std::string& name, const Work& work) {
    SCOPED_TRACE(name);
    draw(100);
    work({});
    const Recording recording = Recording::of(replay_gpu, work);
    draw(200);
    work({});
    const auto expected = results();
    draw(200);
    recording.replay();
    const auto once = results();
    draw(300);
    recording.replay();
    draw(200);
    recording.replay();
    const auto again = results();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(same_bits(expected[i], once[i])) << "matrix " << i;
      EXPECT_TRUE(same_bits(expected[i], again[i])) << "matrix " << i << ", later";
    }
  }

 private:
  std::vector<std::unique_ptr<DeviceMatrix<float>>> matrices_;
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes_;
};

}  // namespace tessera::test
