// For cpp-httplib's servers, whose default is SO_REUSEPORT: a second server would share the port unseen.
// Threads: any.
#pragma once

#include <sys/socket.h>

namespace nezha {

inline void reuse_address(int descriptor) {
  const int yes = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

}  // namespace nezha
