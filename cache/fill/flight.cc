#include "cache/fill/flight.h"

namespace nezha::cache {

bool Flight::closed() {
  std::lock_guard lock(mutex);
  return outcome && outcome->fill && outcome->fill->closed();
}

FlightTable::Lead::Lead(FlightTable& table, std::string key, std::shared_ptr<Flight> flight)
    : table_(&table), key_(std::move(key)), flight_(std::move(flight)) {}

FlightTable::Lead::~Lead() { land(); }

void FlightTable::Lead::settle(Flight::Outcome outcome) {
  {
    std::lock_guard lock(flight_->mutex);
    if (flight_->outcome) return;
    flight_->outcome = std::move(outcome);
  }
  flight_->settled.notify_all();
}

void FlightTable::Lead::fill(std::shared_ptr<Fill> fill) { settle({std::move(fill), std::nullopt}); }

void FlightTable::Lead::fail(Error error) {
  leave_table();  // first: whoever asks after that failure was seen is not answered with it
  settle({nullptr, std::move(error)});
}

void FlightTable::Lead::land() {
  if (!flight_) return;
  leave_table();
  settle({});
  flight_.reset();
}

void FlightTable::Lead::leave_table() {
  std::lock_guard lock(table_->mutex_);
  const auto found = table_->flights_.find(key_);
  if (found != table_->flights_.end() && found->second == flight_) table_->flights_.erase(found);
}

FlightTable::Joined FlightTable::join(const CacheKey& key, std::string_view variant) {
  std::string name = key.path + "?" + key.query;
  name.append("\n").append(variant);  // no line break is in a key
  std::lock_guard lock(mutex_);
  auto& flight = flights_[name];
  if (flight && !flight->closed()) return {nullptr, flight};
  flight = std::make_shared<Flight>();
  return {std::make_unique<Lead>(*this, std::move(name), flight), nullptr};
}

net::Task<Flight::Outcome> FlightTable::wait(std::shared_ptr<Flight> flight) {
  for (;;) {
    const uint64_t version = flight->settled.version();
    {
      std::lock_guard lock(flight->mutex);
      if (flight->outcome) co_return *flight->outcome;
    }
    co_await flight->settled.wait(version);
  }
}

}  // namespace nezha::cache
