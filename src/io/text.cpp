// SPDX-License-Identifier: Apache-2.0
#include "io/text.hpp"

#include <algorithm>
#include <charconv>

#include "io/scan.hpp"

namespace tessera::io {

void LineScanner::skip_space() {
  while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
}

std::string_view LineScanner::word() {
  skip_space();
  const auto end = std::find_if(rest_.begin(), rest_.end(), is_blank);
  const auto length = static_cast<std::size_t>(end - rest_.begin());
  const std::string_view found = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return found;
}

std::optional<std::int64_t> LineScanner::integer() {
  skip_space();
  if (rest_.size() > 1 && rest_[0] == '+' && rest_[1] != '-') rest_.remove_prefix(1);
  std::int64_t value = 0;
  const char* const end = rest_.data() + rest_.size();
  const auto [stop, problem] = std::from_chars(rest_.data(), end, value);
  if (problem != std::errc() || (stop != end && !is_blank(*stop))) return {};
  rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
  return value;
}

bool is_comment(std::string_view line) {
  const auto first = std::find_if_not(line.begin(), line.end(), is_blank);
  return first == line.end() || *first == '%';
}

}  // namespace tessera::io
