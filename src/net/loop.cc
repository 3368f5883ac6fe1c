// Loop on Asio: TCP listeners and connections, with deadlines swept by one timer instead of one timer per operation.
#include "nezha/net/loop.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <list>
#include <utility>

#include "nezha/base/check.h"
#include "nezha/base/limits.h"

namespace nezha::net {
namespace {

using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
using Timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Executor>;
using Descriptor = asio::posix::basic_stream_descriptor<Executor>;
using boost::system::error_code;

constexpr std::chrono::milliseconds kSweepEvery{250};
constexpr int kTakenBytesMin = 16 * 1024;  // in the time of a stall, by a peer that is not stalled
constexpr size_t kPiecesPerCall = 64;
constexpr int kBacklog = 4096;
constexpr uint64_t kFileBytesPerCall = 2 * 1024 * 1024;  // sendfile is fastest in such steps, and fair to others

auto io_failure(const error_code& ec) { return fail(Remedy::kRetryLater, ec.message()); }

SocketAddress address_of(const asio::ip::tcp::endpoint& endpoint) {
  return {endpoint.address().to_string(), endpoint.port()};
}

// What the peer has not acknowledged.
int unsent_bytes_of(Socket& socket) {
  int bytes = 0;
  return ::ioctl(socket.native_handle(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

// What a loop knows of its open connections: enough to end those past their deadline.
struct Deadlines {
  struct Entry {
    SteadyTime at = SteadyTime::max();
    Socket* socket = nullptr;
    bool expired = false;
    int unsent_bytes = 0;  // while a write waits for room: what the peer had not taken at first; else 0
  };
  std::list<Entry> entries;

  // A peer that takes a little at a time makes room only when it has taken a third of what the kernel holds: too late
  // for its deadline.
  static bool goes_on(Entry& entry) {
    const int before_bytes = entry.unsent_bytes;
    if (before_bytes == 0) return false;
    entry.unsent_bytes = unsent_bytes_of(*entry.socket);
    return before_bytes - entry.unsent_bytes >= kTakenBytesMin;
  }

  void sweep(SteadyTime now, bool all = false) {
    for (Entry& entry : entries) {
      if ((entry.at > now && !all) || entry.expired) continue;
      if (!all && goes_on(entry)) {
        entry.at += limits::kBodyStallTimeout;
        continue;
      }
      entry.expired = true;
      error_code ignored;
      entry.socket->cancel(ignored);
      // Not only pending operations: a later one must fail too.
      entry.socket->shutdown(Socket::shutdown_both, ignored);
    }
  }
};

class TcpStream final : public Stream {
 public:
  TcpStream(Socket socket, Deadlines& deadlines) : socket_(std::move(socket)), deadlines_(deadlines) {
    entry_ = deadlines_.entries.insert(deadlines_.entries.end(), {SteadyTime::max(), &socket_, false});
    error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  }
  ~TcpStream() override { deadlines_.entries.erase(entry_); }

  Task<Result<size_t>> read_some(std::span<char> into) override {
    error_code ec;
    const size_t size =
        co_await socket_.async_read_some(asio::buffer(into.data(), into.size()), asio::redirect_error(use_task, ec));
    if (entry_->expired) co_return fail(Remedy::kTimedOut, "timed out");
    if (ec == asio::error::eof) co_return size_t{0};
    if (ec) co_return io_failure(ec);
    co_return size;
  }

  Result<size_t> try_write(std::span<const std::string_view> pieces) override { return send_pieces(pieces, 0); }
  Result<size_t> try_write_more(std::span<const std::string_view> pieces) override {
    return send_pieces(pieces, MSG_MORE);
  }

  bool sends_files() const override { return true; }
  Result<size_t> try_send_file(int file, uint64_t offset_bytes, uint64_t size_bytes) override {
    auto at = static_cast<off_t>(offset_bytes);
    const size_t size = static_cast<size_t>(std::min(size_bytes, kFileBytesPerCall));
    const ssize_t sent = ::sendfile(socket_.native_handle(), file, &at, size);
    if (sent > 0) return static_cast<size_t>(sent);
    if (sent == 0) return fail(Remedy::kGiveUp, "reading what was to be sent: the file ends early");
    if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) return size_t{0};
    const bool medium = errno == EIO || errno == EFAULT || errno == EINVAL || errno == EOVERFLOW;
    return fail(medium ? Remedy::kGiveUp : Remedy::kRetryLater, std::strerror(errno));
  }

  Task<Result<void>> wait_writable() override {
    error_code ec;
    entry_->unsent_bytes = unsent_bytes_of(socket_);
    co_await socket_.async_wait(Socket::wait_write, asio::redirect_error(use_task, ec));
    entry_->unsent_bytes = 0;
    if (entry_->expired) co_return fail(Remedy::kTimedOut, "timed out");
    if (ec) co_return io_failure(ec);
    co_return ok();
  }

  Result<size_t> send_pieces(std::span<const std::string_view> pieces, int flags) {
    std::array<iovec, kPiecesPerCall> vectors;
    const size_t count = std::min(pieces.size(), vectors.size());
    for (size_t i = 0; i < count; ++i) vectors[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    flags |= MSG_NOSIGNAL | MSG_DONTWAIT;
    const ssize_t sent = count == 1 ? ::send(socket_.native_handle(), pieces[0].data(), pieces[0].size(), flags)
                                    : ::sendmsg(socket_.native_handle(), &message, flags);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS) return size_t{0};
    const error_code ec(errno, boost::system::system_category());
    // The bytes themselves cannot be read: a mapped file was cut short, or its medium failed.
    if (ec == boost::system::errc::bad_address)
      return fail(Remedy::kGiveUp, "reading what was to be sent: " + ec.message());
    return io_failure(ec);
  }

  Task<Result<void>> write(std::span<const std::string_view> pieces) override {
    std::vector<std::string_view> copy(pieces.begin(), pieces.end());
    std::span<std::string_view> left(copy);
    while (!left.empty()) {
      NEZHA_CO_TRY(const size_t sent, try_write(left));
      skip_bytes(left, sent);
      if (left.empty()) break;
      if (sent > 0) continue;
      NEZHA_CO_DO(co_await wait_writable());
    }
    co_return ok();
  }

  Task<bool> wait_readable(std::chrono::milliseconds timeout) override {
    // Only this wait is cancelled: a write of another coroutine on the same socket goes on. The timer's handler may run
    // after this frame is gone: they share what it touches.
    struct Wait {
      asio::cancellation_signal cancel;
      bool timed_out = false;
    };
    const auto wait = std::make_shared<Wait>();
    Timer timer(socket_.get_executor(), timeout);
    timer.async_wait([wait](const error_code& ec) {
      if (ec) return;
      wait->timed_out = true;
      wait->cancel.emit(asio::cancellation_type::terminal);
    });
    error_code ec;
    auto token = asio::bind_cancellation_slot(wait->cancel.slot(), asio::redirect_error(use_task, ec));
    co_await socket_.async_wait(Socket::wait_read, std::move(token));
    co_return !wait->timed_out;
  }

  void set_deadline(SteadyTime deadline) override { entry_->at = deadline; }

  void shutdown_send() override {
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }

  void close(bool reset) override {
    error_code ignored;
    if (reset) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    socket_.close(ignored);
  }

  bool is_quiet() override {
    char byte;
    const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  std::string peer() const override {
    error_code ec;
    const auto endpoint = socket_.remote_endpoint(ec);
    return ec ? "closed" : address_of(endpoint).text();
  }

 private:
  Socket socket_;
  Deadlines& deadlines_;
  std::list<Deadlines::Entry>::iterator entry_;
};

class TcpListener final : public Listener {
 public:
  TcpListener(Acceptor acceptor, Deadlines& deadlines, Executor executor)
      : acceptor_(std::move(acceptor)), deadlines_(deadlines), retry_(executor) {}

  Task<Result<std::unique_ptr<Stream>>> accept() override {
    for (;;) {
      error_code ec;
      Socket socket = co_await acceptor_.async_accept(asio::redirect_error(use_task, ec));
      if (!ec) co_return std::make_unique<TcpStream>(std::move(socket), deadlines_);
      if (closed_ || ec == asio::error::operation_aborted || ec == asio::error::bad_descriptor)
        co_return io_failure(ec);
      // Out of descriptors or memory, or a peer that left already: wait a little and go on.
      retry_.expires_after(std::chrono::milliseconds(50));
      co_await retry_.async_wait(asio::redirect_error(use_task, ec));
      if (closed_) co_return fail(Remedy::kRetryLater, "the listener was closed");
    }
  }

  void close() override {
    closed_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  }

  SocketAddress address() const override {
    error_code ec;
    return address_of(acceptor_.local_endpoint(ec));
  }

 private:
  Acceptor acceptor_;
  Deadlines& deadlines_;
  Timer retry_;
  bool closed_ = false;
};

class DescriptorWatch final : public Watch {
 public:
  DescriptorWatch(asio::io_context& context, int descriptor, std::function<void()> work)
      : state_(std::make_shared<State>(Descriptor(context), std::move(work))) {
    state_->descriptor.assign(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  }
  ~DescriptorWatch() override {
    state_->over = true;
    error_code ignored;
    state_->descriptor.close(ignored);
  }
  void arm() { arm(state_); }

 private:
  struct State {
    State(Descriptor of, std::function<void()> what) : descriptor(std::move(of)), work(std::move(what)) {}
    Descriptor descriptor;
    std::function<void()> work;
    bool over = false;
  };
  static void arm(const std::shared_ptr<State>& state) {
    state->descriptor.async_wait(Descriptor::wait_read, [state](const error_code& ec) {
      if (ec || state->over) return;
      state->work();
      if (!state->over) arm(state);
    });
  }
  std::shared_ptr<State> state_;
};

class AsioLoop final : public Loop {
 public:
  AsioLoop() : context_(1), work_(context_.get_executor()) {
    every(kSweepEvery, [this] { deadlines_.sweep(std::chrono::steady_clock::now()); });
  }

  Executor executor() override { return context_.get_executor(); }
  void run() override { context_.run(); }
  void stop() override { context_.stop(); }
  void post(std::function<void()> work) override { asio::post(context_, std::move(work)); }

  Result<std::unique_ptr<Listener>> listen(const SocketAddress& address) override {
    NEZHA_TRY(const BoundSocket socket, bind_socket(address));
    return listen_on(socket);
  }

  Result<std::unique_ptr<Listener>> listen_on(const BoundSocket& socket) override {
    const int descriptor = ::fcntl(socket.descriptor(), F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) return fail(Remedy::kGiveUp, "cannot duplicate a socket: " + std::string(std::strerror(errno)));
    const bool v6 = socket.address().ip.find(':') != std::string::npos;
    error_code ec;
    Acceptor acceptor(context_);
    // Assigned, it is known to Asio as one that others may have, too: closing takes it off our epoll.
    acceptor.assign(v6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), descriptor, ec);
    if (ec) {
      ::close(descriptor);
      return fail(Remedy::kGiveUp, "cannot listen on " + socket.address().text() + ": " + ec.message());
    }
    return std::make_unique<TcpListener>(std::move(acceptor), deadlines_, executor());
  }

  std::unique_ptr<Watch> watch(int descriptor, std::function<void()> work) override {
    auto out = std::make_unique<DescriptorWatch>(context_, descriptor, std::move(work));
    out->arm();
    return out;
  }

  Task<Result<std::unique_ptr<Stream>>> connect(const SocketAddress& address, SteadyTime deadline) override {
    error_code ec;
    const auto ip = asio::ip::make_address(address.ip, ec);
    if (ec) co_return fail(Remedy::kFixInput, address.ip + " is not an IP address");
    Socket socket(context_);
    const auto entry = deadlines_.entries.insert(deadlines_.entries.end(), {deadline, &socket, false});
    co_await socket.async_connect(asio::ip::tcp::endpoint(ip, address.port), asio::redirect_error(use_task, ec));
    const bool expired = entry->expired;
    deadlines_.entries.erase(entry);
    if (expired) co_return fail(Remedy::kTimedOut, "connecting to " + address.text() + " timed out");
    if (ec) co_return fail(Remedy::kRetryLater, "connecting to " + address.text() + ": " + ec.message());
    co_return std::make_unique<TcpStream>(std::move(socket), deadlines_);
  }

  Task<> sleep(std::chrono::milliseconds duration) override {
    Timer timer(context_, duration);
    error_code ignored;
    co_await timer.async_wait(asio::redirect_error(use_task, ignored));
  }

  void run_until(const std::function<bool()>& done, SteadyTime deadline) override {
    context_.restart();
    while (!done() && std::chrono::steady_clock::now() < deadline) context_.run_one_for(kSweepEvery);
  }

  void every(std::chrono::milliseconds period, std::function<void()> work) override {
    periodic_.push_back(std::make_unique<Periodic>(Periodic{Timer(context_), period, std::move(work)}));
    arm(*periodic_.back());
  }

  void expire_all() override { deadlines_.sweep(SteadyTime::max(), true); }

 private:
  struct Periodic {
    Timer timer;
    std::chrono::milliseconds period;
    std::function<void()> work;
  };

  void arm(Periodic& periodic) {
    periodic.timer.expires_after(periodic.period);
    periodic.timer.async_wait([this, &periodic](const error_code& ec) {
      if (ec) return;
      periodic.work();
      arm(periodic);
    });
  }

  Deadlines deadlines_;  // before the context: sockets in pending handlers outlive nothing they use
  asio::io_context context_;
  std::vector<std::unique_ptr<Periodic>> periodic_;
  asio::executor_work_guard<Executor> work_;
};

}  // namespace

Result<size_t> Stream::try_send_file(int, uint64_t, uint64_t) {
  NEZHA_CHECK(false, "this stream sends no files");
  return size_t{0};
}

void skip_bytes(std::span<std::string_view>& pieces, size_t bytes) {
  while (!pieces.empty() && bytes >= pieces.front().size()) {
    bytes -= pieces.front().size();
    pieces = pieces.subspan(1);
  }
  if (!pieces.empty()) pieces.front().remove_prefix(bytes);
}

std::string SocketAddress::text() const {
  const bool v6 = ip.find(':') != std::string::npos;
  return (v6 ? "[" + ip + "]" : ip) + ":" + std::to_string(port);
}

BoundSocket::~BoundSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SocketAddress BoundSocket::address() const {
  asio::ip::tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  if (::getsockname(descriptor_, endpoint.data(), &size) != 0) return {};
  endpoint.resize(size);
  return address_of(endpoint);
}

Result<BoundSocket> bind_socket(const SocketAddress& address) {
  error_code ec;
  const auto ip = asio::ip::make_address(address.ip, ec);
  if (ec) return fail(Remedy::kFixInput, "listen address " + address.text() + " is not an IP address");
  const asio::ip::tcp::endpoint endpoint(ip, address.port);
  const auto failed = [&](const char* what) {
    return fail(Remedy::kFixInput, std::string("cannot ") + what + " " + address.text() + ": " + std::strerror(errno));
  };
  BoundSocket out(::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.descriptor() < 0) return failed("open a socket for");
  const int on = 1;
  ::setsockopt(out.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::setsockopt(out.descriptor(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)
    return fail(Remedy::kGiveUp, "this kernel has no SO_REUSEPORT");
  if (::bind(out.descriptor(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0) return failed("bind");
  if (::listen(out.descriptor(), kBacklog) != 0) return failed("listen on");
  return out;
}

Result<BoundSocket> adopt_socket(int descriptor) {
  int listens = 0;
  socklen_t size = sizeof listens;
  const bool known = ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0;
  if (!known || listens == 0)
    return fail(Remedy::kFixInput, "descriptor " + std::to_string(descriptor) + " is no socket that listens");
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return BoundSocket(descriptor);
}

Result<void> check_unused(const SocketAddress& address) {
  error_code ec;
  asio::io_context context;
  const asio::ip::tcp::endpoint endpoint(asio::ip::make_address(address.ip, ec), address.port);
  Acceptor acceptor(context);
  if (!ec) acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  return ec ? fail(Remedy::kFixInput, "cannot bind " + address.text() + ": " + ec.message()) : Result<void>(ok());
}

std::unique_ptr<Loop> make_loop() { return std::make_unique<AsioLoop>(); }

}  // namespace nezha::net
