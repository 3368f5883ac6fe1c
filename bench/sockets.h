// The few socket calls that the programs of bench/ share; IPv4 loopback only. Failures at start end the program with
// one line: a benchmark has nothing to repair. Threads: free functions without state.
#pragma once

#include <cstdint>
#include <string>

namespace nezha::bench {

// Prints "PROGRAM: what: errno's text" and exits with status 1.
[[noreturn]] void die(const std::string& what);

// A non-blocking listener on 127.0.0.1:port, and a port that `listen_on(0)` got.
int listen_on(uint16_t port);
uint16_t port_of(int fd);

// A non-blocking connection under way to 127.0.0.1:port.
int connect_to(uint16_t port);

// Accepts one connection, non-blocking and with TCP_NODELAY; -1 when none waits.
int accept_from(int listener);

// An epoll set, and adding an edge- or level-triggered descriptor to it with a pointer of the caller's.
int make_epoll();
void watch(int epoll, int fd, uint32_t events, void* owner);

}  // namespace nezha::bench
