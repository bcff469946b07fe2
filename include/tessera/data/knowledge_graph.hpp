// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/data/names.hpp"
#include "tessera/graph/relational.hpp"

namespace tessera {

/// Facts about entities that have names: those that a model learns from, and those that it is
/// judged by.
struct KnowledgeGraph {
  std::string name;
  Names entities, relations;  ///< in the order of their numbers
  Triples train, validation, test;
  /// What a reader did that its caller may want to know.
  std::vector<std::string> notes;

  VertexId num_entities() const noexcept { return static_cast<VertexId>(entities.size()); }
  std::int32_t num_relations() const noexcept {
    return static_cast<std::int32_t>(relations.size());
  }
  /// Throws `bad_data` where a triple names an entity or a relation that has no name.
  void validate() const;
};

}  // namespace tessera
