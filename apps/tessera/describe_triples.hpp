// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.hpp"
#include "session.hpp"
#include "tessera/data/knowledge_graph.hpp"

namespace tessera::app {

/// Reads triples, and hands the session the notes.
KnowledgeGraph load_triples(Session& session, const std::string& path);

/// "FB15k-237: 14,541 entities, 237 relations, 310,116 triples".
std::string headline(const KnowledgeGraph& graph);
/// Name and counts.
Json brief_json(const KnowledgeGraph& graph);

/// What `info` says of a folder of triples, and of a model of them.
void describe_triples(Session& session, const std::string& path);
void describe_triple_model(Session& session, const std::string& path);

}  // namespace tessera::app
