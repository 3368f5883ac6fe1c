// Tier: records on one medium, in segments of equal size that are written from front to back and given up whole.
// Knows bytes, not HTTP: what a record belongs to is the caller's (the index's) business, and so is which records of a
// segment being reclaimed are worth keeping. Never hands out bytes that were not written in full, never holds more than
// its size.
//
// Two append streams, probation and main, each with one open segment. One segment is kept back for reclaiming itself.
// Threads: any. Calls marked "blocks" wait for the medium: not on a loop.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "cache/policy/policy.h"
#include "cache/tier/format.h"
#include "cache/tier/medium.h"
#include "nezha/base/clock.h"

namespace nezha::cache {

// Where a record's data lies. Valid until its segment is reclaimed: the index forgets it before.
struct Place {
  uint32_t segment = 0;  // the tier's id in the highest byte
  uint32_t slot = 0;
  uint32_t offset_units = 0;  // of 64 bytes
  uint32_t size_bytes = 0;

  uint8_t tier() const { return static_cast<uint8_t>(segment >> 24); }
  uint32_t number() const { return segment & 0xFFFFFF; }
  uint64_t offset_bytes() const { return static_cast<uint64_t>(offset_units) * format::kSmallAlignBytes; }
  friend bool operator==(const Place&, const Place&) = default;
};

// Bytes in a tier, or in memory on their way there, that stay in place while this value lives.
struct PinnedBytes {
  std::string_view bytes;
  std::shared_ptr<const void> pin;
  std::optional<Place> place = std::nullopt;  // of the whole record; absent for bytes that need no loading
  int file = -1;                              // that holds them too, from `file_begin` on; -1: none
  const char* file_begin = nullptr;
  uint64_t file_offset() const { return static_cast<uint64_t>(bytes.data() - file_begin); }
};

struct TierOptions {
  uint8_t id = 0;
  uint64_t size_bytes = 0;     // hard limit of all that lies on the medium
  uint64_t segment_bytes = 0;  // 0: chosen from the size
  uint64_t beside_bytes = 0;   // of the size: for what is no segment
  bool distrusted = false;     // what is there must not be served: the tier starts empty
};

// What an earlier process left, by what became of it.
struct TierRecovery {
  size_t segments = 0;
  size_t damaged = 0;                  // given up: nothing in them could be trusted
  std::vector<std::string> set_aside;  // not ours or of another version: where they are now
  // Sound segments that were removed because tombstones for their records may be missing: one that held some is lost,
  // or the options say so.
  size_t distrusted = 0;
};

struct Segment;  // segment.h

class Tier {
 public:
  // Takes over the segments that are there. Those that are not to be served are gone for good when it returns, or the
  // tier is abandoned(). Blocks. Fails with kFixInput: the size is under kTierBytesMin, or the medium cannot be listed.
  static Result<std::unique_ptr<Tier>> open(std::unique_ptr<Medium> medium, const TierOptions& options,
                                            const Clock& clock);
  ~Tier();

  // Space promised to one fill; given back when destroyed. Null when the tier could not hold the fill beside those
  // already promised.
  class Reservation;
  std::unique_ptr<Reservation> reserve(uint64_t size_bytes);

  struct Appended {
    Place place;
    PinnedBytes bytes;  // pinned, so that the segment stays until the index knows the place
  };
  // Blocks. Fails with kRetryLater when a segment must be reclaimed first, with kGiveUp on an error of the medium or
  // for more than record_bytes_max().
  Result<Appended> append(Queue queue, const Record& record, std::string_view bytes);
  // The same, with the segment that is kept back: for records that a reclaim keeps.
  Result<Appended> append_kept(const Record& record, std::string_view bytes);
  // Writes a tombstone, twice, so that one damaged descriptor does not bring back what it forbids; outlives power when
  // it returns and `durable` is set. Blocks. Fails as append() does.
  Result<void> append_tombstone(Record tombstone, bool durable);
  // The same for many, each once, all of which outlive power when it returns.
  Result<void> carry_tombstones(const std::vector<Record>& tombstones);

