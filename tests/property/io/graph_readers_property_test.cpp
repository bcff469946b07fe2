// SPDX-License-Identifier: Apache-2.0
// METIS graphs, GraphML and OGB folders against parsers that share nothing with their readers, on
// files that are written in ways that differ in everything that does not count.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "tessera/graph/build.hpp"
#include "tessera/io/graphml.hpp"
#include "tessera/io/metis.hpp"
#include "tessera/io/ogb.hpp"

#include "support/files.hpp"
#include "support/gzipped.hpp"
#include "support/slow_text.hpp"
#include "support/slow_xml.hpp"

namespace tessera {
namespace {

using test::Draws;
using test::XmlNode;

constexpr int num_files = 150;

std::string maybe_gzipped(const std::string& text, Draws& draws) {
  return draws.often() ? text : test::gzipped(text);
}

// METIS ------------------------------------------------------------------------------------------

/// Every edge from both ends, with the numbers that the reader is to skip.
std::string metis_text(Draws& draws) {
  const int vertices = 1 + draws.below(40);
  const bool sizes = draws.below(3) == 0;
  const int weights = draws.below(3) == 0 ? 1 + draws.below(3) : 0;
  const bool edge_weights = draws.below(2) == 0;
  std::map<std::pair<int, int>, std::string> edges;
  for (int k = draws.below(3 * vertices); k > 0; --k) {
    const int a = draws.below(vertices);
    const int b = draws.below(vertices);
    if (a == b) continue;
    const std::string weight = draws.often() ? fmt::format("{}", 1 + draws.below(9))
                                             : fmt::format("{:.3f}", draws.below(999) / 8.0);
    edges[{a, b}] = edges[{b, a}] = weight;
  }
  const std::string end = draws.below(2) == 0 ? "\n" : "\r\n";
  const auto blanks = [&] {
    std::string text = " ";
    while (draws.seldom()) text += draws.often() ? " " : "\t";
    return text;
  };
  const auto remark = [&] { return draws.seldom() ? "% 1 2 3" + end : std::string(); };
  std::string text = draws.seldom() ? "\xEF\xBB\xBF" : "";
  text += remark() + fmt::format("{} {}", vertices, edges.size() / 2);
  if (sizes || weights > 0 || edge_weights || draws.seldom()) {
    const int format = (sizes ? 100 : 0) + (weights > 0 ? 10 : 0) + (edge_weights ? 1 : 0);
    text += blanks() + (draws.often() ? fmt::format("{:03}", format) : fmt::format("{}", format));
    if (weights > 1 || (weights == 1 && draws.often()))
      text += blanks() + fmt::format("{}", weights);
  }
  text += (draws.seldom() ? blanks() : "") + end;
  for (int v = 0; v < vertices; ++v) {
    text += remark() + (draws.seldom() ? blanks() : "");
    std::string line;
    const auto put = [&](const std::string& word) {
      line += (line.empty() ? "" : blanks()) + word;
    };
    for (int i = 0; i < weights + (sizes ? 1 : 0); ++i) put(fmt::format("{}", draws.below(5)));
    for (int u = 0; u < vertices; ++u) {
      const auto found = edges.find({v, u});
      if (found == edges.end()) continue;
      put(fmt::format("{}", u + 1));
      if (edge_weights) put(found->second);
    }
    text += line + (draws.seldom() ? blanks() : "") + end;
  }
  // A last line that is blank counts, so that its end must stay.
  if (draws.below(2) == 0 && !text.ends_with(end + end)) text.erase(text.size() - end.size());
  return text;
}

struct SlowEdges {
  VertexId vertices = 0;
  std::int64_t stored = 0;
  bool weighted = false;
  std::vector<VertexId> sources, targets;
  std::vector<float> weights;

