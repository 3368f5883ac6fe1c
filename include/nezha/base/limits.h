// Every limit of the product in one place, so that they can be reviewed as a set.
// Units stand in the names. The static_asserts say which limits must fit which.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace nezha::limits {

// Configuration.
inline constexpr size_t kConfigBytesMax = 1024 * 1024;  // a ConfigMap cannot be larger (etcd's limit)
inline constexpr size_t kConfigNestingMax = 32;
inline constexpr size_t kUpstreamsMax = 1000;
inline constexpr size_t kHostsPerUpstreamMax = 1000;

inline constexpr size_t kCertificateBytesMax = 1024 * 1024;  // a PEM file
inline constexpr size_t kCertificatesMax = 1000;             // pairs, listed or in the directory

// Admission.
inline constexpr size_t kReviewBytesMax = 8 * 1024 * 1024;  // the API server sends at most 3 MiB of object, twice
inline constexpr size_t kReviewNestingMax = 200;
inline constexpr size_t kAnnotationsBytesMax = 256 * 1024;  // the API server refuses a pod with more, keys and values
inline constexpr size_t kStatusHostsMax = 100;              // listed in nezha.io/status; the rest is counted
inline constexpr size_t kStatusReasonsMax = 20;
inline constexpr size_t kHostsLineBytesMusl = 511;  // musl reads /etc/hosts in lines of this length

// Interception.
inline constexpr size_t kInterceptedHostsMax = 400;             // their certificates fill one Secret (1 MiB)
inline constexpr size_t kAuthoritiesBytesMax = 700 * 1024;      // of CAs, as text, in one Secret
inline constexpr size_t kNotedNamespacesMax = 1000;             // that asked for it and do not have it yet
inline constexpr size_t kNamespacesPerPassMax = 20;             // that one pass of the controller writes to
inline constexpr size_t kRootsBytesMax = 700 * 1024;            // of all roots of a namespace, as PEM text
static_assert(kInterceptedHostsMax * 1536 <= kConfigBytesMax);  // a certificate in Base64, with a long name

// HTTP, both directions.
inline constexpr size_t kHeadBytesMax = 64 * 1024;  // request or response line plus all fields
inline constexpr size_t kHeadFieldsMax = 256;
inline constexpr size_t kInterimsMax = 1000;            // 1xx responses before a final one
inline constexpr size_t kChunkLineBytesMax = 4 * 1024;  // chunk size, extensions
inline constexpr size_t kRangesMax = 64;                // of one request; a longer list is ignored
inline constexpr size_t kConnectionsMax = 20'000;

// Time.
inline constexpr std::chrono::seconds kClientIdleTimeout{75};
inline constexpr std::chrono::seconds kHeadTimeout{30};       // from the first byte of a head to its end
inline constexpr std::chrono::seconds kBodyStallTimeout{60};  // no byte in either direction
inline constexpr std::chrono::seconds kConnectTimeout{10};
inline constexpr std::chrono::seconds kUpstreamIdleTimeout{30};
inline constexpr std::chrono::seconds kSlowReaderPatience{2};  // of those who read the same relay and wait
inline constexpr std::chrono::milliseconds kSlowReaderLook{250};
inline constexpr std::chrono::seconds kDrainTimeout{20};  // after SIGTERM
// How long past its lifetime an answer may stand in for a source that nobody reaches (RFC 9111 §4.2.4).
inline constexpr std::chrono::seconds kStaleWhenUnreachableMax{24 * 3600};

// Cache.
inline constexpr size_t kPieceBytes = 1024 * 1024;             // a body travels and is stored in pieces of this size
inline constexpr size_t kRelayBytes = 64 * 1024;               // buffer of a body that is only relayed
inline constexpr uint64_t kRelayBehindBytesMax = 1024 * 1024;  // sent from the store while the relay behind it waits
inline constexpr uint64_t kTierBytesMin = 16 * 1024 * 1024;
inline constexpr uint64_t kSegmentBytesMin = 1024 * 1024;
inline constexpr uint64_t kSegmentBytesMax = 64 * 1024 * 1024;
inline constexpr size_t kWorkers = 4;  // threads that may wait for a medium
inline constexpr size_t kTiersMax = 8;
inline constexpr size_t kPiecesAhead = 2;                  // brought in while one is sent that was not in memory
inline constexpr size_t kGenerationsPerPathMax = 1024;     // queries and variants of one path
inline constexpr size_t kExtentsPerGenerationMax = 16384;  // pieces of one representation
inline constexpr size_t kLoaders = 2;                      // threads that bring stored bytes into memory
inline constexpr uint64_t kPromotionShare = 8;     // an object of more than this part of a tier is not copied up to it
inline constexpr size_t kPromotionsMax = 64;       // copies to a faster tier that wait
inline constexpr size_t kFillPiecesUnwritten = 4;  // pieces in memory per fill that the medium is behind
inline constexpr size_t kFillWindowPieces = 8;     // pieces in memory per fill before the upstream waits

static_assert(kHeadBytesMax <= kPieceBytes);
static_assert(kSegmentBytesMin * 8 <= kTierBytesMin);

}  // namespace nezha::limits
