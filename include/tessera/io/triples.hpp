// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/data/knowledge_graph.hpp"

/// Facts as the benchmarks of knowledge graphs list them: a line of head, relation and tail by
/// name, with tabs between them, plain or gzipped.
namespace tessera::io {

/// A file for each part; the latter two may be "".
struct TripleFiles {
  std::string train, validation, test;
};

/// Those of a folder: `train`, `valid` (or `validation`, `dev`) and `test`, each with the ending
/// .tsv, .txt or none, and .gz behind it where it is packed. Throws `bad_data` where train is
/// missing, or a part is there twice.
TripleFiles triple_files_in(const std::string& folder);
/// Whether a path is a folder with a file of such a name for train.
bool holds_triples(const std::string& path);

/// A folder of such files, or a file, whose triples are those of train.
KnowledgeGraph read_triples(const std::string& path);

/// Entities and relations are numbered in the order in which they come first, those of train before
/// the others. A fact that a part lists twice is kept once; notes count these, those of validation
/// and test that train has, too, and the entities that it does not have.
KnowledgeGraph read_triples(const TripleFiles& files);

/// Questions by name: in each line a head and a relation, with a tab between them; a third column
/// is not read.
struct NamedQuestions {
  std::vector<VertexId> heads;
  std::vector<std::int32_t> relations;
};
/// Throws `bad_data` for a name that is not known.
NamedQuestions read_questions(const std::string& path, const Names& entities,
                              const Names& relations);

}  // namespace tessera::io
