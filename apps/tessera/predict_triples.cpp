// SPDX-License-Identifier: Apache-2.0
#include "predict_triples.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "describe_triples.hpp"
#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/io/triples.hpp"
#include "tessera/io/writing.hpp"
#include "tessera/train/triples.hpp"
#include "useless.hpp"

namespace tessera::app {
namespace {

constexpr std::int64_t usual_answers = 10;

void require_sense(const Arguments& app, const PredictLinks& links, const std::string& output) {
  for (const auto& option : app.options()) {
    const auto is = [&](const char* flag) { return app.find(flag) == option.get(); };
    if (!option->is_given() || option->group() == "Common options" || is("--data") ||
        is("--checkpoint") || is("--top") || is("--for") || is("--keep-known") || is("--output")) {
      continue;
    }
    throw UselessOption(ErrorCode::invalid_argument, "does nothing for a model of triples",
                        option->names().back(), "leave it out");
  }
  if (links.vertices.empty()) {
    throw Error(ErrorCode::invalid_argument, "nothing says what is asked", "--for",
                "name a file with a head and a relation on each line, with a tab between them");
  }
  if (output.empty() || output.ends_with(".tsv")) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no file for triples", output),
              "--output", "name a file that ends in .tsv");
}

/// The triples of the data by the numbers of the model, as far as it has their names.
Triples known_to(const train::TripleKnowledge& knowledge, const KnowledgeGraph& graph) {
  const auto numbers_in = [](const Names& known, const Names& names) {
    std::map<std::string_view, std::int32_t> number_of;
    for (std::int64_t i = 0; i < known.size(); ++i) {
      number_of[known[i]] = static_cast<std::int32_t>(i);
    }
    std::vector<std::int32_t> numbers;
    for (std::int64_t i = 0; i < names.size(); ++i) {
      const auto found = number_of.find(names[i]);
      numbers.push_back(found == number_of.end() ? -1 : found->second);
    }
    return numbers;
  };
  const std::vector<std::int32_t> entities = numbers_in(knowledge.entities, graph.entities);
  const std::vector<std::int32_t> relations = numbers_in(knowledge.relations, graph.relations);
  Triples known;
  for (const Triples* part : {&graph.train, &graph.validation, &graph.test}) {
    for (std::size_t k = 0; k < part->heads.size(); ++k) {
      const std::int32_t head = entities[static_cast<std::size_t>(part->heads[k])];
      const std::int32_t relation = relations[static_cast<std::size_t>(part->relations[k])];
      const std::int32_t tail = entities[static_cast<std::size_t>(part->tails[k])];
      if (std::min({head, relation, tail}) < 0) continue;
      known.heads.push_back(head);
      known.relations.push_back(relation);
      known.tails.push_back(tail);
    }
  }
  return known;
}

struct Answers {
  std::string text;  ///< lines of head, relation, tail and score
  std::int64_t count = 0;
};

Answers written(const io::NamedQuestions& questions, const train::TripleKnowledge& knowledge,
                const train::TailLists& lists) {
  Answers answers;
  for (std::int64_t i = 0; i < lists.tails.rows(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    for (std::int64_t place = 0; place < lists.tails.cols(); ++place) {
      const VertexId tail = lists.tails(i, place);
      if (tail < 0) break;
      answers.text += fmt::format("{}\t{}\t{}\t{:.6g}\n", knowledge.entities[questions.heads[k]],
                                  knowledge.relations[questions.relations[k]],
                                  knowledge.entities[tail], lists.scores(i, place));
      ++answers.count;
    }
  }
  return answers;
}

}  // namespace

ExitCode predict_triples(Session& session, const Arguments& app, const std::string& source,
                         const std::string& checkpoint, const PredictLinks& links,
                         const std::string& output) {
  require_sense(app, links, output);
  const train::TripleKnowledge knowledge = train::load_triple_knowledge(checkpoint);
  const KnowledgeGraph graph = load_triples(session, source);
  const io::NamedQuestions questions =
      io::read_questions(links.vertices, knowledge.entities, knowledge.relations);
  session.stage("predicting");
  const Triples known = links.keeps_known ? Triples() : known_to(knowledge, graph);
  const train::TailLists lists =
      train::likely_tails(*knowledge.entity_rows, *knowledge.relation_rows, questions.heads,
                          questions.relations, links.top.value_or(usual_answers), &known);
  const Answers answers = written(questions, knowledge, lists);
  if (!output.empty()) io::write_text_file(output, answers.text);
  Table table("ll");
  table.add({"model", knowledge.model});
  table.add({"questions", grouped(std::ssize(questions.heads))});
  table.add({"answers", grouped(answers.count)});
  Json json{{"verb", "predict"}, {"source", source}};
  json.update(brief_json(graph));
  json["task"] = "triples";
  json["checkpoint"] = checkpoint;
  json["questions"] = std::ssize(questions.heads);
  json["answers"] = answers.count;
  if (!output.empty()) {
    table.add({"written", output});
    json["output"] = output;
  }
  session.deliver(headline(graph) + "\n" + table.text(), json);
  return ExitCode::ok;
}

}  // namespace tessera::app
