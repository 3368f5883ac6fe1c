// Connection: heads and bodies taken from a stream at every fragment size, and broken off at every byte.
#include "cache/wire/connection.h"

#include <gtest/gtest.h>

#include "nezha/net/loop.h"
#include "test/support/request_cases.h"
#include "test/support/scripted_stream.h"

namespace nezha::cache {
namespace {

using StreamEnd = test::ScriptedStream::End;

struct Message {
  enum class End { kWhole, kFailed, kNoMessage } end = End::kNoMessage;
  int status = 0;
  std::string body;
  bool left_over = false;
};

// Reads one response, its body in pieces of `piece_bytes`.
net::Task<> read_message(Connection& connection, size_t piece_bytes, Message& out) {
  http::ResponseHead head;
  auto step = co_await connection.read_response_head(false, head);
  if (!step || step.value().kind == http::HeadStep::Kind::kBad) out.end = Message::End::kFailed;
  if (!step || step.value().kind != http::HeadStep::Kind::kDone) co_return;
  out.status = head.status;
  connection.begin_body(head.framing);
  std::vector<char> piece(piece_bytes);
  while (!connection.body_done()) {
    auto got = co_await connection.read_body(piece);
    if (!got) {
      out.end = Message::End::kFailed;
      co_return;
    }
    out.body.append(piece.data(), got.value());
  }
  out.end = Message::End::kWhole;
  out.left_over = connection.has_buffered();
}

Message read_from(const std::string& script, size_t fragment_bytes, StreamEnd end, size_t piece_bytes = 7) {
  const auto loop = net::make_loop();
  net::Gate gate(loop->executor());
  Connection connection(std::make_unique<test::ScriptedStream>(script, fragment_bytes, end));
  Message out;
  gate.spawn(read_message(connection, piece_bytes, out));
  loop->run_until([&] { return gate.size() == 0; }, SteadyTime::max());
  return out;
}

const std::string kLength = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world";
const std::string kChunked =
    "HTTP/1.1 201 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nT: v\r\n\r\n";
const std::string kUntilClose = "HTTP/1.1 202 OK\r\n\r\nhello world";

TEST(Connection, AtEveryFragmentSize) {
  for (const auto& [script, status] : {std::pair{kLength, 200}, {kChunked, 201}, {kUntilClose, 202}}) {
    for (const size_t size : test::fragment_sizes(script.size())) {
      for (const size_t piece : {size_t{1}, size_t{4}, size_t{100}}) {
        const Message got = read_from(script, size, StreamEnd::kOrderly, piece);
        EXPECT_EQ(got.end, Message::End::kWhole) << size;
        EXPECT_EQ(got.status, status);
        EXPECT_EQ(got.body, "hello world");
      }
    }
  }
}

TEST(Connection, BrokenOffAtEveryByteIsNeverWhole) {
  for (const auto& script : {kLength, kChunked}) {
    for (size_t size = 1; size < script.size(); ++size) {
      for (const StreamEnd end : {StreamEnd::kOrderly, StreamEnd::kReset}) {
        EXPECT_EQ(read_from(script.substr(0, size), 9, end).end, Message::End::kFailed) << script.substr(0, size);
      }
    }
  }
}

TEST(Connection, UntilCloseIsWholeOnlyAtAnOrderlyEnd) {
  EXPECT_EQ(read_from(kUntilClose, 5, StreamEnd::kOrderly).end, Message::End::kWhole);
  EXPECT_EQ(read_from(kUntilClose, 5, StreamEnd::kReset).end, Message::End::kFailed);
}

TEST(Connection, AnEndBeforeTheFirstByteIsNoMessage) {
  EXPECT_EQ(read_from("", 1, StreamEnd::kOrderly).end, Message::End::kNoMessage);
  EXPECT_EQ(read_from("", 1, StreamEnd::kReset).end, Message::End::kFailed);
}

TEST(Connection, BytesBehindTheMessageAreSeen) {
  EXPECT_TRUE(read_from(kLength + "x", 1000, StreamEnd::kOrderly).left_over);
  EXPECT_TRUE(read_from(kChunked + "x", 1000, StreamEnd::kOrderly).left_over);
  EXPECT_FALSE(read_from(kChunked, 1000, StreamEnd::kOrderly).left_over);
}

TEST(Connection, HeadsUpToTheLimit) {
  for (const size_t size : {size_t{1000}, size_t{60'000}, size_t{65'500}, size_t{70'000}, size_t{200'000}}) {
    const std::string script = "HTTP/1.1 200 OK\r\nX: " + std::string(size, 'a') + "\r\nContent-Length: 0\r\n\r\n";
    const Message got = read_from(script, 3000, StreamEnd::kOrderly);
    EXPECT_EQ(got.end, size < 65'500 ? Message::End::kWhole : Message::End::kFailed) << size;
  }
}

}  // namespace
}  // namespace nezha::cache
