// FlightTable: at most one request per object on its way to the upstream, however many clients ask for it.
// The first is the leader and must settle its flight; the others wait for that and then act on it.
// An object that turns out not to be storable releases all waiters at once: nobody queues behind it.
// Threads: any.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "cache/fill/fill.h"

namespace nezha::cache {

struct Flight {
  struct Outcome {
    std::shared_ptr<Fill> fill;   // read from it, after your own check if you need one
    std::optional<Error> failed;  // the upstream could not be asked
    // neither: go your own way (not storable, answered from the store, or the leader gave up)
  };
  std::mutex mutex;
  net::Notification settled;
  std::optional<Outcome> outcome;

  bool closed();  // takes no more readers
};

class FlightTable {
 public:
  // The leader's end of a flight. Settles it as released when it was not settled otherwise.
  class Lead {
   public:
    Lead(FlightTable& table, std::string key, std::shared_ptr<Flight> flight);
    Lead(Lead&&) = default;
    ~Lead();
    // The flight stays in the table, for more readers, until land().
    void fill(std::shared_ptr<Fill> fill);
    // Takes the flight out of the table; those who wait get the error.
    void fail(Error error);
    // Takes the flight out of the table. With a fill: call it when the fill has ended.
    void land();

   private:
    void settle(Flight::Outcome outcome);
    void leave_table();
    FlightTable* table_;
    std::string key_;
    std::shared_ptr<Flight> flight_;
  };

  struct Joined {
    std::unique_ptr<Lead> lead;      // set for the leader
    std::shared_ptr<Flight> flight;  // set for the others
  };
  // A flight whose fill is closed() is over for those who come now: the first of them leads another.
  // `variant`: what sets this request apart from others under the key; empty while that is not known.
  Joined join(const CacheKey& key, std::string_view variant);
  // Resumes when the flight is settled.
  static net::Task<Flight::Outcome> wait(std::shared_ptr<Flight> flight);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;
};

}  // namespace nezha::cache
