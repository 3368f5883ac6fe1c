// checksums: S3 tells the checksums of a whole object to those who ask for them (x-amz-checksum-mode, GetObject and
// HeadObject in Amazon's S3 API reference), so that field selects among answers as if Vary named it. An answer that has
// them serves everybody; those who did not ask get it without. One that was given without the wish serves only those
// who have none. Ranges never carry them: a request for one has no wish.
// Among the selecting fields of a stored answer the mode stands for "with"; without it they are not there.
// Pure. Threads: any.
#pragma once

#include <string>

#include "cache/classify/stored_head.h"

namespace nezha::cache {

inline constexpr std::string_view kChecksumMode = "x-amz-checksum-mode";

bool is_s3_checksum(std::string_view field_name);
bool asks_for_checksums(const http::Fields& request);

// For a head that is about to be stored. `request`: what it answers.
void note_checksum_mode(StoredHead& head, const http::Fields& request);
// Whether the stored head was given to somebody who asked.
bool has_checksums(const StoredHead& head);
// StoredHead::lines for those who did not ask.
std::string lines_without_checksums(const StoredHead& head);

// Whether one takes the other's place: the mode alone does not make two variants.
bool same_variant(const StoredHead& a, const StoredHead& b);
// Both are of one version: what `other` was told and `head` was not.
void take_over_checksums(StoredHead& head, const StoredHead& other);

}  // namespace nezha::cache
