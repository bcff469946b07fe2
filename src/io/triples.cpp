// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/triples.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"

#include "core/listing.hpp"
#include "io/file.hpp"
#include "io/text.hpp"
#include "io/text_source.hpp"

namespace tessera::io {
namespace {

/// Gives names numbers in the order of their coming.
class NumberedNames {
 public:
  explicit NumberedNames(const char* what) : what_(what) {}

  std::int32_t number_of(std::string_view name) {
    const auto [found, is_new] =
        numbers_.try_emplace(std::string(name), static_cast<std::int32_t>(names_.size()));
    if (!is_new) return found->second;
    if (std::ssize(names_) == std::numeric_limits<std::int32_t>::max()) {
      throw LineProblem{name.data(), fmt::format("more than 2^31 - 1 {}", what_),
                        "divide the file"};
    }
    names_.emplace_back(name);
    return found->second;
  }
  /// Of a name that must be known.
  std::int32_t known(std::string_view name) const {
    const auto found = numbers_.find(std::string(name));
    if (found != numbers_.end()) return found->second;
    throw LineProblem{name.data(), fmt::format("there is no {} {}", what_, in_quotes(name)),
                      "names are those of the triples that the model was trained on"};
  }
  std::int64_t size() const noexcept { return std::ssize(names_); }
  Names names() const { return Names(names_); }

