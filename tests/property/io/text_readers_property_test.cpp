// SPDX-License-Identifier: Apache-2.0
// Every reader of text against a parser that shares nothing with it, on files that are written in
// ways that differ in everything that does not count.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tessera/graph/build.hpp"
#include "tessera/io/edge_list.hpp"
#include "tessera/io/matrix_market.hpp"

#include "support/files.hpp"
#include "support/slow_text.hpp"

namespace tessera {
namespace {

using test::Draws;
using test::Rows;

constexpr int num_files = 150;

std::string number_in_some_spelling(double value, Draws& draws) {
  switch (draws.below(4)) {
    case 0: return fmt::format("{}", static_cast<float>(value));
    case 1: return fmt::format("{:e}", value);
    case 2: return fmt::format("{:.3f}", value);
    default: return fmt::format("{:+.6g}", value);
  }
}

/// Edges with duplicates, as text.
Rows random_edges(int vertices, int count, bool names, bool weights, int base, Draws& draws) {
  Rows rows;
  const auto id = [&] {
    const int vertex = draws.below(vertices);
    if (names)
      return fmt::format("{}{}",
                         std::vector<std::string>{"n", "a b", "x\"y", ",",
                                                  "é"}[static_cast<std::size_t>(vertex % 5)],
                         vertex);
    return fmt::format("{}{}", draws.seldom() ? "+" : "", vertex + base);
  };
  for (int k = 0; k < count; ++k) {
    rows.push_back({id(), id()});
    if (weights)
      rows.back().push_back(number_in_some_spelling(draws.below(20000) / 64.0 - 99, draws));
  }
  return rows;
}

Graph slow_graph(const Rows& rows, bool names, bool weights, int base, Duplicates duplicates) {
  std::map<std::string, VertexId> numbers;
  std::vector<VertexId> sources, targets;
  std::vector<float> values;
  VertexId highest = -1;
  const auto vertex_of = [&](const std::string& id) {
    const auto vertex =
        names ? numbers.emplace(id, static_cast<VertexId>(numbers.size())).first->second
              : static_cast<VertexId>(std::strtoll(id.c_str(), nullptr, 10) - base);
    highest = std::max(highest, vertex);
    return vertex;
  };
  for (const auto& row : rows) {
    sources.push_back(vertex_of(row[0]));
    targets.push_back(vertex_of(row[1]));
    if (weights) values.push_back(std::strtof(row[2].c_str(), nullptr));
  }
  return from_edges(highest + 1, sources, targets, values, {duplicates, false, {}});
}

TEST(TextReadersProperty, EdgeListsAreWhatASlowParserMakesOfThem) {
  const test::TemporaryFolder folder;
  for (std::uint64_t seed = 1; seed <= num_files; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    const char separator = ",;\t| "[draws.below(5)];
    const bool names = draws.below(3) == 0;
    const bool weights = draws.below(2) == 0;
    const int base = draws.below(2);
    Rows rows =
        random_edges(1 + draws.below(40), 1 + draws.below(200), names, weights, base, draws);
    const Duplicates duplicates = draws.below(2) == 0 ? Duplicates::sum : Duplicates::first;
    const bool header = draws.below(2) == 0;
    if (header) {
      rows.insert(rows.begin(), {"source", "target"});
      if (weights) rows.front().push_back("weight");
    }
    const std::string text = test::written(rows, separator, true, draws);
    test::write_file(folder / "edges", text);
    Rows slow = test::slow_rows(text, separator);
    ASSERT_EQ(slow, rows);
    if (header) slow.erase(slow.begin());
    io::ReadOptions options;
    options.duplicates = duplicates;
    options.edges.base = base;
    options.edges.separator = separator;
    options.edges.ids = names ? io::IdKind::names : io::IdKind::numbers;
    const Dataset dataset = io::read_edge_list(folder / "edges", options);
    EXPECT_EQ(dataset.graph, slow_graph(slow, names, weights, base, duplicates));
    EXPECT_EQ(dataset.edges_stored, std::ssize(slow));
  }
}

TEST(TextReadersProperty, MatrixMarketIsWhatASlowParserMakesOfIt) {
  const test::TemporaryFolder folder;
  for (std::uint64_t seed = 1; seed <= num_files; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    const bool weights = draws.below(2) == 0;
    const int sign = draws.below(weights ? 3 : 2) - 1;  // general, symmetric or skew-symmetric
    const bool mirrored = sign != 0;
    const int vertices = 2 + draws.below(30);
    Rows rows = random_edges(vertices, draws.below(100), false, weights, 1, draws);
    if (mirrored) {
      // One triangle, without the diagonal, each pair once.
      std::map<std::pair<long, long>, std::vector<std::string>> once;
      for (const auto& row : rows) {
        const std::pair place(std::atol(row[0].c_str()), std::atol(row[1].c_str()));
        if (place.first > place.second) once.emplace(place, row);
      }
      rows.clear();
      for (const auto& [place, row] : once) rows.push_back(row);
    }
    const int mirror = mirrored ? (weights && sign > 0 ? -1 : 1) : 0;
    Rows file = {{std::to_string(vertices), std::to_string(vertices), std::to_string(rows.size())}};
    file.insert(file.end(), rows.begin(), rows.end());
    std::string text = test::written(file, ' ', false, draws);
    if (text.rfind("\xEF\xBB\xBF", 0) == 0) text.erase(0, 3);
    for (const char* remark : {"# no, edge", "// 3,4"}) {
      for (std::size_t at = text.find(remark); at != std::string::npos; at = text.find(remark))
        text[at] = '%';
    }
    text = fmt::format("%%MatrixMarket matrix coordinate {} {}\n", weights ? "real" : "pattern",
                       mirror == 0 ? "general" : (mirror > 0 ? "symmetric" : "skew-symmetric")) +
           text;
    test::write_file(folder / "a.mtx", text);
    Rows slow = test::slow_rows(text, ' ');
    ASSERT_EQ(slow, file);
    std::vector<VertexId> row_of, col_of;
    std::vector<float> values;
    for (std::size_t k = 1; k < slow.size(); ++k) {
      const auto row = static_cast<VertexId>(std::atol(slow[k][0].c_str()) - 1);
      const auto col = static_cast<VertexId>(std::atol(slow[k][1].c_str()) - 1);
      const float value = weights ? std::strtof(slow[k][2].c_str(), nullptr) : 1;
      for (int side = 0; side < (mirror == 0 ? 1 : 2); ++side) {
        row_of.push_back(side == 0 ? row : col);
        col_of.push_back(side == 0 ? col : row);
        if (weights) values.push_back(side == 0 ? value : static_cast<float>(mirror) * value);
      }
    }
    const Graph expected =
        from_coo(vertices, vertices, row_of, col_of, values, {Duplicates::first, false, {}});
    EXPECT_EQ(io::read_matrix_market(folder / "a.mtx", {.duplicates = Duplicates::first}).graph,
              expected);
  }
}

TEST(TextReadersProperty, NodeTablesAreWhatASlowParserMakesOfThem) {
  const test::TemporaryFolder folder;
  for (std::uint64_t seed = 1; seed <= num_files; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    const char separator = ",;\t|"[draws.below(4)];
    const int count = 2 + draws.below(60);
    Rows rows = {{"id", "size", "kind", "label"}};
    for (int i = 0; i < count; ++i) {
      const bool missing = draws.seldom();
      rows.push_back({fmt::format("node {}", i * 7 % count == 0 ? i + 1000 : i),
                      missing ? "NA" : number_in_some_spelling(draws.below(100) - 50.25, draws),
                      draws.seldom() ? "" : std::string(1, "xyz"[draws.below(3)]),
                      draws.seldom()
                          ? ""
                          : std::vector<std::string>{
                                "up", "down, left"}[static_cast<std::size_t>(draws.below(2))]});
    }
    test::write_file(folder / "nodes", test::written(rows, separator, true, draws));
    test::write_file(
        folder / "edges",
        test::written({{"source", "target"}, {rows[1][0], rows[2][0]}}, ',', true, draws));
    io::ReadOptions options;
    options.nodes.path = folder / "nodes";
    options.nodes.separator = separator;
    options.edges.separator = ',';
    const Dataset dataset = io::read_edge_list(folder / "edges", options);
    const Rows slow = test::slow_rows(test::read_file(folder / "nodes"), separator);
    ASSERT_EQ(slow, rows);
    ASSERT_EQ(dataset.graph.num_rows(), count);
    double sum = 0;
    int numbers = 0;
    for (int i = 1; i <= count; ++i) {
      if (slow[static_cast<std::size_t>(i)][1] == "NA") continue;
      sum += std::strtof(slow[static_cast<std::size_t>(i)][1].c_str(), nullptr);
      ++numbers;
    }
    const Matrix<float>& features = *std::get<DenseFeatures>(dataset.features);
    for (int i = 0; i < count; ++i) {
      const auto& row = slow[static_cast<std::size_t>(i) + 1];
      ASSERT_EQ(dataset.vertex_names[i], row[0]);
      ASSERT_EQ(features.row(i)[0], row[1] == "NA"
                                        ? static_cast<float>(numbers == 0 ? 0 : sum / numbers)
                                        : std::strtof(row[1].c_str(), nullptr));
      for (std::int64_t k = 1; k < dataset.feature_names.size(); ++k) {
        ASSERT_EQ(features.row(i)[k], dataset.feature_names[k] == "kind=" + row[2] ? 1.0f : 0.0f);
      }
      const std::int64_t label = std::get<ClassLabels>(dataset.labels)[i];
      ASSERT_EQ(label < 0 ? std::string() : std::string(dataset.class_names[label]), row[3]);
    }
  }
}

}  // namespace
}  // namespace tessera
