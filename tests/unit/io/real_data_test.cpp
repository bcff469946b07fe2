// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "tessera/graph/stats.hpp"
#include "tessera/io/container.hpp"
#include "tessera/io/matrix_market.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/open.hpp"

#include "support/files.hpp"

/// The data sets of TESSERA_DATA against the tables that come with them.
namespace tessera {
namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, separator);) cells.push_back(cell);
  return cells;
}

/// The number at the front of a cell such as "2,708" or "121 (multi-label)"; 0 for "-".
std::int64_t number_in(std::string cell) {
  cell.erase(std::remove(cell.begin(), cell.end(), ','), cell.end());
  return std::strtoll(cell.c_str(), nullptr, 10);
}

struct Row {
  std::string name;
  std::int64_t vertices, edges, features, classes;
  bool multi_label;
};

/// The rows of the README's tables whose second column is a number.
std::vector<Row> readme_rows(const std::string& folder) {
  std::ifstream readme(folder + "/README.md");
  std::vector<Row> rows;
  for (std::string line; std::getline(readme, line);) {
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() < 9 || number_in(cells[2]) == 0) continue;
    rows.push_back({cells[1].substr(1, cells[1].size() - 2), number_in(cells[2]),
                    number_in(cells[3]), number_in(cells[4]), number_in(cells[5]),
                    cells[5].find("multi-label") != std::string::npos});
  }
  return rows;
}

/// The README counts the classes that occur; a number below the highest may be unused.
std::int64_t classes_that_occur(const Dataset& dataset) {
  const auto* const labels = std::get_if<ClassLabels>(&dataset.labels);
  if (labels == nullptr) return dataset.num_classes();
  std::set<std::int64_t> classes(labels->begin(), labels->end());
  classes.erase(-1);
  return std::ssize(classes);
}

TEST(RealData, NpzCountsAreTheOnesInTheReadme) {
  const auto folder = test::data_folder();
  if (!folder) GTEST_SKIP() << "TESSERA_DATA is not set";
  const std::vector<Row> rows = readme_rows(*folder);
  EXPECT_EQ(rows.size(), 74u);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Dataset dataset = io::open(*folder + "/" + row.name + "/" + row.name + ".npz");
    EXPECT_EQ(dataset.name, row.name);
    EXPECT_EQ(dataset.graph.num_rows(), row.vertices);
    EXPECT_EQ(dataset.graph.num_edges(), row.edges);
    EXPECT_EQ(dataset.edges_stored, row.edges);
    EXPECT_EQ(dataset.num_features(), row.features);
    EXPECT_EQ(classes_that_occur(dataset), row.classes);
    EXPECT_EQ(dataset.is_multi_label(), row.multi_label);
  }
}

TEST(RealData, NpzToContainerToNpzIsTheSameDataSet) {
  const auto folder = test::data_folder();
  if (!folder) GTEST_SKIP() << "TESSERA_DATA is not set";
  const test::TemporaryFolder temporary;
  constexpr std::int64_t small_enough = 1'000'000;
  for (const Row& row : readme_rows(*folder)) {
    if (row.edges > small_enough) continue;
    SCOPED_TRACE(row.name);
    const Dataset dataset = io::read_npz(*folder + "/" + row.name + "/" + row.name + ".npz");
    io::write_container(dataset, temporary / "a.tsr");
    io::write_npz(io::read_container(temporary / "a.tsr"), temporary / "b.npz");
    EXPECT_EQ(io::read_npz(temporary / "b.npz"), dataset);
    EXPECT_EQ(io::read_container(temporary / "a.tsr", {.map = true}), dataset);
  }
}

TEST(RealData, MatricesHaveTheEdgesOfTheIndex) {
  const auto folder = test::data_folder();
  if (!folder) GTEST_SKIP() << "TESSERA_DATA is not set";
  std::ifstream index(*folder + "/suitesparse/index.tsv");
  std::string line;
  std::getline(index, line);
  int matrices = 0;
  while (std::getline(index, line)) {
    const std::vector<std::string> cells = split(line, '\t');
    SCOPED_TRACE(cells.at(0));
    const Dataset dataset = io::open(*folder + "/suitesparse/" + cells[0] + ".mtx.gz");
    EXPECT_EQ(dataset.name, cells[0]);
    EXPECT_EQ(dataset.graph.num_rows(), number_in(cells.at(1)));
    EXPECT_EQ(compute_stats(dataset.graph).edges_symmetrised_loop_free, number_in(cells.at(2)));
    ++matrices;
  }
  EXPECT_GE(matrices, 156);
}

}  // namespace
}  // namespace tessera