 private:
  const char* what_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

/// Calls `take(fields)` for each line that is not blank, whose columns have names.
template <class Take>
void for_each_line(TextSource& source, std::size_t least, std::size_t most, Take&& take) {
  while (const auto block = source.next()) {
    std::string_view text = block->text;
    while (!text.empty()) {
      std::string_view line = take_line(text);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
      try {
        const std::vector<std::string_view> fields = fields_of(line);
        if (fields.size() < least || fields.size() > most) {
          throw LineProblem{line.data(), fmt::format("has {} columns", fields.size()),
                            "write head, relation and tail with tabs between them"};
        }
        if (std::any_of(fields.begin(), fields.end(), [](auto field) { return field.empty(); })) {
          throw LineProblem{line.data(), "has an empty column",
                            "write head, relation and tail with one tab between them"};
        }
        take(fields);
      } catch (const LineProblem& problem) {
        const std::int64_t offset = block->offset + (line.data() - block->text.data());
        throw Error(ErrorCode::bad_data, problem.problem,
                    fmt::format("{}: line {}", source.path(), source.line_at(offset)), problem.fix);
      }
    }
  }
}

struct TripleHash {
  std::size_t operator()(const std::array<std::int32_t, 3>& triple) const noexcept {
    std::uint64_t hash = 0;
    for (const std::int32_t part : triple) {
      hash = (hash ^ static_cast<std::uint32_t>(part)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return static_cast<std::size_t>(hash);
  }
};
using TripleSet = std::unordered_set<std::array<std::int32_t, 3>, TripleHash>;

class TripleReader {
 public:
  KnowledgeGraph read(const TripleFiles& files) {
    KnowledgeGraph graph;
    known_ = read_part(files.train, "train", graph.train, graph.notes);
    in_train_ = entities_.size();
    relations_in_train_ = relations_.size();
    read_judged(files.validation, "validation", graph.validation, graph.notes);
    read_judged(files.test, "test", graph.test, graph.notes);
    graph.entities = entities_.names();
    graph.relations = relations_.names();
    return graph;
  }

 private:
  TripleSet read_part(const std::string& path, const char* part, Triples& triples,
                      std::vector<std::string>& notes) {
    TripleSet seen;
    if (path.empty()) return seen;
    std::int64_t repeated = 0;
    TextSource source(path);
    for_each_line(source, 3, 3, [&](const std::vector<std::string_view>& fields) {
      const std::int32_t head = entities_.number_of(fields[0]);
      const std::int32_t relation = relations_.number_of(fields[1]);
      const std::int32_t tail = entities_.number_of(fields[2]);
      if (!seen.insert({head, relation, tail}).second) {
        ++repeated;
        return;
      }
      triples.heads.push_back(head);
      triples.relations.push_back(relation);
      triples.tails.push_back(tail);
    });
    if (seen.empty()) damaged(path, "there is no triple in it");
    if (repeated > 0) {
      notes.push_back(fmt::format("{}: {} triples that are listed again are kept once", part,
                                  grouped(repeated)));
    }
    return seen;
  }

  void read_judged(const std::string& path, const char* part, Triples& triples,
                   std::vector<std::string>& notes) {
    const TripleSet seen = read_part(path, part, triples, notes);
    const auto both = std::count_if(seen.begin(), seen.end(),
                                    [&](const auto& triple) { return known_.contains(triple); });
    if (both > 0) {
      notes.push_back(fmt::format("{}: {} of {} triples are in train, too", part, grouped(both),
                                  grouped(std::ssize(seen))));
    }
    std::set<VertexId> unknown;
    std::int64_t touched = 0;
    for (std::size_t k = 0; k < triples.heads.size(); ++k) {
      const bool has_unknown = note_unknown(triples.heads[k], unknown);
      touched += note_unknown(triples.tails[k], unknown) || has_unknown ? 1 : 0;
    }
    if (!unknown.empty()) {
      notes.push_back(fmt::format("{}: {} entities that train does not have, in {} triples", part,
                                  grouped(std::ssize(unknown)), grouped(touched)));
    }
    const auto later = std::count_if(triples.relations.begin(), triples.relations.end(),
                                     [&](std::int32_t r) { return r >= relations_in_train_; });
    if (later > 0) {
      notes.push_back(fmt::format("{}: {} triples of relations that train does not have", part,
                                  grouped(later)));
    }
  }

  bool note_unknown(VertexId entity, std::set<VertexId>& unknown) const {
    if (entity < in_train_) return false;
    unknown.insert(entity);
    return true;
  }

  NumberedNames entities_{"entity"}, relations_{"relation"};
  TripleSet known_;
  std::int64_t in_train_ = 0, relations_in_train_ = 0;
};

/// The one file of a folder that has one of these names; "": none.
std::string part_in(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    for (const char* const ending : {"", ".tsv", ".txt"}) {
      for (const char* const packed : {"", ".gz"}) {
        const std::filesystem::path path = folder / (name + ending + packed);
        std::error_code ignored;
        if (std::filesystem::is_regular_file(path, ignored)) found.push_back(path.string());
      }
    }
  }
  if (found.size() > 1) {
    throw Error(ErrorCode::bad_data, fmt::format("holds {}, which are one part", listed(found)),
                folder.string(), "leave one of them there");
  }
  return found.empty() ? "" : found.front();
}

void add_all(NumberedNames& to, const Names& names) {
  for (std::int64_t i = 0; i < names.size(); ++i) {
    if (to.number_of(names[i]) == i) continue;
    throw Error(ErrorCode::bad_data, fmt::format("{} is named twice", in_quotes(names[i])),
                "names of triples", "train the model again");
  }
}

}  // namespace

TripleFiles triple_files_in(const std::string& folder) {
  const TripleFiles files{part_in(folder, {"train"}),
                          part_in(folder, {"valid", "validation", "dev"}),
                          part_in(folder, {"test"})};
  if (!files.train.empty()) return files;
  throw Error(ErrorCode::bad_data, "holds no file train.tsv, train.txt or train, packed or not",
              folder, "name the folder that has train, valid and test");
}

bool holds_triples(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return false;
  return !part_in(path, {"train"}).empty();
}

KnowledgeGraph read_triples(const std::string& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  KnowledgeGraph graph =
      read_triples(is_folder ? triple_files_in(path) : TripleFiles{path, "", ""});
  const std::filesystem::path whole(path);
  graph.name = is_folder ? (whole.has_filename() ? whole : whole.parent_path()).filename().string()
                         : stem_of(path);
  return graph;
}

KnowledgeGraph read_triples(const TripleFiles& files) {
  KnowledgeGraph graph = TripleReader().read(files);
  graph.name = stem_of(files.train);
  return graph;
}

NamedQuestions read_questions(const std::string& path, const Names& entities,
                              const Names& relations) {
  NumberedNames known_entities("entity"), known_relations("relation");
  add_all(known_entities, entities);
  add_all(known_relations, relations);
  NamedQuestions questions;
  TextSource source(path);
  for_each_line(source, 2, 3, [&](const std::vector<std::string_view>& fields) {
    questions.heads.push_back(known_entities.known(fields[0]));
    questions.relations.push_back(known_relations.known(fields[1]));
  });
  return questions;
}

}  // namespace tessera::io
