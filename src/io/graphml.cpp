// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/graphml.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"

#include "io/dataset_arrays.hpp"
#include "io/edge_arrays.hpp"
#include "io/name_index.hpp"
#include "io/reading_notes.hpp"
#include "io/table_columns.hpp"
#include "io/text_source.hpp"
#include "io/xml_pull.hpp"

namespace tessera::io {
namespace {

/// An attribute that a `<key>` declares: its value for each vertex, or each edge.
struct Attribute {
  std::string name;
  std::string type;                          ///< `attr.type`; empty: any
  std::optional<std::string> default_value;  ///< where `<data>` says nothing
  std::vector<std::optional<std::string>> values;

  /// Sets the value of the last of `count` items; false where it has one already.
  bool set_last(std::int64_t count, std::string value) {
    values.resize(static_cast<std::size_t>(count));
    if (values.back()) return false;
    values.back() = std::move(value);
    return true;
  }

  /// The value of every item: its own, or the default. Empty where there is neither.
  std::vector<std::string> filled(std::int64_t count) const {
    std::vector<std::string> all(static_cast<std::size_t>(count), default_value.value_or(""));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i]) all[i] = *values[i];
    }
    return all;
  }
};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// The value as `attr.type` writes it: truth values as true and false, everything else without the
/// blanks around it. Nothing where it is not of that type. An empty text is of every type: no
/// value.
std::optional<std::string> value_of_type(std::string_view text, std::string_view type) {
  const std::string value(trimmed(text));
  if (is_missing(value)) return value;
  if (type == "boolean") {
    const std::string word = lower_case(value);
    if (word == "true" || word == "1") return "true";
    return word == "false" || word == "0" ? std::optional<std::string>("false") : std::nullopt;
  }
  if (type == "int" || type == "long") {
    return is_integer(value) ? std::optional(value) : std::nullopt;
  }
  if (type == "float" || type == "double") {
    return parse_any_real(value) ? std::optional(value) : std::nullopt;
  }
  return value;
}

/// What the file says, vertices by number.
struct Contents {
  NameIndex ids;
  std::int64_t vertices = 0;
  std::vector<std::string> sources, targets;
  std::vector<bool> directed;
  std::vector<float> weights;
  bool weighted = false;
  std::map<std::string, Attribute> attributes;       ///< of vertices, by key
  std::map<std::string, Attribute> edge_attributes;  ///< but the weight
  bool has_edgedefault = true;
};

class GraphmlParser {
 public:
  GraphmlParser(std::string_view text, Nonfinite nonfinite) : xml_(text), nonfinite_(nonfinite) {}

  void parse(Contents& contents) {
    for (;;) {
      switch (xml_.next()) {
        case XmlPull::Event::open: open(contents); break;
        case XmlPull::Event::close: close(contents); break;
        case XmlPull::Event::end:
          if (graphs_ == 0) fail("holds no graph", "give a file with a <graph> in <graphml>");
          return settle_weights(contents);
      }
    }
  }

 private:
  [[noreturn]] void fail(std::string problem, std::string fix = damaged_file_fix) const {
    throw LineProblem{xml_.at(), std::move(problem), std::move(fix)};
  }
  const std::string& require(const char* attribute) const {
    const std::string* const value = xml_.attribute(attribute);
    if (value == nullptr) fail(fmt::format("<{}> has no '{}'", xml_.name(), attribute));
    return *value;
  }
  /// The attribute, which must be one of two words; the first where there is none.
  bool is_second(const char* attribute, std::string_view first, std::string_view second) const {
    const std::string* const value = xml_.attribute(attribute);
    if (value == nullptr || *value == first) return false;
    if (*value == second) return true;
    fail(fmt::format("{} is '{}'", attribute, value->substr(0, shown_bytes)),
         fmt::format("use {} or {}", first, second));
  }

  void open(Contents& contents) {
    const std::string_view name = xml_.name();
    if (name == "key") {
      open_key(contents);
    } else if (name == "graph") {
      if (graphs_++ > 0) fail("holds more than one graph", "keep one graph per file");
      contents.has_edgedefault = xml_.attribute("edgedefault") != nullptr;
      directed_by_default_ = !is_second("edgedefault", "directed", "undirected");
    } else if (name == "node") {
      if (!contents.ids.add(require("id"), contents.vertices)) {
        fail(
            fmt::format("vertex '{}' occurs more than once", require("id").substr(0, shown_bytes)));
      }
      ++contents.vertices;
      inside_ = Inside::node;
    } else if (name == "edge") {
      open_edge(contents);
    } else if (name == "port") {
      inside_ = Inside::nothing;  // What is said of places on a vertex says nothing of the vertex.
    } else if (name == "data") {
      key_ = require("key");
    } else if (name == "hyperedge") {
      fail("holds edges of more than two vertices", "replace them by edges");
    }
  }

  void open_edge(Contents& contents) {
    contents.sources.push_back(require("source"));
    contents.targets.push_back(require("target"));
    contents.directed.push_back(xml_.attribute("directed") == nullptr
                                    ? directed_by_default_
                                    : is_second("directed", "false", "true"));
    contents.weights.push_back(1);
    inside_ = Inside::edge;
    has_weight_ = false;
  }

