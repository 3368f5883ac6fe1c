// PieceBuffers: memory for the pieces of bodies under way. Buffers of a full piece are kept and given out again: fresh
// ones would cost a page fault for every 4 KiB.
// Threads: any. Buffers may outlive the PieceBuffers.
#pragma once

#include <cstddef>
#include <memory>

namespace nezha::cache {

class PieceBuffers {
 public:
  PieceBuffers();
  // At least `size_bytes`, not initialised. REQUIRES: size_bytes <= limits::kPieceBytes.
  std::shared_ptr<char[]> get(size_t size_bytes);

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

}  // namespace nezha::cache
