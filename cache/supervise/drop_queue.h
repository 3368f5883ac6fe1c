// DropQueue: what writes that were relayed past the cache make stale there. Each drop is kept until a cache says that
// it is done: a cache that comes back makes up for all of them before it accepts its first client.
// This is the supervisor's end of the link (cache/supervise/link.h). Threads: the loop's own.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "nezha/net/async.h"

namespace nezha::cache {

struct Drop {
  std::string text;    // a path of the store
  bool under = false;  // and what lies under it
};

class DropQueue {
 public:
  // False: the cache has been away for so many writes that no more of them can be remembered.
  bool has_room() const;
  // Returns when the cache has done it, or will have before it accepts anybody.
  net::Task<> drop(std::vector<Drop> drops);

  // A new cache is ready at this end of its link: -1 there is none.
  void attach(int link);
  void detach();
  // It says that one more is done.
  void note_done();
  // Sends what the link takes, and behind the last drop the word to accept. True once that is out.
  bool pump();
  size_t size() const { return queue_.size(); }

 private:
  bool send(const std::string& message);

  std::deque<std::string> queue_;  // messages
  uint64_t first_ = 0;             // number of the front one
  size_t bytes_ = 0;
  size_t sent_ = 0;  // of the queue, to this cache
  int link_ = -1;
  bool accepting_ = false;
  net::Notification changed_;
};

}  // namespace nezha::cache