  // REQUIRES: the caller knows that the segment was not given back: it holds the index's lock, or another pin.
  PinnedBytes pin(const Place& place) const;
  // Whether the bytes can be read without waiting and were found to be what was written. Cheap; a hint.
  bool is_ready(const Place& place) const;
  // Makes it so. Blocks. Fails with kGiveUp: the medium cannot read them, or they are not what was written.
  // REQUIRES: the place is pinned.
  Result<void> make_ready(const Place& place);

  // The index knows one more record there, or one less.
  void retain(const Place& place);
  void release(const Place& place);

  // Starts to bring the bytes in, without waiting. REQUIRES: the place is pinned.
  void prefetch(const Place& place) const;

  // Reclaiming: take a segment out of service, move what is worth it, wipe it, forget the rest, give it back.
  struct Victim {
    uint32_t number = 0;
    Queue queue = Queue::kProbation;
  };
  // A dead segment if there is one, else the oldest sealed one of the queue, else of the other queue, that nobody reads
  // or writes; nothing: there is none.
  std::optional<Victim> take_victim(Queue preferred);
  // Back into service, untouched.
  void put_back(const Victim& victim);
  using Visit = std::function<void(const Record&, const Place&)>;
  // Out of service for good, because its descriptors cannot be read: what the index knows of it stays readable, what it
  // forbids stays forbidden.
  void retire(const Victim& victim);
  // The records of a segment out of service, oldest first. Blocks. Fails with kGiveUp: some can no longer be read.
  Result<void> visit_victim(const Victim& victim, const Visit& visit);
  // Whether the index knows records there.
  bool is_indexed(const Victim& victim) const;
  // Whether a tombstone found in a victim is still needed: older segments are there that may hold what it forbids.
  bool tombstone_needed(const Record& tombstone, const Victim& victim) const;
  // So that its records do not come back with a restart; until then they can still be read. Fails with kGiveUp when
  // that cannot be written: the tier must be abandoned. Blocks.
  Result<void> wipe(const Victim& victim);
  // Its room is free from when its last reader leaves. REQUIRES: it was wiped, the index holds no place in it. Blocks.
  void give_back(const Victim& victim);

  // Every record of the segments taken over at open(), or only their tombstones, oldest first. Blocks. Fails with
  // kGiveUp: the medium cannot read one of them again, and what it forbids is not known.
  enum class Which { kAll, kTombstones };
  Result<void> visit_recovered(const Visit& visit, Which which = Which::kAll);
  const TierRecovery& recovery() const { return recovery_; }

  // No more appends; nothing of it outlives the process. What is pinned or indexed stays readable.
  // False: what lies there could not be removed, and must be by hand.
  bool abandon();
  bool abandoned() const { return abandoned_; }

  uint8_t id() const { return id_; }
  bool durable() const { return medium_->durable(); }
  std::string name() const { return medium_->name(); }
  uint64_t segment_bytes() const { return segment_bytes_; }
  uint64_t record_bytes_max() const;
  // Pieces of long bodies of this size fill segments without much waste; at most limits::kPieceBytes.
  uint64_t piece_bytes() const;
  uint64_t size_bytes() const { return segments_max_ * segment_bytes_; }
  uint64_t used_bytes() const;
  uint64_t queue_bytes(Queue queue) const;
  // What can be appended before a segment must be reclaimed that holds anything.
  uint64_t free_bytes() const;
  // Whether it holds no segment, and so nothing that could come back.
  bool is_empty() const;
  // Why it could not grow, once per failure: it goes on with the segments it has, and tries again after a minute.
  std::optional<std::string> take_growth_failure();
  // Whether append() has a segment to open.
  bool has_free_segment() const;
  // Bytes written for the first time, and again because a reclaim kept them.
  uint64_t appended_bytes() const { return appended_bytes_; }
  uint64_t kept_bytes() const { return kept_bytes_; }

