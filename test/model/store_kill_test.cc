// A store in a process of its own that is killed with SIGKILL at random moments under load, again and again: several
// threads fill, overwrite, invalidate, refresh and read, in a tier so small that segments are reclaimed all the time.
// Each new process first checks everything: what is found is, byte for byte, a version that was in force when the last
// process died; what was invalidated, and acknowledged, is gone; and most of what was there is there.
// Prints its seed. NEZHA_SEED sets it, NEZHA_KILLS how often each test kills (thousands take minutes).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "test/support/environment.h"
#include "test/support/scripted_origin.h"
#include "test/support/store_box.h"
#include "test/support/temporary_directory.h"

namespace nezha::test {
namespace {

using cache::CacheKey;
using cache::Queue;

constexpr size_t kKiB = 1024;
constexpr size_t kThreads = 3;
constexpr size_t kPathsPerThread = 20;
constexpr size_t kQueries = 2;
constexpr size_t kObjects = kThreads * kPathsPerThread * kQueries;
constexpr uint32_t kInvalidation = 1u << 31;  // a pending operation that is one, not a version

// What outlives the process: what was acknowledged, and what was under way.
struct Acknowledged {
  std::atomic<uint32_t> current{0};
  // What may be there instead, since it is not known how far those got that died or failed: all of them, until one is
  // seen or something succeeds.
  std::array<std::atomic<uint32_t>, 16> also{};
  std::atomic<uint32_t> pending{0};

  bool allows(uint32_t number) const {
    return number == current || std::find(also.begin(), also.end(), number) != also.end() ||
           number == (pending & ~kInvalidation);
  }
  void allow(uint32_t number) {
    if (number == 0 || std::find(also.begin(), also.end(), number) != also.end()) return;
    const auto slot = std::find(also.begin(), also.end(), 0u);
    NEZHA_CHECK(slot != also.end(), "the model keeps all that may be there");
    *slot = number;
  }
  // In this order: a death in between allows more, never less.
  void settle(uint32_t number) {
    current = number;
    for (auto& other : also) other = 0;
  }
};
struct Shared {
  std::array<Acknowledged, kObjects> objects;
  std::atomic<uint32_t> next_version{1};
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> reads{0}, hits{0};            // under load
  std::atomic<uint64_t> warm_reads{0}, warm_hits{0};  // after a restart
  std::atomic<bool> verified{false};
  char failure[512] = "";
};

struct Version {
  size_t object = 0;
  uint32_t number = 0;
  uint64_t seed() const { return object * 1'000'003 + number; }
  size_t size_bytes() const {
    static constexpr size_t kSizes[] = {0, 1, 700, 5000, 30'000, 60'000, 100'000};
    return kSizes[seed() % std::size(kSizes)];
  }
  std::string etag() const { return "\"" + std::to_string(object) + "-" + std::to_string(number) + "\""; }
  std::string body() const { return pattern_bytes(size_bytes(), seed()); }
};

uint32_t number_of(const std::string& etag) {
  return static_cast<uint32_t>(std::atoi(etag.c_str() + etag.find('-') + 1));
}

CacheKey key_of(size_t object) {
  return {"data.example/" + std::to_string(object / kQueries), object % kQueries ? "q" : ""};
}

class Worker {
 public:
  Worker(Shared& shared, StoreBox& box, size_t thread, uint64_t seed)
      : shared_(shared), box_(box), first_(thread * kPathsPerThread * kQueries), random_(seed) {}

  void run() {
    for (;;) step();
  }
  // Whether what is found may be found; counts the hits.
  bool check(size_t object, std::atomic<uint64_t>& reads, std::atomic<uint64_t>& hits) {
    Acknowledged& known = shared_.objects[object];
    if (known.current != 0) ++reads;
    const auto head = box_.find(key_of(object));
    if (!head) return true;
    const std::string etag = head->etag->text;
    const uint32_t number = number_of(etag);
    const Version version{object, number};
    if (version.etag() != etag || number == 0 || !known.allows(number)) return fail_with(object, "answers as " + etag);
    bool damaged = false;
    const auto body = box_.read(key_of(object), head, {0, *head->total_bytes}, &damaged);
    if (damaged) return fail_with(object, "has damaged bytes, of " + etag);
    if (!body) return true;
    if (*body != version.body()) return fail_with(object, "has wrong bytes, of " + etag);
    if (known.current != 0) ++hits;
    const auto pinned = box_.store().pin(key_of(object), head, {0, *head->total_bytes});
    if (pinned) box_.store().note_hit(key_of(object), head, *pinned);
    return true;
  }

