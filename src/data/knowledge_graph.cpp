// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/knowledge_graph.hpp"

#include "graph/triple_order.hpp"

namespace tessera {

void KnowledgeGraph::validate() const {
  for (const Triples* part : {&train, &validation, &test}) {
    require_triples(*part, num_entities(), num_relations());
  }
}

}  // namespace tessera
