// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/train/triples.hpp"

#include "io/array.hpp"
#include "io/container_layout.hpp"
#include "io/sections.hpp"
#include "train/stored_names.hpp"

namespace tessera::train {
namespace {

void require_rows(const std::shared_ptr<const Matrix<float>>& rows, const Names& names,
                  const char* what, const std::string& path) {
  const std::int64_t found = rows ? rows->rows() : 0;
  if (!rows || found != names.size()) {
    throw Error(ErrorCode::bad_data,
                fmt::format("has {} rows for {} {}", found, names.size(), what), path,
                "train the model again");
  }
  const float* const end = rows->data() + rows->size();
  if (std::all_of(rows->data(), end, [](float number) { return std::isfinite(number); })) return;
  throw Error(ErrorCode::bad_data, fmt::format("has numbers of {} that are not finite", what), path,
              "train the model again");
}

}  // namespace

void save(const TripleKnowledge& knowledge, const std::string& path) {
  std::vector<io::NamedArray> arrays;
  arrays.emplace_back(std::string(io::triple_model_section), io::stored_text(knowledge.model));
  add_names("entity", knowledge.entities, arrays);
  add_names("relation", knowledge.relations, arrays);
  arrays.emplace_back("entity_rows", io::stored(knowledge.entity_rows));
  arrays.emplace_back("relation_rows", io::stored(knowledge.relation_rows));
  io::write_sections(path, arrays);
}

bool holds_triple_knowledge(const std::string& path) {
  return io::holds_section(path, io::triple_model_section);
}

TripleKnowledge load_triple_knowledge(const std::string& path) {
  const io::InputFile file(path);
  TripleKnowledge knowledge;
  StoredNames entities, relations;
  bool is_one = false;
  for (const io::Section& section : io::read_container_header(file)) {
    io::SectionReader array(file, section);
    if (section.name == io::triple_model_section) {
      knowledge.model = io::read_text(array);
      is_one = true;
    } else if (section.name == "entity_rows") {
      knowledge.entity_rows = io::read_matrix(array);
    } else if (section.name == "relation_rows") {
      knowledge.relation_rows = io::read_matrix(array);
    } else if (!entities.take("entity", array) && !relations.take("relation", array)) {
      array.reject("is no part of a model of triples");
    }
  }
  if (!is_one) {
    throw Error(ErrorCode::bad_data, "is no model of triples", path,
                "give the file that 'tessera train --task triples' wrote");
  }
  knowledge.entities = entities.names();
  knowledge.relations = relations.names();
  require_rows(knowledge.entity_rows, knowledge.entities, "entities", path);
  require_rows(knowledge.relation_rows, knowledge.relations, "relations", path);
  if (knowledge.entity_rows->cols() != knowledge.relation_rows->cols()) {
    throw Error(ErrorCode::bad_data, "has entities and relations of different widths", path,
                "train the model again");
  }
  return knowledge;
}

}  // namespace tessera::train