 private:
  bool fail_with(size_t object, const std::string& text) {
    const Acknowledged& known = shared_.objects[object];
    std::snprintf(shared_.failure, sizeof shared_.failure, "object %zu %s; allowed: %u, %u…, pending %x", object,
                  text.c_str(), known.current.load(), known.also[0].load(), known.pending.load());
    return false;
  }

  void step() {
    ++shared_.steps;
    const size_t object = first_ + random_() % (kPathsPerThread * kQueries);
    switch (random_() % 10) {
      case 0:
        return invalidate(object);
      case 1:
        return refresh(object);
      case 2:
        return overtaken(object);
      case 3:
      case 4:
      case 5:
        return put(object);
      default:
        if (!check(object, shared_.reads, shared_.hits)) std::_Exit(1);
    }
  }

  void put(size_t object) {
    Acknowledged& known = shared_.objects[object];
    const Version version{object, shared_.next_version++};
    known.pending = version.number;
    const auto head = head_of(version.etag(), version.size_bytes(), static_cast<int>(version.number));
    if (box_.put(key_of(object), head, version.body(), 0, random_() % 2)) {
      known.settle(version.number);
    } else {
      known.allow(version.number);
    }
    known.pending = 0;
    ++shared_.steps;
  }

  // As PUT and DELETE do: when it returns, the client is told.
  void invalidate(size_t object) {
    const size_t path = object / kQueries * kQueries;
    for (size_t i = 0; i < kQueries; ++i) shared_.objects[path + i].pending = kInvalidation;
    box_.invalidate(key_of(object).path);
    for (size_t i = 0; i < kQueries; ++i) {
      Acknowledged& known = shared_.objects[path + i];
      known.settle(0);
      known.pending = 0;
    }
    ++shared_.steps;
  }

  void refresh(size_t object) {
    const auto head = box_.find(key_of(object));
    if (!head) return;
    auto next = std::make_shared<cache::StoredHead>(*head);
    next->fields.set("X-Seen", std::to_string(random_() % 1000));
    cache::complete(*next);
    (void)box_.refresh(key_of(object), head, next);
  }

  // A fill that an invalidation overtakes: it goes on, and nothing of it may ever be seen.
  void overtaken(size_t object) {
    const Version version{object, shared_.next_version++};
    const std::string body = version.body();
    auto& store = box_.store();
    const auto ticket = store.begin_fill(key_of(object));
    const auto piece = std::string_view(body).substr(0, store.fill_tier().piece_bytes());
    const auto appended = store.append_extent(*ticket, ticket->generation, Queue::kProbation, 0, piece);
    invalidate(object);
    const auto head = head_of(version.etag(), version.size_bytes(), static_cast<int>(version.number));
    if (store.open_generation(*ticket, key_of(object), head, Queue::kProbation, false)) {
      fail_with(object, "opened a fill that was overtaken");
      std::_Exit(1);
    }
  }

