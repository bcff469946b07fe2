// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/file.hpp"

namespace tessera::io {

/// The right to read a file, change it and write it again, which one process has at a time: a lock
/// on ".tessera-NAME.lock" beside the file. The system gives it back when its process ends, however
/// that ends. Where the file system has no locks, as some network file systems, all have it.
class FileLock {
 public:
  /// Waits until it is free; throws `io` where that takes half a minute.
  explicit FileLock(const std::string& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  std::string name_;
  Descriptor descriptor_;
};

}  // namespace tessera::io
