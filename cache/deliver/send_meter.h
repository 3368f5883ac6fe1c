// SendMeter: which way of sending stored bytes costs this machine less: copied from the mapping, or by sendfile.
// It depends on kernel, file system and route by a factor of two or more in either direction, so it is measured while
// serving: CPU time of the thread per byte, each way tried now and then.
// Threads: one loop's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nezha::cache {

class SendMeter {
 public:
  // One call to the kernel: ask by_file(), make the call, say done().
  class Turn {
   public:
    explicit Turn(SendMeter& meter);
    bool by_file() const { return by_file_; }
    void done(size_t sent_bytes) const;

   private:
    SendMeter& meter_;
    bool measured_ = false;  // asking for the CPU's time is a call to the kernel itself: not each time
    bool by_file_;
    uint64_t begin_ns_;
  };

 private:
  struct Way {
    double ns_per_byte = 0;  // moving average; 0: not tried
    uint32_t count = 0;      // of measurements, as far as it matters
  };
  bool choose(bool& measure);

  Way copy_, file_;
  uint32_t turns_ = 0;
};

}  // namespace nezha::cache