 private:
  using SegmentPtr = std::shared_ptr<Segment>;
  struct Slot {
    SegmentPtr segment;
    uint32_t slot = 0;
    uint64_t offset = 0;
  };
  enum class Use { kNormal, kKept, kTombstone };

  Tier(std::unique_ptr<Medium> medium, const TierOptions& options, const Clock& clock);
  Result<void> take_over();
  void adopt(uint32_t number);
  void lose(uint32_t number, bool may_hold_tombstones);
  bool find_slots(Segment& segment) const;
  std::vector<SegmentPtr> drop_surplus();
  Result<void> save_tombstones(const std::vector<SegmentPtr>& dropped);
  Result<Appended> append(Queue queue, Use use, const Record& record, std::string_view bytes);
  Result<Slot> allocate(Queue queue, Use use, uint64_t size_bytes);
  std::optional<Slot> slot_in_open(Queue queue, Use use, uint64_t size_bytes);  // REQUIRES: mutex_ held
  // These four wait for the medium. REQUIRES: opening_mutex_ held, mutex_ not.
  Result<void> open_segment(Queue queue, bool may_use_last);
  void renew_released();
  Result<SegmentPtr> take_free(bool may_use_last);
  Result<void> write_header(Segment& segment, Queue queue);
  uint64_t next_sequence() const;
  Result<void> sync_record(const Place& place);
  bool older_records(uint64_t up_to_sequence, const Segment* except) const;  // REQUIRES: mutex_ held
  std::vector<SegmentPtr> take_released();
  void renew(std::vector<SegmentPtr> released);
  void seal(SegmentPtr segment, Queue queue);
  void count_free();
  void count_if_dead(Segment& segment);
  void uncount_dead(Segment& segment);
  Result<void> write_record(const Slot& slot, const Record& record, std::string_view bytes);
  Result<uint32_t> visit_segment(const Segment& segment, const Visit& visit, Which which = Which::kAll) const;
  bool block_is_resident(const Segment& segment, const Place& place) const;

  const uint8_t id_;
  const Clock& clock_;
  const std::unique_ptr<Medium> medium_;
  uint64_t segment_bytes_ = 0;
  uint64_t segments_max_ = 0;
  TierRecovery recovery_;
  bool lost_tombstones_ = false;    // while taking over
  std::vector<Record> tombstones_;  // of segments that were too many when they were taken over

  std::mutex opening_mutex_;  // one segment is opened at a time; taken before mutex_
  mutable std::mutex mutex_;  // not held while the medium is waited for, but to give the tier up
  std::atomic<uint64_t> reserved_bytes_{0};
  std::atomic<size_t> free_segments_{0};  // as of the last change
  uint64_t next_sequence_ = 1;
  size_t segment_count_ = 0;
  std::vector<SegmentPtr> segments_;  // by number; the vector never moves, a pointer is set once
  std::array<SegmentPtr, 2> open_;    // by queue
  std::array<std::deque<SegmentPtr>, 2> sealed_;
  std::deque<SegmentPtr> free_;
  std::vector<SegmentPtr> released_;  // reclaimed while still being read
  std::vector<SegmentPtr> retired_;
  std::atomic<bool> abandoned_{false};
  bool growing_ = true;  // the medium had room when it was last asked
  SteadyTime grow_again_at_{};
  std::optional<std::string> growth_failure_;
  std::atomic<size_t> dead_segments_{0};
  std::atomic<uint64_t> appended_bytes_{0};
  std::atomic<uint64_t> kept_bytes_{0};
};

class Tier::Reservation {
 public:
  Reservation(Tier& tier, uint64_t size_bytes) : tier_(tier), size_bytes_(size_bytes) {}
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

 private:
  Tier& tier_;
  const uint64_t size_bytes_;
};

}  // namespace nezha::cache
