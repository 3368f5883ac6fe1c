// Requests as botocore 1.44.8 signed and sent them, read off the socket of a server on 127.0.0.1:9000, and URLs that it
// presigned; the queries at the end are signed by its bare S3SigV4Auth. Fields that are neither signed nor x-amz-* are
// left out, and those that all have: Host, X-Amz-Date, the empty body's X-Amz-Content-SHA256, Authorization.
#pragma once

#include <string_view>

namespace nezha::test {

struct SignedRequest {
  std::string_view what, method, target, fields;
  std::string_view signed_headers, signature;  // empty when presigned
};

inline constexpr std::string_view kSignedRequestToken = "AQoEXAMPLEH4aoAH0gNCAPyJxz4BlCFFxWNE1OPTgk5TthT+/=";

// Of eu-central-1, at 20130524T000000Z.
inline constexpr SignedRequest kSignedRequests[] = {
    {"GetObject", "GET", "/examplebucket/plain.txt", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "a58ec1cccb08b124f80592a15cddc56c29a2f7ddb000d4a84b70d8359e2d3e56"},
    {"GetObject", "GET", "/examplebucket/a%2Bb//c%20d%252F%C3%A9", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "7f9834116ecc031871dc07b3f03ba9d40210dd024a276b08ed422594f3f2606a"},
    {"GetObject", "GET", "/examplebucket/%20leading%20and%20trailing%20", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "806743ea01de7522c0df95ec8a8ceb61ba99e19d7a290161dd1bf56980d5c09d"},
    {"GetObject", "GET", "/examplebucket/a/../b/./c", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "35b61c997e583fc375b7a366669a22fc9bc0fe86f19da6d40c28da2caa250cc7"},
    {"GetObject", "GET", "/examplebucket///", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "76ce582f8cf3031ff1fb17fe1753905029a095d4055c7e27641faf39d4f2488b"},
    {"GetObject", "GET", "/examplebucket//x", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "658d878fdc9a0446b8360b03fe09f14a77dff6c8d52755f54fcde5f2d348d0be"},
    {"GetObject", "GET", "/examplebucket/dir/", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "dd5bf8b3f50ee3ef66cbeec8f91c63a6e60f56619b661626655a4f1d71f1902c"},
    {"GetObject", "GET", "/examplebucket/a%26b%3Dc%3Fd%23e%3Bf", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "a0a38ac8b85aed7a9c63dba0d0ad126720ca4693391e5145224a6d6de19f7bda"},
    {"GetObject", "GET", "/examplebucket/~%21%2A%27%28%29-._", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "34ef73d4c7fb8bb885b418181317679bc1ea3edc498d0426b1572a21eaab79f1"},
    {"GetObject", "GET", "/examplebucket/%24%40%3A%2C%3D", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "72e4a61078c6c631bfaf4ffc12f290d6e420c26fe87cdb06d95ffa6e803ddee9"},
    {"GetObject", "GET", "/examplebucket/%E6%97%A5%E6%9C%AC/%E8%AA%9E%20%E6%96%87.txt",
     "x-amz-checksum-mode: ENABLED\r\n", "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "52c3279fcb9cf1c63b48556dcc7364dc093630c0fc2deb34a738481a4b48cbf7"},
    {"GetObject", "GET", "/examplebucket/%25", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "e80f816a955155650286626f94e581b46b5b573d793e075a8ee58d3229bfec93"},
    {"GetObject", "GET", "/examplebucket/%2541", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "5c53ac0abfff58cfc5757d932633b4c291e71ced0c6de98f461e2229e844fdf4"},
    {"GetObject", "GET", "/examplebucket/100%25", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "a1e8dced2db34a01d90a1b204dcc792a2950f939832460555ce1d9ae338cb8c7"},
    {"GetObject", "GET", "/examplebucket/%5Cback%7Cpipe%5E%7B%7D%5B%5D%3C%3E%22%60", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "fb2202e3126870e58dcde6b065f16a7bbaabe9bd4a47519981e3555459862741"},
    {"GetObject", "GET", "/examplebucket/%7F%01tab%09", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "d021055e95539dbb0f69d52e370c108974dd026b4e0647d310508d880a7f0ad1"},
    {"GetObject", "GET",
     "/examplebucket/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxx",
     "x-amz-checksum-mode: ENABLED\r\n", "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "8f95cfda9eaae66c913e59c97e44972da438efbdb504fe5a8baaa03aee12fbb1"},
    {"GetObject", "GET", "/examplebucket/%2A", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "ccabafa2e5dcf37eb93a80ca44eea5289a0863917e8e3a112b6da1a3af5e0721"},
    {"GetObject", "GET", "/examplebucket/emoji-%F0%9F%98%80", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "235a1c5136c12a6f535ca6b1e323b128557e04e2d6e0a33ba9e26413aa257481"},
    {"HeadObject", "HEAD", "/examplebucket/a%2Bb//c%20d%252F%C3%A9", "", "host;x-amz-content-sha256;x-amz-date",
     "0a751b3a8ff5c392434c4b29e351b72471333cc90f404cf976bf206cf56feb56"},
    {"GetObject, range and If-Match", "GET", "/examplebucket/k",
     "Range: bytes=1-9\r\n"
     "If-Match: \"e  t\"\r\n"
     "x-amz-checksum-mode: ENABLED\r\n",
     "host;if-match;range;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "7bcd1960b57e073fa2552688a4a177a097cd7c0bfd1573c7db7633f886347e51"},
    {"GetObject, version and overrides", "GET",
     "/examplebucket/k?versionId=a%2Bb%2Fc%3D&response-content-disposition=attachment%3B%20filename%3D%22a"
     "%20b%2Bc.txt%22&response-content-type=text%2Fplain%3B%20x%3D%C3%A9~",
     "x-amz-checksum-mode: ENABLED\r\n", "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "50edf2fb2b8c045452380b21df78b10583a1ef79dd6f474f7a90c6c7ee554c4b"},
    {"GetObject, part", "GET", "/examplebucket/k?partNumber=3", "x-amz-checksum-mode: ENABLED\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date",
     "7e247990c2071d4317a802dffdc58e1c81a4b68b3ef5504a225b66000c71dba2"},
    {"ListObjectsV2", "GET",
     "/examplebucket?list-type=2&prefix=&delimiter=%2F&start-after=%C3%A9%20z&max-keys=7&encoding-type=url", "",
     "host;x-amz-content-sha256;x-amz-date", "e613b748575f7979f4a33c9be89e0a57484ed30c7b2808209b60f0e8e440ce3c"},
    {"ListObjectsV2", "GET",
     "/examplebucket?list-type=2&prefix=a%20b%2Bc%2F%C3%A9%26%3D%25&delimiter=%2F&start-after=%C3%A9%20z&m"
     "ax-keys=7&encoding-type=url",
     "", "host;x-amz-content-sha256;x-amz-date", "3691fe30bd5badcf5f6c1c2c243439b98e2b962f730260f593bf2561f400af39"},
    {"ListObjectsV2", "GET",
     "/examplebucket?list-type=2&prefix=~%2A%27%28%29&delimiter=%2F&start-after=%C3%A9%20z&max-keys=7&enco"
     "ding-type=url",
     "", "host;x-amz-content-sha256;x-amz-date", "27c6a500bfe34d38302276d41e3f7316f52c8b71b56ae542a92243cf7af13677"},
    {"ListObjectsV2", "GET",
     "/examplebucket?list-type=2&prefix=%2F%2F&delimiter=%2F&start-after=%C3%A9%20z&max-keys=7&encoding-ty"
     "pe=url",
     "", "host;x-amz-content-sha256;x-amz-date", "56aa20e818b99e30f8e860f839f6127c947692cfdd7323d9fc75c19286d630b8"},
    {"ListBuckets", "GET", "/", "", "host;x-amz-content-sha256;x-amz-date",
     "b84cb2df5e9b0d73014d3a019f266c9513007add33aa1334f3b039c82bcb786b"},
    {"GetBucketAcl", "GET", "/examplebucket?acl", "", "host;x-amz-content-sha256;x-amz-date",
     "de9acea96029f75905229edf9f6785dc4e97163a0834ad4909628ecc13842630"},
    {"DeleteObject", "DELETE", "/examplebucket/a%20b", "Content-Length: 0\r\n", "host;x-amz-content-sha256;x-amz-date",
     "97ea2bae234a6d1f1c4d72183534ea32329175dc762fec668506624e0f05d701"},
    {"CopyObject", "PUT", "/examplebucket/dst",
     "x-amz-copy-source: src/k%20%2B%C3%A9\r\n"
     "x-amz-meta-a:   two  blanks  \r\n"
     "x-amz-meta-B: x\r\n"
     "x-amz-metadata-directive: REPLACE\r\n"
     "Content-Length: 0\r\n",
     "host;x-amz-content-sha256;x-amz-copy-source;x-amz-date;x-amz-meta-a;x-amz-meta-b;x-amz-metadata-dire"
     "ctive",
     "278997b12fc634871363b9bef5eb74c05d56794754cc44663fd9613f4bab0e7d"},
    {"PutObject", "PUT", "/examplebucket/p",
     "Content-Type: text/plain\r\n"
     "x-amz-meta-note: a,b;c\r\n"
     "Expect: 100-continue\r\n"
     "x-amz-checksum-crc32: NhCmhg==\r\n"
     "x-amz-sdk-checksum-algorithm: CRC32\r\n"
     "X-Amz-Content-SHA256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\r\n"
     "Content-Length: 5\r\n",
     "content-type;host;x-amz-checksum-crc32;x-amz-content-sha256;x-amz-date;x-amz-meta-note;x-amz-sdk-che"
     "cksum-algorithm",
     "09ef8ff1a0a809fc229b9be87a44171914c19f4c93e480c139069faf61baad05"},
    {"CreateMultipartUpload", "POST", "/examplebucket/m%20%C3%A9?uploads", "Content-Length: 0\r\n",
     "host;x-amz-content-sha256;x-amz-date", "ebc82a524e6097c465cb1e3dd429b256dbfe016ec54d56cc94f4761cc9481203"},
    {"UploadPart", "PUT", "/examplebucket/m?uploadId=u%2B%2F%3D&partNumber=2",
     "Expect: 100-continue\r\n"
     "x-amz-checksum-crc32: NhCmhg==\r\n"
     "x-amz-sdk-checksum-algorithm: CRC32\r\n"
     "X-Amz-Content-SHA256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\r\n"
     "Content-Length: 5\r\n",
     "host;x-amz-checksum-crc32;x-amz-content-sha256;x-amz-date;x-amz-sdk-checksum-algorithm",
     "d4c68f6c181366865ec5b29b271bf66197669d25a111cf53b4a049bfe9413e47"},
    {"DeleteObjects", "POST", "/examplebucket?delete",
     "x-amz-checksum-crc32: CEaAGw==\r\n"
     "x-amz-sdk-checksum-algorithm: CRC32\r\n"
     "X-Amz-Content-SHA256: 0ebe2d4e061df349be597c8e7da1bea023a159bae0fb2a70efca7c1395be1439\r\n"
     "Content-Length: 94\r\n",
     "host;x-amz-checksum-crc32;x-amz-content-sha256;x-amz-date;x-amz-sdk-checksum-algorithm",
     "ad6a9784f6922be89f7b1ae0abb04981eb844b4bdc1df353b3d5d0f8281e6f3e"},
    {"GetObject, session token", "GET", "/examplebucket/s",
     "x-amz-checksum-mode: ENABLED\r\n"
     "X-Amz-Security-Token: AQoEXAMPLEH4aoAH0gNCAPyJxz4BlCFFxWNE1OPTgk5TthT+/=\r\n",
     "host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date;x-amz-security-token",
     "5a6efdb897ce4b058ef53ee76aeb57e731e20cc61dd81afc5ddb926449289fa0"},
    {"presigned GetObject", "GET",
     "/examplebucket/plain.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20"
     "130524%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=3600&X-Amz-Signe"
     "dHeaders=host&X-Amz-Signature=f5eb77f278258a958219fe5b6271e64b4e1ff4cc90235503081f8a3315e924f7",
     "", "", ""},
    {"presigned GetObject", "GET",
     "/examplebucket/a%2Bb//c%20d%252F%C3%A9?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODN"
     "N7EXAMPLE%2F20130524%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=36"
     "00&X-Amz-SignedHeaders=host&X-Amz-Signature=272d7357f2c85afcc610fbe742b9fa602d2672555190b5c5c3a4547b"
     "ac3bc21a",
     "", "", ""},
    {"presigned GetObject", "GET",
     "/examplebucket/a%26b%3Dc%3Fd%23e%3Bf?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7"
     "EXAMPLE%2F20130524%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=3600"
     "&X-Amz-SignedHeaders=host&X-Amz-Signature=5e4745a8ba94a217434cda200b243f27e98e88f115744ccbaa89cad944"
     "4b3a57",
     "", "", ""},
    {"presigned GetObject", "GET",
     "/examplebucket/%24%40%3A%2C%3D~%21%2A%27%28%29?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKI"
     "AIOSFODNN7EXAMPLE%2F20130524%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Ex"
     "pires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature=c3ce225584914473cc9d2812f57c0a0af9248cf6d09f0323"
     "093476f35b37d19c",
     "", "", ""},
    {"presigned GetObject, overrides", "GET",
     "/examplebucket/k?versionId=a%2Bb%2Fc%3D&response-content-type=text%2Fplain%3B%20x%3D%C3%A9~&X-Amz-Al"
     "gorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Feu-central-1%2Fs3%2Faws4"
     "_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=604800&X-Amz-SignedHeaders=host&X-Amz-Signature=c"
     "494cb3eabb6d952c2de6932f1c9348b6eb9c18efcd3c4318e4508b8da300352",
     "", "", ""},
    {"presigned HeadObject", "HEAD",
     "/examplebucket/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2"
     "Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=h"
     "ost&X-Amz-Signature=1056308d0c6b931f92e1d4b399763385053bcd33e4bd569b79a1b024ef8a7e70",
     "", "", ""},
    {"presigned GetObject, session token", "GET",
     "/examplebucket/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2"
     "Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=h"
     "ost&X-Amz-Security-Token=AQoEXAMPLEH4aoAH0gNCAPyJxz4BlCFFxWNE1OPTgk5TthT%2B%2F%3D&X-Amz-Signature=ee"
     "526d16f83938afd16fd991608b9d5e0e58fd753075e0a49201a7ef22acd706",
     "", "", ""},
    {"presigned PutObject", "PUT",
     "/examplebucket/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2"
     "Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=h"
     "ost&X-Amz-Signature=684f05f8520f15afb11816096767bd0c3296d3bbd19deac41fb14bf5d86b6153",
     "", "", ""},
    {"query b=2&a=1&a-b=3&A=4&a=0", "GET", "/examplebucket?b=2&a=1&a-b=3&A=4&a=0",
     "X-Custom:   a   b  \r\n"
     "Content-Type: text/plain\r\n",
     "content-type;host;x-amz-content-sha256;x-amz-date;x-custom",
     "7ec946ec8f1b7f214db743d45e46b7f4fdd0616aa15fd6beb8636d2557c4b14c"},
    {"query acl", "GET", "/examplebucket?acl",
     "X-Custom:   a   b  \r\n"
     "Content-Type: text/plain\r\n",
     "content-type;host;x-amz-content-sha256;x-amz-date;x-custom",
     "1dae8b861e2886bc600d7f60c2fff8948b39130e6450e47ae5bdc5a2ea8f21ef"},
    {"query a=&b", "GET", "/examplebucket?a=&b",
     "X-Custom:   a   b  \r\n"
     "Content-Type: text/plain\r\n",
     "content-type;host;x-amz-content-sha256;x-amz-date;x-custom",
     "bb254d238055b8ace91310e5239aa4bd3ead8a6023b61d4f47a4a5719e71825f"},
    {"query x=%2F%20", "GET", "/examplebucket?x=%2F%20",
     "X-Custom:   a   b  \r\n"
     "Content-Type: text/plain\r\n",
     "content-type;host;x-amz-content-sha256;x-amz-date;x-custom",
     "0887c776ed27aaf0228806bdd5c5cb1a1924e3025c90a86c077d0ee2c28605ee"},
    {"query prefix=a%2Bb&prefix=%2B", "GET", "/examplebucket?prefix=a%2Bb&prefix=%2B",
     "X-Custom:   a   b  \r\n"
     "Content-Type: text/plain\r\n",
     "content-type;host;x-amz-content-sha256;x-amz-date;x-custom",
     "010514c1aee10accc986c0455d68789a160f00e4c481de3b254344967e7b7b71"},
    {"query a%3Db=c%26d", "GET", "/examplebucket?a%3Db=c%26d",
     "X-Custom:   a   b  \r\n"
     "Content-Type: text/plain\r\n",
     "content-type;host;x-amz-content-sha256;x-amz-date;x-custom",
     "0e3174c6d833938393cd03b0f0c9ea6626112edeb46d9c615cc73336d7b5d043"},
    {"query z=1&Z=1&_=1&.=1&-=1&~=1", "GET", "/examplebucket?z=1&Z=1&_=1&.=1&-=1&~=1",
     "X-Custom:   a   b  \r\n"
     "Content-Type: text/plain\r\n",
     "content-type;host;x-amz-content-sha256;x-amz-date;x-custom",
     "7c97c6d8fe35a8a1d291ffc37a51396ea67ce8cd9270f8190379463dca9a9c20"},
};

}  // namespace nezha::test
