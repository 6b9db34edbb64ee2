#include "check_overlay.hpp"

#include "blob.hpp"

#include <algorithm>
#include <utility>

namespace kanal::log {
namespace {

class OverlayFile final : public File {
 public:
  OverlayFile(std::unique_ptr<File> below, std::uint64_t below_size,
              std::shared_ptr<OverlayFiles::Written> over)
      : below_(std::move(below)), below_size_(below_size), over_(std::move(over)) {}

  Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const override {
    if (position >= over_->size) return std::size_t{0};
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), over_->size - position));
    into = into.first(length);
    std::ranges::fill(into, std::byte{0});
    if (position < below_size_) {
      const auto got = below_->read_at(position, into);
      if (!got) return got;
    }
    for (const auto& piece : over_->pieces) {
      const std::uint64_t begin = std::max(position, piece.position);
      const std::uint64_t end =
          std::min<std::uint64_t>(position + length, piece.position + piece.bytes.size());
      if (begin >= end) continue;
      std::copy_n(piece.bytes.begin() + static_cast<std::ptrdiff_t>(begin - piece.position),
                  end - begin, into.begin() + static_cast<std::ptrdiff_t>(begin - position));
    }
    return length;
  }
  Result<void> write_at(std::uint64_t position, std::span<const Bytes> pieces) override {
    for (const Bytes& bytes : pieces) {
      over_->pieces.push_back({position, Buffer(bytes.begin(), bytes.end())});
      position += bytes.size();
      over_->size = std::max(over_->size, position);
    }
    return {};
  }
  Result<void> sync() override { return {}; }
  Result<void> truncate(std::uint64_t) override {
    return storage_error("looking only: nothing is cut");
  }
  Result<void> allocate(std::uint64_t, std::uint64_t) override { return {}; }
  Result<std::uint64_t> size() const override { return over_->size; }
  bool cached(std::uint64_t, std::uint64_t) const noexcept override { return true; }
  int native_handle() const noexcept override { return -1; }

 private:
  const std::unique_ptr<File> below_;
  const std::uint64_t below_size_;
  const std::shared_ptr<OverlayFiles::Written> over_;
};

}  // namespace

Result<std::unique_ptr<File>> OverlayFiles::open(const std::string& path, OpenMode mode) {
  if (mode == OpenMode::kCreate) return storage_error("looking only: '" + path + "' is not made");
  auto below = below_.open(path, OpenMode::kRead);
  const auto known = written_.find(path);
  if (!below || (mode == OpenMode::kRead && known == written_.end())) return below;
  const auto size = (*below)->size();
  if (!size) return std::unexpected(size.error());
  auto& over = known != written_.end() ? known->second : written_[path];
  if (over == nullptr) over = std::make_shared<Written>(Written{{}, *size});
  return std::make_unique<OverlayFile>(std::move(*below), *size, over);
}

Result<std::unique_ptr<FileLock>> OverlayFiles::lock(const std::string& path) {
  return storage_error("looking only: '" + path + "' is not locked");
}

}  // namespace kanal::log
