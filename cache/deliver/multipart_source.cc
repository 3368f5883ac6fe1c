#include "cache/deliver/multipart_source.h"

#include <random>

#include "cache/deliver/deliver.h"
#include "nezha/http/range.h"

namespace nezha::cache {
namespace {

class ChainSource final : public BodySource {
 public:
  explicit ChainSource(std::vector<std::unique_ptr<BodySource>> sources) : sources_(std::move(sources)) {}
  std::optional<Result<PinnedBytes>> try_next() override {
    for (; current_ < sources_.size(); sources_[current_++].reset()) {
      auto next = sources_[current_]->try_next();
      if (!next || !*next || !next->value().bytes.empty()) return next;
    }
    return Result<PinnedBytes>(PinnedBytes{});
  }
  net::Task<> wait() override {
    if (current_ < sources_.size()) co_await sources_[current_]->wait();
  }

 private:
  std::vector<std::unique_ptr<BodySource>> sources_;
  size_t current_ = 0;
};

std::unique_ptr<BodySource> text_source(Store& store, std::string text) {
  const auto kept = std::make_shared<const std::string>(std::move(text));
  PinnedBody body;
  body.pieces.push_back({*kept, kept});
  return make_pinned_source(store, std::move(body));
}

// Nobody who writes the data can know it.
std::string random_boundary() {
  std::random_device random;
  char text[40];
  std::snprintf(text, sizeof text, "nezha-%08x%08x", random(), random());
  return text;
}

}  // namespace

std::unique_ptr<BodySource> make_chain_source(std::vector<std::unique_ptr<BodySource>> sources) {
  return std::make_unique<ChainSource>(std::move(sources));
}

Multipart make_multipart(Store& store, std::vector<PinnedBody> parts, std::optional<uint64_t> total_bytes,
                         std::string_view part_type) {
  const std::string boundary = random_boundary();
  Multipart out;
  out.content_type = "multipart/byteranges; boundary=" + boundary;
  std::vector<std::unique_ptr<BodySource>> sources;
  const auto add_text = [&](std::string text) {
    out.size_bytes += text.size();
    sources.push_back(text_source(store, std::move(text)));
  };
  std::string before;
  for (auto& part : parts) {
    std::string head = before + "--" + boundary + "\r\n";
    if (!part_type.empty()) head.append("Content-Type: ").append(part_type).append("\r\n");
    head += "Content-Range: " + http::format_content_range(part.range, total_bytes) + "\r\n\r\n";
    add_text(std::move(head));
    out.size_bytes += part.range.size_bytes();
    sources.push_back(make_pinned_source(store, std::move(part)));
    before = "\r\n";
  }
  add_text("\r\n--" + boundary + "--\r\n");
  out.body = make_chain_source(std::move(sources));
  return out;
}

}  // namespace nezha::cache