  Graph graph() const {
    return from_edges(vertices, sources, targets, weighted ? weights : std::vector<float>(), {});
  }
};

SlowEdges slow_metis(const std::string& text) {
  std::istringstream lines(text.rfind("\xEF\xBB\xBF", 0) == 0 ? text.substr(3) : text);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] == '%') continue;
    std::istringstream words(line);
    rows.emplace_back();
    for (std::string word; words >> word;) rows.back().push_back(word);
  }
  const auto& head = rows.at(0);
  const int format = head.size() > 2 ? std::stoi(head[2]) : 0;
  std::size_t skipped = format >= 100 ? 1 : 0;
  if (format / 10 % 10 == 1) skipped += head.size() > 3 ? std::stoul(head[3]) : 1;
  SlowEdges result{
      static_cast<VertexId>(std::stol(head[0])), std::stol(head[1]), format % 10 == 1, {}, {}, {}};
  for (VertexId v = 0; v < result.vertices; ++v) {
    const auto& row = rows.at(static_cast<std::size_t>(v) + 1);
    for (std::size_t i = skipped; i < row.size(); i += result.weighted ? 2 : 1) {
      result.targets.push_back(v);
      result.sources.push_back(static_cast<VertexId>(std::stol(row[i]) - 1));
      result.weights.push_back(result.weighted ? std::stof(row.at(i + 1)) : 1);
    }
  }
  return result;
}

TEST(GraphReadersProperty, MetisGraphsAreWhatASlowParserMakesOfThem) {
  const test::TemporaryFolder folder;
  std::int64_t edges = 0;
  for (std::uint64_t seed = 1; seed <= num_files; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    const std::string text = metis_text(draws);
    test::write_file(folder / "a.graph", maybe_gzipped(text, draws));
    const SlowEdges slow = slow_metis(text);
    const Dataset dataset = io::read_metis(folder / "a.graph");
    EXPECT_EQ(dataset.graph, slow.graph()) << text;
    EXPECT_EQ(dataset.edges_stored, slow.stored);
    edges += slow.stored;
  }
  EXPECT_GT(edges, num_files * 5) << "the files say something";
}

// GraphML ----------------------------------------------------------------------------------------

XmlNode element(std::string name, std::map<std::string, std::string> attributes = {}) {
  return {std::move(name), std::move(attributes), {}, {}};
}

XmlNode data(const std::string& key, std::string text) {
  XmlNode node = element("data", {{"key", key}});
  node.text = std::move(text);
  return node;
}

/// Vertices with an age and a kind, edges with weights, and much that does not count.
XmlNode graphml_tree(Draws& draws) {
  const int vertices = 2 + draws.below(30);
  const auto name = [](int v) {
    return std::vector<std::string>{"A", "B & co", "<c>", "d'",
                                    "\"e\""}[static_cast<std::size_t>(v % 5)] +
           std::to_string(v);
  };
  XmlNode graph =
      element("graph", {{"id", "G"}, {"edgedefault", draws.often() ? "directed" : "undirected"}});
  if (draws.seldom()) graph.attributes.erase("edgedefault");
  for (int v = 0; v < vertices; ++v) {
    XmlNode node = element("node", {{"id", name(v)}});
    if (draws.often()) node.children.push_back(data("age", fmt::format("{}", draws.below(90) - 9)));
    if (draws.seldom()) node.children.push_back(element("port", {{"name", "left"}}));
    node.children.push_back(data("kind", std::string(1, "xyz"[v % 3])));
    graph.children.push_back(std::move(node));
  }
  const bool weighted = draws.often();
  std::set<std::pair<int, int>> taken;
  for (int k = draws.below(4 * vertices); k > 0; --k) {
    const int a = draws.below(vertices);
    const int b = draws.below(vertices);
    if (!taken.emplace(std::min(a, b), std::max(a, b)).second) continue;
    XmlNode edge = element("edge", {{"source", name(a)}, {"target", name(b)}});
    if (draws.seldom()) edge.attributes["directed"] = draws.often() ? "true" : "false";
    if (weighted) edge.children.push_back(data("w", fmt::format("{}", draws.below(99) / 4.0)));
    if (draws.seldom()) edge.children.push_back(data("note", "5"));
    graph.children.push_back(std::move(edge));
  }
  XmlNode all = element("graphml", {{"xmlns", "http://graphml.graphdrawing.org/xmlns"}});
  all.children = {
      element("key",
              {{"id", "w"}, {"for", "edge"}, {"attr.name", "weight"}, {"attr.type", "double"}}),
      element("key", {{"id", "note"}, {"for", "edge"}, {"attr.name", "note"}}),
      element("key", {{"id", "age"}, {"for", "node"}, {"attr.name", "age"}}),
      element("key", {{"id", "kind"}, {"for", "node"}, {"attr.name", "kind"}})};
  if (draws.seldom()) all.children.push_back(element("desc"));
  all.children.push_back(std::move(graph));
  return all;
}

