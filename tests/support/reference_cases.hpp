// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/build.hpp"

/// Reads what tests/python/make_layer_references.py writes; the format is described there.
namespace tessera::test {

struct ReferenceCase {
  std::string name;
  std::string layer;
  bool training = false;
  std::map<std::string, double> options;
  std::map<std::string, Matrix<double>> tensors;

  double option(const std::string& key, double otherwise) const {
    const auto found = options.find(key);
    return found == options.end() ? otherwise : found->second;
  }
  std::int64_t count(const std::string& key, std::int64_t otherwise = 0) const {
    return static_cast<std::int64_t>(option(key, static_cast<double>(otherwise)));
  }
  bool flag(const std::string& key, bool otherwise) const {
    return option(key, otherwise ? 1 : 0) != 0;
  }
  bool has(const std::string& key) const { return tensors.count(key) != 0; }

  Graph graph() const {
    const Matrix<double>& edges = tensors.at("edges");
    std::vector<VertexId> rows, cols;
    std::vector<float> weights;
    for (std::int64_t e = 0; e < edges.rows(); ++e) {
      cols.push_back(static_cast<VertexId>(edges(e, 0)));
      rows.push_back(static_cast<VertexId>(edges(e, 1)));
      weights.push_back(static_cast<float>(edges(e, 2)));
    }
    if (flag("unweighted", false)) weights.clear();
    // A readout puts out one row per graph, every other layer one row per target.
    const std::string targets = layer.starts_with("readout") ? "x" : "output";
    return from_coo(static_cast<VertexId>(tensors.at(targets).rows()),
                    static_cast<VertexId>(tensors.at("x").rows()), rows, cols, weights);
  }
};

inline Matrix<double> read_matrix(std::istream& in, std::int64_t rows, std::int64_t cols) {
  Matrix<double> matrix(rows, cols);
  for (std::int64_t i = 0; i < matrix.size(); ++i) {
    if (!(in >> matrix.data()[i])) throw std::runtime_error("a tensor ends too early");
  }
  return matrix;
}

inline std::vector<ReferenceCase> read_reference_cases(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<ReferenceCase> cases;
  std::string word;
  while (file >> word) {
    if (word == "case") {
      ReferenceCase& now = cases.emplace_back();
      file >> now.name >> now.layer >> now.training;
    } else if (word == "option") {
      std::string key;
      file >> key;
      file >> cases.back().options[key];
    } else if (word == "tensor") {
      std::string key;
      std::int64_t rows = 0, cols = 0;
      file >> key >> rows >> cols;
      cases.back().tensors.emplace(key, read_matrix(file, rows, cols));
    } else {
      throw std::runtime_error("unknown word " + word + " in " + path);
    }
  }
  return cases;
}

}  // namespace tessera::test
