#include "cache/fill/piece_buffers.h"

#include <mutex>
#include <vector>

#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr size_t kKeptMax = 8;
constexpr size_t kOwnBelowBytes = limits::kPieceBytes / 2;  // smaller ones are malloc's business

}  // namespace

struct PieceBuffers::Kept {
  std::mutex mutex;
  std::vector<std::unique_ptr<char[]>> buffers;
};

PieceBuffers::PieceBuffers() : kept_(std::make_shared<Kept>()) {}

std::shared_ptr<char[]> PieceBuffers::get(size_t size_bytes) {
  if (size_bytes < kOwnBelowBytes) return std::shared_ptr<char[]>(new char[size_bytes]);
  std::unique_ptr<char[]> buffer;
  {
    std::lock_guard lock(kept_->mutex);
    if (!kept_->buffers.empty()) {
      buffer = std::move(kept_->buffers.back());
      kept_->buffers.pop_back();
    }
  }
  if (!buffer) buffer.reset(new char[limits::kPieceBytes]);
  return std::shared_ptr<char[]>(buffer.release(), [kept = kept_](char* ended) {
    std::unique_ptr<char[]> back(ended);
    std::lock_guard lock(kept->mutex);
    if (kept->buffers.size() < kKeptMax) kept->buffers.push_back(std::move(back));
  });
}

}  // namespace nezha::cache
