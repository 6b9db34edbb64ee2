// zstd: any number of frames, with or without content size and checksum; windows up to 128 MiB as
// level 22 writes them.
#include "codec.hpp"

#include <zstd.h>

namespace kanal::records {
namespace {

constexpr std::size_t kKeepContext = 4 * 1024 * 1024;  // a larger one is given back after its batch

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};

class ZstdReader final : public Reader {
 public:
  Result<void> open(Bytes payload) override {
    if (!context_) context_.reset(ZSTD_createDCtx());
    if (!context_) return codec_error("zstd: no memory");
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
    reserve_scratch(chunk_, kChunkSize);
    in_ = {payload.data(), payload.size(), 0};
    frame_done_ = true;
    return {};
  }

  Result<Bytes> next() override {
    for (;;) {
      if (in_.pos == in_.size && frame_done_) return Bytes();
      ZSTD_outBuffer out{chunk_.data(), chunk_.size(), 0};
      const std::size_t before = in_.pos;
      const std::size_t outcome = ZSTD_decompressStream(context_.get(), &out, &in_);
      if (ZSTD_isError(outcome) != 0) return codec_error("zstd: the stream is damaged");
      frame_done_ = outcome == 0;
      if (out.pos != 0) return Bytes(chunk_.data(), out.pos);
      if (!frame_done_ && in_.pos == before) return codec_error("zstd: the stream is cut");
    }
  }

  void close() noexcept override {
    if (context_ && ZSTD_sizeof_DCtx(context_.get()) > kKeepContext) context_.reset();
  }

 private:
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  Buffer chunk_;
  ZSTD_inBuffer in_{};
  bool frame_done_ = true;
};

class ZstdWriter final : public Writer {
 public:
  Result<void> open(int level, Buffer& out) override {
    if (!context_) context_.reset(ZSTD_createCCtx());
    if (!context_) return codec_error("zstd: no memory");
    ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
    chunk_.resize(kChunkSize);
    out_ = &out;
    return {};
  }

  Result<void> write(Bytes bytes) override { return run(bytes, ZSTD_e_continue); }

  Result<void> finish() override {
    Result<void> done = run({}, ZSTD_e_end);
    if (ZSTD_sizeof_CCtx(context_.get()) > kKeepContext) context_.reset();
    return done;
  }

 private:
  Result<void> run(Bytes bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer out{chunk_.data(), chunk_.size(), 0};
      const std::size_t left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
      if (ZSTD_isError(left) != 0) return codec_error("zstd: compression failed");
      append(*out_, Bytes(chunk_.data(), out.pos));
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return {};
    }
  }

  std::unique_ptr<ZSTD_CCtx, FreeContext> context_;
  Buffer chunk_;
  Buffer* out_ = nullptr;
};

}  // namespace

std::unique_ptr<Reader> make_zstd_reader() {
  return std::make_unique<ZstdReader>();
}
std::unique_ptr<Writer> make_zstd_writer() {
  return std::make_unique<ZstdWriter>();
}

}  // namespace kanal::records