std::string stripped(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string::npos
             ? ""
             : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

struct SlowGraphml {
  std::vector<std::string> names, ages, kinds;
  SlowEdges edges;
};

SlowGraphml slow_graphml(const std::string& text) {
  SlowGraphml result;
  const XmlNode tree = test::slow_xml(text);
  const XmlNode& graph = tree.children.at(0).children.back();
  std::map<std::string, VertexId> numbers;
  for (const XmlNode& node : graph.children) {
    if (node.name != "node") continue;
    numbers.emplace(node.attributes.at("id"), static_cast<VertexId>(numbers.size()));
    result.names.push_back(node.attributes.at("id"));
    result.ages.emplace_back();
    result.kinds.emplace_back();
    for (const XmlNode& child : node.children) {
      if (child.name != "data") continue;
      if (child.attributes.at("key") == "age") result.ages.back() = stripped(child.text);
      if (child.attributes.at("key") == "kind") result.kinds.back() = stripped(child.text);
    }
  }
  result.edges.vertices = static_cast<VertexId>(numbers.size());
  const auto direction = graph.attributes.find("edgedefault");
  const bool by_default = direction == graph.attributes.end() || direction->second == "directed";
  for (const XmlNode& edge : graph.children) {
    if (edge.name != "edge") continue;
    ++result.edges.stored;
    float weight = 1;
    for (const XmlNode& child : edge.children) {
      if (child.attributes.at("key") != "w") continue;
      weight = std::stof(stripped(child.text));
      result.edges.weighted = true;
    }
    const auto own = edge.attributes.find("directed");
    const bool directed = own == edge.attributes.end() ? by_default : own->second == "true";
    const VertexId source = numbers.at(edge.attributes.at("source"));
    const VertexId target = numbers.at(edge.attributes.at("target"));
    for (int side = 0; side < (directed || source == target ? 1 : 2); ++side) {
      result.edges.sources.push_back(side == 0 ? source : target);
      result.edges.targets.push_back(side == 0 ? target : source);
      result.edges.weights.push_back(weight);
    }
  }
  return result;
}

TEST(GraphReadersProperty, GraphmlIsWhatASlowParserMakesOfIt) {
  const test::TemporaryFolder folder;
  std::int64_t edges = 0;
  for (std::uint64_t seed = 1; seed <= num_files; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    std::string text = draws.seldom() ? "\xEF\xBB\xBF" : "";
    if (draws.often()) text += "<?xml version='1.0' encoding='utf-8'?>\n";
    text += test::written(graphml_tree(draws), draws.seldom() ? "g:" : "", draws) +
            (draws.often() ? "\n" : "");
    test::write_file(folder / "a.graphml", maybe_gzipped(text, draws));
    const SlowGraphml slow =
        slow_graphml(text.rfind("\xEF\xBB\xBF", 0) == 0 ? text.substr(3) : text);
    const Dataset dataset = io::read_graphml(folder / "a.graphml");
    ASSERT_EQ(dataset.graph, slow.edges.graph()) << text;
    ASSERT_EQ(dataset.edges_stored, slow.edges.stored);
    edges += slow.edges.stored;
    double sum = 0;
    int known = 0;
    for (const std::string& age : slow.ages) {
      if (age.empty()) continue;
      sum += std::stof(age);
      ++known;
    }
    for (std::size_t v = 0; v < slow.names.size(); ++v) {
      const auto row = static_cast<std::int64_t>(v);
      ASSERT_EQ(dataset.vertex_names[row], slow.names[v]);
      const Matrix<float>& features = *std::get<DenseFeatures>(dataset.features);
      for (std::int64_t k = 0; k < dataset.feature_names.size(); ++k) {
        const std::string feature(dataset.feature_names[k]);
        const float expected = feature != "age" ? (feature == "kind=" + slow.kinds[v] ? 1.0f : 0.0f)
                               : slow.ages[v].empty()
                                   ? static_cast<float>(known == 0 ? 0 : sum / known)
                                   : std::stof(slow.ages[v]);
        ASSERT_EQ(features(row, k), expected) << feature;
      }
    }
  }
  EXPECT_GT(edges, num_files * 5) << "the files say something";
}

// OGB --------------------------------------------------------------------------------------------

TEST(GraphReadersProperty, OgbFoldersAreWhatASlowParserMakesOfThem) {
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  for (std::uint64_t seed = 1; seed <= num_files; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    const std::string set = folder / fmt::format("set{}", seed);
    const std::string raw = set + (draws.often() ? "/raw/" : "/");
    fs::create_directories(raw);
    fs::create_directories(set + "/split/time");
    const int vertices = 3 + draws.below(30);
    const int width = 1 + draws.below(4);
    std::set<std::pair<int, int>> pairs;
    for (int k = draws.below(4 * vertices) + 1; k > 0; --k)
      pairs.emplace(draws.below(vertices), draws.below(vertices));
    test::Rows edges, features, labels, parts[3];
    for (const auto& [a, b] : pairs) edges.push_back({std::to_string(a), std::to_string(b)});
    for (int v = 0; v < vertices; ++v) {
      features.emplace_back();
      for (int f = 0; f < width; ++f)
        features.back().push_back(fmt::format("{:.4g}", draws.below(999) / 7.0 - 60));
      labels.push_back({draws.seldom() ? "nan" : std::to_string(draws.below(4))});
      parts[v % 3].push_back({std::to_string(v)});
    }
    const auto put = [&](const std::string& path, const test::Rows& rows) {
      std::string text;
      const std::string end = draws.often() ? "\n" : "\r\n";
      for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + row[i];
        text += end;
      }
      if (draws.seldom()) text.erase(text.size() - end.size());
      const std::string bytes = maybe_gzipped(text, draws);
      test::write_file(path + (bytes == text ? ".csv" : ".csv.gz"), bytes);
      return test::slow_rows(text, ',');
    };
    const test::Rows slow_edges = put(raw + "edge", edges);
    put(raw + "num-node-list", {{std::to_string(vertices)}});
    const test::Rows slow_features = put(raw + "node-feat", features);
    const test::Rows slow_labels = put(raw + "node-label", labels);
    put(set + "/split/time/train", parts[0]);
    put(set + "/split/time/valid", parts[1]);
    const test::Rows slow_test = put(set + "/split/time/test", parts[2]);
    const Dataset dataset = io::read_ogb(set);
    SlowEdges slow{static_cast<VertexId>(vertices), 0, false, {}, {}, {}};
    for (const auto& row : slow_edges) {
      slow.sources.push_back(static_cast<VertexId>(std::stol(row.at(0))));
      slow.targets.push_back(static_cast<VertexId>(std::stol(row.at(1))));
    }
    ASSERT_EQ(dataset.graph, slow.graph());
    for (int v = 0; v < vertices; ++v) {
      const auto place = static_cast<std::size_t>(v);
      for (int f = 0; f < width; ++f) {
        ASSERT_EQ((*std::get<DenseFeatures>(dataset.features))(v, f),
                  std::stof(slow_features.at(place).at(static_cast<std::size_t>(f))));
      }
      const std::string& label = slow_labels.at(place).at(0);
      ASSERT_EQ(std::get<ClassLabels>(dataset.labels)[v], label == "nan" ? -1 : std::stol(label));
    }
    ASSERT_EQ(dataset.test.size(), std::ssize(slow_test));
    for (std::int64_t i = 0; i < dataset.test.size(); ++i) {
      ASSERT_EQ(dataset.test[i], std::stol(slow_test[static_cast<std::size_t>(i)].at(0)));
    }
  }
}

}  // namespace
}  // namespace tessera