  void open_key(Contents& contents) {
    key_ = require("id");
    if (!keys_.insert(key_).second) {
      fail(fmt::format("key '{}' is declared more than once", key_.substr(0, shown_bytes)));
    }
    const auto text_of = [&](const char* attribute, const std::string& otherwise) {
      const std::string* const value = xml_.attribute(attribute);
      return value == nullptr ? otherwise : *value;
    };
    const Attribute attribute{text_of("attr.name", key_), text_of("attr.type", ""), {}, {}};
    const std::string kind = text_of("for", "all");
    if (kind == "node" || kind == "all") contents.attributes[key_] = attribute;
    if (kind != "edge" && kind != "all") return;
    edge_keys_.insert(key_);
    if (attribute.name != "weight") {
      contents.edge_attributes[key_] = attribute;
    } else if (!weight_key_.empty()) {
      fail("two attributes of edges are called weight", "rename one of them");
    } else {
      weight_key_ = key_;
    }
  }

  void close(Contents& contents) {
    const std::string_view name = xml_.name();
    if (name == "edge" && !has_weight_ && first_without_ == nullptr) first_without_ = xml_.at();
    if (name == "edge" && !has_weight_) without_weight_.push_back(contents.weights.size() - 1);
    if (name == "node" || name == "edge") inside_ = Inside::nothing;
    if (name == "port") inside_ = Inside::node;
    if (name == "default") close_default(contents);
    if (name != "data" || inside_ == Inside::nothing) return;
    if (!keys_.contains(key_)) {
      fail(fmt::format("no <key> declares '{}'", key_.substr(0, shown_bytes)),
           "declare every key before the graph");
    }
    if (inside_ == Inside::node) {
      const auto found = contents.attributes.find(key_);
      if (found == contents.attributes.end()) wrong_kind("vertices");
      if (!found->second.set_last(contents.vertices, value_of(found->second))) given_twice();
    } else {
      if (!edge_keys_.contains(key_)) wrong_kind("edges");
      if (key_ != weight_key_) {
        Attribute& attribute = contents.edge_attributes.at(key_);
        if (!attribute.set_last(std::ssize(contents.sources), value_of(attribute))) given_twice();
        return;
      }
      if (has_weight_) given_twice();
      contents.weights.back() = read_weight();
      contents.weighted = has_weight_ = true;
    }
  }

  void close_default(Contents& contents) {
    for (auto* const attributes : {&contents.attributes, &contents.edge_attributes}) {
      const auto found = attributes->find(key_);
      if (found != attributes->end()) found->second.default_value = value_of(found->second);
    }
    if (key_ == weight_key_) default_weight_ = read_weight();
  }

  [[noreturn]] void wrong_kind(const char* items) const {
    fail(fmt::format("key '{}' is declared for something else than {}", key_.substr(0, shown_bytes),
                     items),
         "declare it for them, or for all");
  }
  [[noreturn]] void given_twice() const {
    fail(fmt::format("key '{}' has two values for one item", key_.substr(0, shown_bytes)),
         "keep one of them");
  }

  /// Numbers are finite, as in tables of vertices.
  std::string value_of(const Attribute& attribute) const {
    const auto value = value_of_type(xml_.text(), attribute.type);
    const bool is_real = attribute.type == "float" || attribute.type == "double";
    const bool infinite =
        is_real && value && !is_missing(*value) && !std::isfinite(*parse_any_real(*value));
    if (value && !infinite) return *value;
    fail(fmt::format("'{}' of '{}' is no {}{}", xml_.text().substr(0, shown_bytes),
                     attribute.name.substr(0, shown_bytes), infinite ? "finite " : "",
                     attribute.type),
         "give it that, or change attr.type");
  }

  float read_weight() const {
    const std::string text = value_of_type(xml_.text(), "").value_or("");
    const auto value = parse_real(text);
    if (!value) fail(fmt::format("weight '{}' is no number", text.substr(0, shown_bytes)));
    if (nonfinite_ == Nonfinite::reject && !std::isfinite(*value)) {
      fail("a weight is not finite", "give finite weights, or use --nonfinite allow");
    }
    return *value;
  }

  /// Edges without a weight of their own have the default.
  void settle_weights(Contents& contents) const {
    if (default_weight_) {
      contents.weighted = true;
      for (const std::size_t edge : without_weight_) contents.weights[edge] = *default_weight_;
    } else if (contents.weighted && first_without_ != nullptr) {
      throw LineProblem{first_without_, "an edge has no weight, but others have",
                        "give every edge a weight, or its <key> a <default>"};
    }
  }

  static constexpr std::size_t shown_bytes = 40;
  enum class Inside { nothing, node, edge };
  XmlPull xml_;
  Nonfinite nonfinite_;
  Inside inside_ = Inside::nothing;
  std::string key_;  ///< of the <key> or <data> that is open
  std::set<std::string, std::less<>> keys_, edge_keys_;
  std::string weight_key_;
  std::optional<float> default_weight_;
  std::vector<std::size_t> without_weight_;
  const char* first_without_ = nullptr;
  bool has_weight_ = false;  ///< the edge that is open
  bool directed_by_default_ = true;
  int graphs_ = 0;
};

