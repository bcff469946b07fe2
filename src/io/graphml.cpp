// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/graphml.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/dataset_arrays.hpp"
#include "io/name_index.hpp"
#include "io/table_columns.hpp"
#include "io/text.hpp"
#include "io/xml_pull.hpp"

namespace tessera::io {
namespace {

/// An attribute of vertices: its value for each of them, empty where it has none.
struct Attribute {
  std::string name;
  std::vector<std::string> values;
};

/// What the file says, vertices by number.
struct Contents {
  NameIndex ids;
  std::int64_t vertices = 0;
  std::vector<std::string> sources, targets;
  std::vector<bool> directed;
  std::vector<float> weights;
  bool weighted = false;
  std::map<std::string, Attribute> attributes;  ///< of vertices, by key
  std::map<std::string, std::string> edge_keys;
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
          return;
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

  void open(Contents& contents) {
    const std::string_view name = xml_.name();
    if (name == "key") {
      open_key(contents);
    } else if (name == "graph") {
      if (graphs_++ > 0) fail("holds more than one graph", "keep one graph per file");
      const std::string* const direction = xml_.attribute("edgedefault");
      directed_by_default_ = direction == nullptr || *direction != "undirected";
    } else if (name == "node") {
      if (!contents.ids.add(require("id"), contents.vertices)) {
        fail(fmt::format("vertex '{}' occurs more than once", require("id").substr(0, 40)));
      }
      ++contents.vertices;
      inside_ = Inside::node;
    } else if (name == "edge") {
      contents.sources.push_back(require("source"));
      contents.targets.push_back(require("target"));
      const std::string* const directed = xml_.attribute("directed");
      contents.directed.push_back(directed == nullptr ? directed_by_default_ : *directed == "true");
      contents.weights.push_back(1);
      inside_ = Inside::edge;
    } else if (name == "data") {
      const std::string* const key = xml_.attribute("key");
      key_ = key == nullptr ? std::string() : *key;
    } else if (name == "hyperedge") {
      fail("holds edges of more than two vertices", "replace them by edges");
    }
  }

  void open_key(Contents& contents) {
    const std::string* const name = xml_.attribute("attr.name");
    const std::string& id = require("id");
    const std::string* const kind = xml_.attribute("for");
    const std::string shown = name == nullptr ? id : *name;
    if (kind == nullptr || *kind == "node" || *kind == "all") contents.attributes[id] = {shown, {}};
    if (kind == nullptr || *kind == "edge" || *kind == "all") contents.edge_keys[id] = shown;
  }

  void close(Contents& contents) {
    const std::string_view name = xml_.name();
    if (name == "node" || name == "edge") inside_ = Inside::nothing;
    if (name != "data") return;
    const std::string& text = xml_.text();
    if (inside_ == Inside::node) {
      const auto found = contents.attributes.find(key_);
      if (found == contents.attributes.end()) return;
      auto& values = found->second.values;
      values.resize(static_cast<std::size_t>(contents.vertices));
      values.back() = trimmed(text);
    } else if (inside_ == Inside::edge) {
      const auto found = contents.edge_keys.find(key_);
      if (found != contents.edge_keys.end() && found->second == "weight") take_weight(contents);
    }
  }

  void take_weight(Contents& contents) {
    const auto value = parse_real(trimmed(xml_.text()));
    if (!value) fail(fmt::format("weight '{}' is no number", trimmed(xml_.text()).substr(0, 40)));
    if (nonfinite_ == Nonfinite::reject && !std::isfinite(*value)) {
      fail("a weight is not finite", "give finite weights, or use --nonfinite allow");
    }
    contents.weights.back() = *value;
    contents.weighted = true;
  }

  static std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
  }

  enum class Inside { nothing, node, edge };
  XmlPull xml_;
  Nonfinite nonfinite_;
  Inside inside_ = Inside::nothing;
  std::string key_;
  bool directed_by_default_ = true;
  int graphs_ = 0;
};

Graph graph_of(const Contents& contents, const std::string& path, const ReadOptions& options) {
  std::vector<VertexId> sources, targets;
  std::vector<float> weights;
  const auto number_of = [&](const std::string& id) {
    const VertexId vertex = contents.ids.find(id);
    if (vertex >= 0) return vertex;
    throw Error(ErrorCode::bad_data,
                fmt::format("an edge names vertex '{}', which there is not", id.substr(0, 40)),
                path, damaged_file_fix);
  };
  for (std::size_t k = 0; k < contents.sources.size(); ++k) {
    const VertexId source = number_of(contents.sources[k]);
    const VertexId target = number_of(contents.targets[k]);
    const bool both_ways = !contents.directed[k] && source != target;
    for (int side = 0; side < (both_ways ? 2 : 1); ++side) {
      sources.push_back(side == 0 ? source : target);
      targets.push_back(side == 0 ? target : source);
      if (contents.weighted) weights.push_back(contents.weights[k]);
    }
  }
  BuildOptions build{options.duplicates, false, options.progress};
  build.nonfinite = options.nonfinite;
  return naming_file(path, [&] {
    return from_edges(static_cast<VertexId>(contents.vertices), sources, targets, weights, build);
  });
}

}  // namespace

Dataset read_graphml(const std::string& path, const ReadOptions& options) {
  report(options.progress, "reading text");
  const Buffer<std::byte> bytes = load_text(path);
  const std::string_view text = text_of(bytes);
  Contents contents;
  report(options.progress, "parsing");
  try {
    GraphmlParser(text, options.nonfinite).parse(contents);
  } catch (const LineProblem& problem) {
    const auto line = std::count(text.data(), problem.at, '\n') + 1;
    throw Error(ErrorCode::bad_data, problem.problem, fmt::format("{}: line {}", path, line),
                problem.fix);
  }
  naming_file(path, [&] {
    contents.ids.number_all();
    return 0;
  });
  Dataset dataset;
  dataset.name = stem_of(path);
  dataset.graph = graph_of(contents, path, options);
  dataset.edges_stored = std::ssize(contents.sources);
  dataset.vertex_names = contents.ids.names();
  std::vector<TextColumn> columns;
  for (auto& [key, attribute] : contents.attributes) {
    attribute.values.resize(static_cast<std::size_t>(contents.vertices));
    columns.push_back({attribute.name, std::move(attribute.values)});
  }
  return naming_file(path, [&] {
    add_columns(std::move(columns), dataset);
    dataset.validate(options.nonfinite);
    return dataset;
  });
}

}  // namespace tessera::io