  Shared& shared_;
  StoreBox& box_;
  const size_t first_;
  std::mt19937_64 random_;
};

using Plans = std::function<std::vector<cache::Store::TierPlan>()>;

// The process that is killed.
[[noreturn]] void live(Shared& shared, const Plans& plans, uint64_t seed) {
  StoreBox box(plans());
  {
    Worker checker(shared, box, 0, seed);
    for (size_t object = 0; object < kObjects; ++object) {
      if (!checker.check(object, shared.warm_reads, shared.warm_hits)) std::_Exit(1);
      // What died under way has now happened or not: whichever, it may stay.
      Acknowledged& known = shared.objects[object];
      if (const auto head = box.find(key_of(object))) {  // seen: nothing else may come later
        known.settle(number_of(head->etag->text));
        known.pending = 0;
        continue;
      }
      if (const uint32_t pending = known.pending; pending & kInvalidation)
        known.allow(known.current), known.current = 0;
      else if (pending)
        known.allow(pending);
      known.pending = 0;
    }
  }
  shared.verified = true;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&shared, &box, i, seed] { Worker(shared, box, i, seed * kThreads + i).run(); });
  for (auto& thread : threads) thread.join();
  std::_Exit(2);
}

void run_kills(const Plans& plans, uint64_t kills_by_default) {
  const uint64_t seed = from_environment("NEZHA_SEED", std::random_device{}());
  const uint64_t kills = from_environment("NEZHA_KILLS", kills_by_default);
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Shared& shared = *new (memory) Shared;
  std::mt19937_64 random(seed);
  for (uint64_t kill = 0; kill < kills; ++kill) {
    SCOPED_TRACE("NEZHA_SEED=" + std::to_string(seed) + ", kill " + std::to_string(kill));
    shared.verified = false;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) live(shared, plans, seed + kill * 1000);
    // A random number of steps from now on; sometimes while it still reads its tiers in.
    const bool early = random() % 16 == 0;
    const uint64_t target = shared.steps + random() % 400;
    int status = 0;
    bool ended = false;
    for (uint64_t turns = random() % 2000;
         !ended && (early ? turns-- > 0 : !shared.verified || shared.steps < target);) {
      ended = ::waitpid(child, &status, WNOHANG) == child;
      std::this_thread::yield();
    }
    if (!ended) {
      ::kill(child, SIGKILL);
      ASSERT_EQ(::waitpid(child, &status, 0), child);
    }
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status << ": " << shared.failure;
  }
  const auto ratio = [](uint64_t hits, uint64_t reads) {
    return static_cast<double>(hits) / static_cast<double>(reads);
  };
  const double before = ratio(shared.hits, shared.reads), after = ratio(shared.warm_hits, shared.warm_reads);
  std::cout << "NEZHA_SEED=" << seed << ": " << kills << " kills, " << shared.steps << " steps, " << shared.warm_hits
            << " answers checked after restarts; hit ratio " << before << " before, " << after << " after" << std::endl;
  EXPECT_GT(after, 0.9 * before);
  shared.~Shared();
  ::munmap(memory, sizeof(Shared));
}

cache::Store::TierPlan tier_of(config::Medium medium, const std::string& path, uint64_t size_bytes) {
  auto made = cache::make_medium({medium, path, size_bytes});
  NEZHA_CHECK(made.has_value(), made.error().message.c_str());
  return {std::move(made.value()), size_bytes, 256 * kKiB};
}

TEST(Killed, Files) {
  const TemporaryDirectory directory;
  run_kills(
      [&] {
        std::vector<cache::Store::TierPlan> plans;
        plans.push_back(tier_of(config::Medium::kNvme, directory.path(), 6 * kKiB * kKiB));
        return plans;
      },
      150);
}

TEST(Killed, MemoryOverPersistentMemoryOverFiles) {
  const TemporaryDirectory directory, shm("/dev/shm");
  run_kills(
      [&] {
        std::vector<cache::Store::TierPlan> plans;
        plans.push_back(tier_of(config::Medium::kMemory, "", 2 * kKiB * kKiB));
        plans.push_back(tier_of(config::Medium::kPmem, shm.path(), 3 * kKiB * kKiB));
        plans.push_back(tier_of(config::Medium::kNvme, directory.path(), 4 * kKiB * kKiB));
        return plans;
      },
      100);
}

// libpmem reads its environment when the program starts: with it, stores bypass the page cache's msync path.
TEST(Killed, ForcedPersistentMemory) {
  if (std::getenv("PMEM_IS_PMEM_FORCE") == nullptr) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::setenv("PMEM_IS_PMEM_FORCE", "1", 1);
      ::execl("/proc/self/exe", "store_kill_test", "--gtest_filter=Killed.ForcedPersistentMemory", nullptr);
      std::_Exit(3);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    return;
  }
  const TemporaryDirectory shm("/dev/shm");
  run_kills(
      [&] {
        std::vector<cache::Store::TierPlan> plans;
        plans.push_back(tier_of(config::Medium::kPmem, shm.path(), 6 * kKiB * kKiB));
        return plans;
      },
      100);
}

}  // namespace
}  // namespace nezha::test