/// What the file did not say, or said in vain.
void note_contents_of(const Contents& contents, Dataset& dataset) {
  const auto directed = std::count(contents.directed.begin(), contents.directed.end(), true);
  const auto undirected = std::ssize(contents.directed) - directed;
  if (!contents.has_edgedefault) {
    dataset.notes.emplace_back("<graph> has no edgedefault: edges that do not say it are directed");
  }
  if (undirected > 0 && directed > 0) {
    dataset.notes.push_back(fmt::format("{} directed, {} undirected and read as two, one each way",
                                        counted(directed, "edge is", "edges are"),
                                        grouped(undirected)));
  } else if (undirected > 0) {
    dataset.notes.emplace_back("edges are undirected: each is read as two, one each way");
  } else if (directed > 0) {
    dataset.notes.emplace_back("edges are directed");
  }
}

/// The features of all edges, one that is read as two with its row twice.
EdgeFeatures features_of(Contents& contents, const std::vector<std::int64_t>& edge_of,
                         Dataset& dataset) {
  if (edge_of.empty()) return {};
  std::vector<TextColumn> columns;
  for (auto& [key, attribute] : contents.edge_attributes) {
    // A key for everything is one of vertices first, and one without a value says nothing.
    const bool may_speak = attribute.default_value && !contents.attributes.contains(key);
    if (attribute.values.empty() && !may_speak) continue;
    columns.push_back({attribute.name, attribute.filled(std::ssize(contents.sources))});
    attribute.values.clear();
  }
  EdgeFeatures features = edge_features_of(columns, dataset);
  if (features.matrix == nullptr) return {};
  auto rows = std::make_shared<Matrix<float>>(std::ssize(edge_of), features.matrix->cols());
  for (std::int64_t row = 0; row < rows->rows(); ++row) {
    std::copy_n(features.matrix->row(edge_of[static_cast<std::size_t>(row)]), rows->cols(),
                rows->row(row));
  }
  features.matrix = std::move(rows);
  return features;
}

void build_graph(Contents& contents, const std::string& path, const ReadOptions& options,
                 Dataset& dataset) {
  std::vector<VertexId> sources, targets;
  std::vector<std::int64_t> edge_of;
  std::vector<float> weights;
  const auto number_of = [&](const std::string& id) {
    const VertexId vertex = contents.ids.find(id);
    if (vertex >= 0) return vertex;
    damaged(path, fmt::format("an edge names vertex '{}', which there is not", id.substr(0, 40)));
  };
  for (std::size_t k = 0; k < contents.sources.size(); ++k) {
    const VertexId source = number_of(contents.sources[k]);
    const VertexId target = number_of(contents.targets[k]);
    const bool both_ways = !contents.directed[k] && source != target;
    for (int side = 0; side < (both_ways ? 2 : 1); ++side) {
      sources.push_back(side == 0 ? source : target);
      targets.push_back(side == 0 ? target : source);
      edge_of.push_back(static_cast<std::int64_t>(k));
      if (contents.weighted) weights.push_back(contents.weights[k]);
    }
  }
  BuildOptions build{options.duplicates, true, options.progress};
  build.nonfinite = options.nonfinite;
  const Graph graph = naming_file(path, [&] {
    return from_edges(static_cast<VertexId>(contents.vertices), sources, targets, weights, build);
  });
  dataset.edge_features =
      naming_file(path, [&] { return features_of(contents, edge_of, dataset); });
  sort_arrays_of_edges(graph, std::ssize(sources), options.duplicates, path, dataset);
  dataset.graph = graph.with_edge_ids({});
  note_merged_edges(std::ssize(sources), options.duplicates, dataset);
}

}  // namespace

Dataset read_graphml(const std::string& path, const ReadOptions& options) {
  report(options.progress, "reading text");
  TextSource source(path);
  std::string text;
  while (const auto block = source.next()) text += block->text;
  Contents contents;
  report(options.progress, "parsing");
  try {
    GraphmlParser(text, options.nonfinite).parse(contents);
  } catch (const LineProblem& problem) {
    const auto line = std::count(text.c_str(), problem.at, '\n') + 1;
    throw Error(ErrorCode::bad_data, problem.problem, fmt::format("{}: line {}", path, line),
                problem.fix);
  }
  naming_file(path, [&] {
    contents.ids.number_all();
    return 0;
  });
  Dataset dataset;
  dataset.name = stem_of(path);
  build_graph(contents, path, options, dataset);
  dataset.edges_stored = std::ssize(contents.sources);
  dataset.vertex_names = contents.ids.names();
  note_contents_of(contents, dataset);
  std::vector<TextColumn> columns;
  for (auto& [key, attribute] : contents.attributes) {
    columns.push_back({attribute.name, attribute.filled(contents.vertices)});
    attribute.values.clear();
  }
  return naming_file(path, [&] {
    add_columns(columns, dataset);
    dataset.validate(options.nonfinite);
    return dataset;
  });
}

}  // namespace tessera::io
