// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/plan_store.hpp"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/io/writing.hpp"

#include "io/file.hpp"
#include "io/text.hpp"
#include "ops/plan/tab_fields.hpp"

namespace tessera::ops {
namespace {

constexpr std::string_view title = "tessera plans";
constexpr int format_number = 1;
constexpr const char* remake = "make it again with --save";

[[noreturn]] void reject(const std::string& problem, const std::string& where) {
  throw Error(ErrorCode::bad_data, problem, where, remake);
}

double time_of(const std::string& text, const std::string& where) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end || !(value >= 0)) {
    reject(fmt::format("'{}' is no time", text.substr(0, 40)), where);
  }
  return value;
}

void check_title(std::string_view line, const std::string& path) {
  const std::vector<std::string> fields = fields_of(line);
  if (fields.size() != 2 || fields[0] != title) {
    throw Error(ErrorCode::bad_data, "not a file of plans", path,
                "give a file that 'tessera plan --save' wrote");
  }
  if (fields[1] != std::to_string(format_number)) {
    reject(fmt::format("plans of format {}, this version reads format {}", fields[1].substr(0, 20),
                       format_number),
           path);
  }
}

void require_names(std::span<const std::string> fields, const std::string& where) {
  constexpr const char* names[] = {"record", "op", "graph", "details", "device", "kernel"};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].empty()) reject(fmt::format("a choice with an empty {}", names[i]), where);
  }
}

/// What is wrong with the last candidate of a choice.
void require_sense(const StoredChoice& choice, const std::string& where) {
  const Candidate& candidate = choice.candidates.back();
  if (candidate.kernel.empty()) reject("a candidate with an empty kernel", where);
  if (candidate.verdict == "chosen" && candidate.kernel != choice.kernel) {
    reject(fmt::format("candidate '{}' is marked as chosen, but the choice is '{}'",
                       candidate.kernel.substr(0, 80), choice.kernel.substr(0, 80)),
           where);
  }
}

std::vector<StoredChoice> parsed(std::string_view text, const std::string& path) {
  check_title(io::take_line(text), path);
  std::vector<StoredChoice> choices;
  std::set<std::vector<std::string>> problems;
  for (std::int64_t number = 2; !text.empty(); ++number) {
    const std::string_view line = io::take_line(text);
    if (line.empty()) continue;
    const std::string where = fmt::format("{}, line {}", path, number);
    const std::vector<std::string> fields = fields_of(line);
    if (fields[0] == "choice" && fields.size() == 6) {
      require_names(fields, where);
      choices.push_back({{fields[1], fields[2], fields[3], fields[4]}, fields[5], {}});
      if (!problems.insert(std::vector(fields.begin() + 1, fields.begin() + 5)).second) {
        reject("a second choice for the same problem", where);
      }
    } else if (fields[0] == "candidate" && fields.size() == 5 && !choices.empty()) {
      choices.back().candidates.push_back(
          {fields[1], fields[4], time_of(fields[2], where), time_of(fields[3], where)});
      require_sense(choices.back(), where);
    } else {
      reject("neither a choice nor a candidate of one", where);
    }
  }
  return choices;
}

std::string written(const StoredChoice& choice) {
  const PlanKey& key = choice.key;
  std::string text = fmt::format("choice\t{}\t{}\t{}\t{}\t{}\n", field(key.op), field(key.graph),
                                 field(key.details), field(key.device), field(choice.kernel));
  for (const Candidate& candidate : choice.candidates) {
    text += fmt::format("candidate\t{}\t{:.4g}\t{:.4g}\t{}\n", field(candidate.kernel),
                        candidate.predicted_us, candidate.measured_us, field(candidate.verdict));
  }
  return text;
}

/// What a store has that comes nearest to the problem that it does not have.
std::string difference(const std::vector<StoredChoice>& choices, const PlanKey& key) {
  if (choices.empty()) return "it is empty";
  const auto other_graph = [&](const StoredChoice& one) { return one.key.graph != key.graph; };
  if (std::all_of(choices.begin(), choices.end(), other_graph)) {
    return fmt::format("it is of another graph ({}, not {})", choices[0].key.graph, key.graph);
  }
  const auto other_device = [&](const StoredChoice& one) { return one.key.device != key.device; };
  if (std::all_of(choices.begin(), choices.end(), other_device)) {
    return fmt::format("it is of another device ({}, not {})", choices[0].key.device, key.device);
  }
  return fmt::format("it has {}, {}", choices[0].key.op, choices[0].key.details);
}

}  // namespace

struct PlanStore::State {
  mutable std::mutex mutex;
  std::vector<StoredChoice> choices;

  auto found(const PlanKey& key) {
    return std::find_if(choices.begin(), choices.end(),
                        [&](const StoredChoice& choice) { return choice.key == key; });
  }
};

PlanStore::PlanStore() : state_(std::make_unique<State>()) {}
PlanStore::PlanStore(PlanStore&&) noexcept = default;
PlanStore& PlanStore::operator=(PlanStore&&) noexcept = default;
PlanStore::~PlanStore() = default;

PlanStore PlanStore::parse(std::string_view text, const std::string& where) {
  PlanStore store;
  store.state_->choices = parsed(text, where);
  return store;
}

PlanStore PlanStore::load(const std::string& path) {
  const Buffer<std::byte> bytes = io::InputFile(path).read_all();
  return parse(io::text_of(bytes), path);
}

std::string PlanStore::to_text() const {
  std::string text = fmt::format("{}\t{}\n", title, format_number);
  const std::scoped_lock lock(state_->mutex);
  for (const StoredChoice& choice : state_->choices) text += written(choice);
  return text;
}

void PlanStore::save(const std::string& path) const { io::write_text_file(path, to_text()); }

void PlanStore::remember_all(const PlanStore& other) {
  std::vector<StoredChoice> choices;
  {
    const std::scoped_lock lock(other.state_->mutex);
    choices = other.state_->choices;
  }
  for (StoredChoice& choice : choices) remember(std::move(choice));
}

std::size_t PlanStore::size() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->choices.size();
}

std::optional<StoredChoice> PlanStore::find(const PlanKey& key) const {
  const std::scoped_lock lock(state_->mutex);
  const auto place = state_->found(key);
  if (place == state_->choices.end()) return std::nullopt;
  return *place;
}

StoredChoice PlanStore::require(const PlanKey& key) const {
  if (std::optional<StoredChoice> choice = find(key)) return std::move(*choice);
  const std::scoped_lock lock(state_->mutex);
  throw Error(ErrorCode::bad_data,
              fmt::format("no stored plan for {}, {}: {}", key.op, key.details,
                          difference(state_->choices, key)),
              "plan store", "make a plan for this problem and save it");
}

void PlanStore::remember(StoredChoice choice) {
  const std::scoped_lock lock(state_->mutex);
  const auto place = state_->found(choice.key);
  if (place == state_->choices.end()) {
    state_->choices.push_back(std::move(choice));
  } else {
    *place = std::move(choice);
  }
}

}  // namespace tessera::ops
