#include "test/supervise/supervised.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "test/support/event.h"

namespace nezha::test {
namespace {

const std::string kStarted = "cache started process=";

std::string configuration_for(const std::string& tier, uint16_t origin_port, uint16_t tls_port) {
  const std::string http = "\"http://127.0.0.1:" + std::to_string(origin_port) + "\"";
  const std::string https = "\"https://127.0.0.1:" + std::to_string(tls_port) + "\"";
  return "cache: {memory: 64Mi, tiers: [{medium: nvme, path: " + tier + ", size: 64Mi}]}\nupstreams:\n" +
         "- {name: data, hosts: [data.example], freshness: {mode: immutable}, endpoint: " + http + "}\n" +
         "- {name: tls, hosts: [tls.example], endpoint: " + https + "}\n";
}

std::vector<std::string> arguments_with(std::vector<std::string> more) {
  more.insert(more.begin(), {"--supervise", "--silence-seconds", "2"});
  return more;
}

}  // namespace

Supervised::Supervised(uint16_t origin_port, uint16_t tls_port, std::vector<std::string> by,
                       std::vector<std::string> more_arguments)
    : configuration_(configuration_for(tier_.path(), origin_port, tls_port)),
      process_(configuration_, {}, arguments_with(std::move(more_arguments)), std::move(by)) {}

void Supervised::start() {
  process_.launch();
  ASSERT_TRUE(process_.wait_ready()) << process_.log();
  ASSERT_TRUE(wait_back(0));
}

size_t Supervised::count(const std::string& text) const {
  const std::string log = process_.log();
  size_t out = 0;
  for (size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++out;
  return out;
}

pid_t Supervised::cache() const {
  const std::string log = process_.log();
  const size_t at = log.rfind(kStarted);
  return at == std::string::npos ? -1 : std::atoi(log.c_str() + at + kStarted.size());
}

size_t Supervised::accepted() const { return count("the cache accepts process="); }
void Supervised::kill_cache() const { ::kill(cache(), SIGKILL); }
bool Supervised::wait_back(size_t accepted_before) const {
  return eventually([&] { return accepted() > accepted_before; });
}

bool Supervised::becomes_hit(const std::string& target) const {
  return eventually([&] { return ask(get(target)).cache_status().find("; hit") != std::string::npos; });
}

void Supervised::send_away() {
  const size_t ended = count("the cache ended");
  process_.configure("upstreams: {this is no list\n");
  kill_cache();
  EXPECT_TRUE(eventually([&] { return count("the cache ended") > ended + 1; })) << process_.log();
}

bool Supervised::come_back() {
  const size_t before = accepted();
  process_.configure(configuration_);
  return wait_back(before);
}

}  // namespace nezha::test
