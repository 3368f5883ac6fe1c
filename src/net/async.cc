#include "nezha/net/async.h"

#include <sys/resource.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <exception>

#include "nezha/base/check.h"

namespace nezha::net {

Gate::~Gate() { NEZHA_CHECK(size_ == 0, "a gate was destroyed with coroutines inside"); }

void Gate::spawn(Task<> task) {
  ++size_;
  asio::co_spawn(executor_, std::move(task), [this](std::exception_ptr error) {
    --size_;
    if (!error) return;
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      NEZHA_CHECK(false, e.what());
    }
  });
}

// Waiters are kept as ready-made resumptions, each posting to its own loop.
struct Notification::State {
  std::mutex mutex;
  uint64_t version = 0;
  std::vector<std::function<void()>> waiters;
};

Notification::Notification() : state_(std::make_shared<State>()) {}
Notification::~Notification() { notify_all(); }

uint64_t Notification::version() const {
  std::lock_guard lock(state_->mutex);
  return state_->version;
}

void Notification::notify_all() {
  std::vector<std::function<void()>> waiters;
  {
    std::lock_guard lock(state_->mutex);
    ++state_->version;
    waiters.swap(state_->waiters);
  }
  for (auto& resume : waiters) resume();
}

Task<> Notification::wait(uint64_t seen) {
  const std::shared_ptr<State> state = state_;
  const auto executor = co_await asio::this_coro::executor;
  auto initiation = [state, seen, executor](auto handler) {
    // std::function must be copyable; the handler is move-only.
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    auto resume = [shared, executor] { asio::post(executor, [shared] { std::move (*shared)(); }); };
    {
      std::lock_guard lock(state->mutex);
      if (state->version == seen) {
        state->waiters.emplace_back(std::move(resume));
        return;
      }
    }
    resume();
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<Executor>, void()>(std::move(initiation), use_task);
}

namespace {

// A loop that is woken goes first on a core that both want: it does little at a time, and clients wait for it.
void lower_priority() {
  constexpr int kNice = 10;
  thread_local const int done = ::setpriority(PRIO_PROCESS, 0, kNice);  // of this thread alone, on Linux
  (void)done;
}

class PoolWorkers final : public Workers {
 public:
  explicit PoolWorkers(size_t threads) : pool_(threads) {}
  ~PoolWorkers() override { pool_.join(); }
  void join() override { pool_.join(); }

  Task<> run(std::function<void()> work) override {
    const auto executor = co_await asio::this_coro::executor;
    auto initiation = [this, executor, work = std::move(work)](auto handler) mutable {
      auto shared = std::make_shared<decltype(handler)>(std::move(handler));
      // Keeps the loop alive while the pool works for it.
      auto guard = asio::prefer(executor, asio::execution::outstanding_work.tracked);
      asio::post(pool_, [shared, guard, executor, work = std::move(work)] {
        lower_priority();
        work();
        asio::post(executor, [shared] { std::move (*shared)(); });
      });
    };
    co_await asio::async_initiate<const asio::use_awaitable_t<Executor>, void()>(std::move(initiation), use_task);
  }

  void start(std::function<void()> work) override {
    asio::post(pool_, [work = std::move(work)] {
      lower_priority();
      work();
    });
  }

 private:
  asio::thread_pool pool_;
};

}  // namespace

Task<> yield() { return asio::post(use_task); }

std::unique_ptr<Workers> make_workers(size_t threads) { return std::make_unique<PoolWorkers>(threads); }

}  // namespace nezha::net
