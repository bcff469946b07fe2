// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tessera/core/error.hpp"

#include "io/zip.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t window_bytes = 1 << 16;
/// Small enough that the checksum finds the bytes still in the cache.
constexpr std::size_t step_bytes = 1 << 18;

}  // namespace

ZipEntryReader::ZipEntryReader(const InputFile& file, const ZipEntry& entry)
    : file_(file), entry_(entry), where_(file.path() + ": '" + entry.name + "'") {
  if (entry.method == ZipMethod::deflated) {
    inflater_.emplace(DeflateFormat::raw, where_);
    window_ = Buffer<std::byte>(std::min(entry.packed_size, window_bytes));
  }
}

void ZipEntryReader::read(std::span<std::byte> out) {
  if (static_cast<std::int64_t>(out.size()) > remaining()) damaged(where_, "the array ends early");
  while (!out.empty()) {
    const auto step = out.first(std::min(out.size(), step_bytes));
    if (inflater_) {
      read_deflated(step);
    } else {
      read_stored(step);
    }
    crc_.add(step);
    produced_ += static_cast<std::int64_t>(step.size());
    out = out.subspan(step.size());
  }
  if (remaining() == 0) check_end();
}

void ZipEntryReader::read_stored(std::span<std::byte> out) {
  file_.read(entry_.data_offset + consumed_, out);
  consumed_ += static_cast<std::int64_t>(out.size());
}

bool ZipEntryReader::refill() {
  if (!unread_.empty()) return true;
  const auto length = std::min(window_.size(), entry_.packed_size - consumed_);
  const auto fresh = window_.span().first(static_cast<std::size_t>(length));
  file_.read(entry_.data_offset + consumed_, fresh);
  consumed_ += length;
  unread_ = fresh;
  return length > 0;
}

std::size_t ZipEntryReader::inflate_some(std::span<std::byte> out) {
  const bool fed = refill();
  const auto step = inflater_->advance(unread_, out);
  unread_ = unread_.subspan(step.consumed);
  stream_ended_ = step.finished;
  if (step.produced < out.size() && !stream_ended_ && !fed) {
    damaged(where_, "the packed array ends early");
  }
  return step.produced;
}

void ZipEntryReader::read_deflated(std::span<std::byte> out) {
  while (!out.empty()) {
    if (stream_ended_) damaged(where_, "holds fewer bytes than the directory says");
    out = out.subspan(inflate_some(out));
  }
}

void ZipEntryReader::check_end() {
  // Having given its last byte, a stream may still have its end mark to read, but nothing more.
  std::byte surplus[1];
  while (inflater_ && !stream_ended_) {
    if (inflate_some(surplus) > 0) damaged(where_, "holds more bytes than the directory says");
  }
  if (!unread_.empty() || consumed_ != entry_.packed_size) {
    damaged(where_, "holds more bytes than the directory says");
  }
  if (crc_.value() != entry_.crc) damaged(where_, "the checksum does not match");
}

}  // namespace tessera::io
