// SipHash-2-4 with 128 bits of output (Aumasson, Bernstein), fed piece by piece: a digest of keys
// that nobody without the secret can make collide. One thread; a value.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/records/compact.hpp"

#include <bit>
#include <cstdint>

namespace kanal::records {

class SipHash {
 public:
  explicit SipHash(const DigestSecret& secret) noexcept
      : v0_(secret.low ^ 0x736f'6d65'7073'6575),
        v1_(secret.high ^ 0x646f'7261'6e64'6f6d ^ 0xEE),
        v2_(secret.low ^ 0x6c79'6765'6e65'7261),
        v3_(secret.high ^ 0x7465'6462'7974'6573) {}

  void update(Bytes bytes) noexcept {
    length_ += bytes.size();
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    for (; held_ != 0 && left > 0; --left) hold(*at++);
    for (; left >= sizeof(std::uint64_t); left -= sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, sizeof word);
      if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
      compress(word);
      at += sizeof word;
    }
    for (; left > 0; --left) hold(*at++);
  }

  [[nodiscard]] KeyDigest finish() noexcept {
    compress(word_ | std::uint64_t{length_ & 0xFF} << 56);
    v2_ ^= 0xEE;
    rounds(4);
    KeyDigest digest;
    digest.low = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xDD;
    rounds(4);
    digest.high = v0_ ^ v1_ ^ v2_ ^ v3_;
    return digest;
  }

 private:
  void hold(std::byte byte) noexcept {
    word_ |= static_cast<std::uint64_t>(byte) << (8 * held_);
    if (++held_ < sizeof word_) return;
    compress(word_);
    word_ = 0;
    held_ = 0;
  }
  void compress(std::uint64_t word) noexcept {
    v3_ ^= word;
    rounds(2);
    v0_ ^= word;
  }
  void rounds(int count) noexcept {
    for (int i = 0; i < count; ++i) {
      v0_ += v1_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v3_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ += v3_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ += v1_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t word_ = 0;  // the bytes that do not fill a word yet
  std::size_t held_ = 0;
  std::size_t length_ = 0;
};

}  // namespace kanal::records
