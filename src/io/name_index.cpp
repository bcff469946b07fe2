// SPDX-License-Identifier: Apache-2.0
#include "io/name_index.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "tessera/core/error.hpp"

namespace tessera::io {
namespace {

/// Other bits than those of the slot.
std::uint32_t kept_of(std::size_t hash) { return static_cast<std::uint32_t>(hash >> 26); }

}  // namespace

std::size_t NameIndex::hash_of(std::string_view name) noexcept {
  return std::hash<std::string_view>()(name);
}

std::size_t NameIndex::Shard::slot_of(std::string_view name, std::size_t hash) const {
  const std::size_t mask = slots.size() - 1;
  for (std::size_t place = hash & mask;; place = (place + 1) & mask) {
    const Slot& slot = slots[place];
    if (slot.entry == 0) return place;
    if (slot.hash == kept_of(hash) && text(entries[slot.entry - 1]) == name) return place;
  }
}

void NameIndex::Shard::append(std::string_view name, std::int64_t place) {
  Entry& entry = entries.emplace_back();
  entry.place = place;
  entry.length = static_cast<std::uint32_t>(name.size());
  entry.number = -1;
  if (entry.length <= Entry::short_length) {
    std::copy(name.begin(), name.end(), entry.short_text);
  } else {
    entry.begin = bytes.size();
    bytes.append(name);
  }
}

void NameIndex::Shard::grow() {
  if (2 * (entries.size() + 1) <= slots.size()) return;
  slots.assign(std::max<std::size_t>(16, 2 * slots.size()), {});
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string_view name = text(entries[i]);
    const std::size_t hash = hash_of(name);
    slots[slot_of(name, hash)] = {static_cast<std::uint32_t>(i + 1), kept_of(hash)};
  }
}

bool NameIndex::add(std::string_view name, std::int64_t place) {
  const std::size_t hash = hash_of(name);
  Shard& shard = shards_[shard_of(hash)];
  const std::scoped_lock lock(shard.mutex);
  shard.grow();
  Slot& slot = shard.slots[shard.slot_of(name, hash)];
  if (slot.entry != 0) {
    Entry& entry = shard.entries[slot.entry - 1];
    // Writing in vain would take the line away from the other threads.
    if (place < entry.place) entry.place = place;
    return false;
  }
  shard.append(name, place);
  slot = {static_cast<std::uint32_t>(shard.entries.size()), kept_of(hash)};
  return true;
}

template <class Visit>
void NameIndex::visit_shards(std::span<const std::size_t> hashes, Visit&& visit) const {
  for (const std::size_t hash : hashes) {
    const Shard& shard = shards_[shard_of(hash)];
    std::unique_lock lock(shard.mutex, std::defer_lock);
    if (!is_numbered_) lock.lock();
    if (!shard.slots.empty()) visit(shard, hash);
  }
}

void NameIndex::fetch(std::span<const std::size_t> hashes) const noexcept {
  visit_shards(hashes, [](const Shard& shard, std::size_t hash) {
    __builtin_prefetch(&shard.slots[hash & (shard.slots.size() - 1)]);
  });
  visit_shards(hashes, [](const Shard& shard, std::size_t hash) {
    const std::size_t mask = shard.slots.size() - 1;
    std::size_t place = hash & mask;
    while (shard.slots[place].entry != 0 && shard.slots[place].hash != kept_of(hash)) {
      place = (place + 1) & mask;
    }
    const std::uint32_t entry = shard.slots[place].entry;
    if (entry != 0) __builtin_prefetch(&shard.entries[entry - 1]);
  });
}

std::int64_t NameIndex::size() const noexcept {
  std::int64_t count = 0;
  for (const Shard& shard : shards_) count += std::ssize(shard.entries);
  return count;
}

void NameIndex::number_all() {
  if (size() > std::numeric_limits<VertexId>::max()) {
    throw Error(ErrorCode::bad_data, "more different ids than a graph has vertices", "ids",
                "use at most 2^31 - 1");
  }
  std::vector<Entry*> order;
  order.reserve(static_cast<std::size_t>(size()));
  for (Shard& shard : shards_) {
    for (Entry& entry : shard.entries) order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(),
            [](const Entry* a, const Entry* b) { return a->place < b->place; });
  for (std::size_t i = 0; i < order.size(); ++i) order[i]->number = static_cast<VertexId>(i);
  is_numbered_ = true;
}

VertexId NameIndex::find(std::string_view name) const noexcept {
  const std::size_t hash = hash_of(name);
  const Shard& shard = shards_[shard_of(hash)];
  if (shard.slots.empty()) return -1;
  const std::uint32_t entry = shard.slots[shard.slot_of(name, hash)].entry;
  return entry == 0 ? -1 : shard.entries[entry - 1].number;
}

Names NameIndex::names() const {
  std::vector<std::pair<const Shard*, const Entry*>> order(static_cast<std::size_t>(size()));
  std::int64_t bytes = 0;
  for (const Shard& shard : shards_) {
    for (const Entry& entry : shard.entries) {
      order[static_cast<std::size_t>(entry.number)] = {&shard, &entry};
      bytes += entry.length;
    }
  }
  Buffer<std::int64_t> ends(std::ssize(order));
  Buffer<std::uint8_t> text(bytes);
  std::int64_t end = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string_view name = order[i].first->text(*order[i].second);
    std::copy(name.begin(), name.end(), text.begin() + end);
    end += std::ssize(name);
    ends[static_cast<std::int64_t>(i)] = end;
  }
  return {std::move(ends), std::move(text)};
}

}  // namespace tessera::io
