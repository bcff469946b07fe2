// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "tessera/data/dataset.hpp"

namespace tessera::train {

/// The features of a data set, whatever holds them. The data set must outlive it.
class FeatureCells {
 public:
  explicit FeatureCells(const Dataset& dataset);

  /// The numbers of one vertex, and which of them were missing.
  struct Row {
    std::vector<float> values;
    std::vector<std::uint8_t> missing;
  };
  void read(std::int64_t vertex, Row& row) const;

  /// The different numbers of one feature, without those that were filled in.
  std::set<float> different(std::int64_t feature) const;
  /// Whether any of them is not 0.
  bool any(std::int64_t feature) const;

  /// Null where they are dense, or where there are none.
  const SparseFeatures* sparse() const noexcept { return sparse_; }
  std::int64_t rows() const noexcept { return rows_; }

 private:
  float value(std::int64_t vertex, std::int64_t feature) const;

  std::int64_t width_;
  std::int64_t rows_;
  const Matrix<float>* dense_ = nullptr;
  const SparseFeatures* sparse_ = nullptr;
  SharedArray<std::int64_t> filled_;
};

}  // namespace tessera::train
