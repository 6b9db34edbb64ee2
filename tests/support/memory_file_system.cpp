#include "support/memory_file_system.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <map>
#include <system_error>

namespace kanal::test {
namespace {

constexpr std::uint64_t kPage = 4096;

std::unexpected<Error> failed(const char* what, const std::string& path, int error) {
  return kanal::fail(
      ErrorCode::KAFKA_STORAGE_ERROR,
      std::string("cannot ") + what + " '" + path + "': " + std::generic_category().message(error),
      error);
}

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

}  // namespace

struct MemoryFileSystem::Node {
  struct Change {
    std::uint64_t position = 0;
    Buffer bytes;
    bool is_truncate = false;  // to `position`
  };
  bool is_directory = false;
  Buffer data, durable;
  std::vector<Change> unsynced;
  using Entries = std::map<std::string, NodePtr>;  // nullptr in a change: removed
  Entries children, durable_children;
  std::vector<Entries> renamed;  // changes since the last sync of this directory, each at once
  bool cold = false;
  std::set<std::uint64_t> warm;  // pages, while cold

  static void apply(Buffer& to, const Change& change, std::size_t keep) {
    if (change.is_truncate) {
      to.resize(static_cast<std::size_t>(change.position));
      return;
    }
    const std::size_t end = static_cast<std::size_t>(change.position) + keep;
    if (to.size() < end) to.resize(end);
    std::ranges::copy(Bytes(change.bytes).first(keep),
                      to.begin() + static_cast<std::ptrdiff_t>(change.position));
  }
  static void set_entry(Entries& entries, const std::string& name, const NodePtr& child) {
    if (child == nullptr) {
      entries.erase(name);
    } else {
      entries[name] = child;
    }
  }
  void change_entries(const Entries& what) {
    for (const auto& [name, child] : what) set_entry(children, name, child);
    renamed.push_back(what);
  }
  void change(Change what) {
    apply(data, what, what.bytes.size());
    unsynced.push_back(std::move(what));
  }
  void sync() {  // costs what was written, not what is there
    for (const Change& each : unsynced) apply(durable, each, each.bytes.size());
    unsynced.clear();
  }
  void touch(std::uint64_t position, std::uint64_t size) {
    if (!cold || size == 0) return;
    for (std::uint64_t page = position / kPage; page <= (position + size - 1) / kPage; ++page) {
      warm.insert(page);
    }
  }
};

class MemoryFileSystem::OpenFile final : public File {
 public:
  OpenFile(MemoryFileSystem& files, NodePtr node, std::string path, bool writable)
      : files_(files),
        node_(std::move(node)),
        path_(std::move(path)),
        generation_(files.generation_),
        writable_(writable) {}

  Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const override {
    const std::lock_guard hold(files_.mutex_);
    if (auto ready = begin(kRead, "read"); !ready) return std::unexpected(ready.error());
    const std::size_t size = node_->data.size();
    if (position >= size) return std::size_t{0};
    const std::size_t got = std::min(into.size(), size - static_cast<std::size_t>(position));
    std::ranges::copy(Bytes(node_->data).subspan(static_cast<std::size_t>(position), got),
                      into.begin());
    node_->touch(position, got);
    return got;
  }

  Result<void> write_at(std::uint64_t position, std::span<const Bytes> pieces) override {
    const std::lock_guard hold(files_.mutex_);
    Buffer all;
    for (const Bytes& piece : pieces) append(all, piece);
    auto ready = begin(kWrite, "write");
    std::size_t keep = all.size();
    if (!ready) keep = files_.half_write_ ? all.size() / 2 : 0;
    if (ready && files_.capacity_) {
      const std::uint64_t used = files_.used(*files_.root_);
      const std::uint64_t end = position + all.size();
      const std::uint64_t grown = end - std::min<std::uint64_t>(end, node_->data.size());
      const std::uint64_t room = *files_.capacity_ - std::min(used, *files_.capacity_);
      if (grown > room) {
        keep -= static_cast<std::size_t>(std::min<std::uint64_t>(grown - room, keep));
        ready = failed("write", path_, ENOSPC);
      }
    }
    all.resize(keep);
    if (keep > 0) node_->change({position, std::move(all), false});
    node_->touch(position, keep);
    return ready;
  }

  Result<void> sync() override {
    const std::lock_guard hold(files_.mutex_);
    if (auto ready = begin(kSync, "sync"); !ready) {
      if (files_.fault_ && files_.fault_->sync_loses) node_->unsynced.clear();
      return ready;
    }
    node_->sync();
    return {};
  }
  Result<void> truncate(std::uint64_t size) override {
    const std::lock_guard hold(files_.mutex_);
    if (auto ready = begin(kTruncate, "truncate"); !ready) return ready;
    if (size != node_->data.size()) node_->change({size, {}, true});
    return {};
  }
  Result<void> allocate(std::uint64_t, std::uint64_t) override {
    const std::lock_guard hold(files_.mutex_);
    return begin(kAllocate, "allocate");
  }
  Result<std::uint64_t> size() const override {
    const std::lock_guard hold(files_.mutex_);
    if (auto ready = begin(kLook, "stat"); !ready) return std::unexpected(ready.error());
    return std::uint64_t{node_->data.size()};
  }
  bool cached(std::uint64_t position, std::uint64_t bytes) const noexcept override {
    const std::lock_guard hold(files_.mutex_);
    if (!node_->cold || bytes == 0) return true;
    return node_->warm.contains(position / kPage) &&
           node_->warm.contains((position + bytes - 1) / kPage);
  }
  int native_handle() const noexcept override { return -1; }

 private:
  Result<void> begin(Operation kind, const char* what) const {
    if (generation_ != files_.generation_) return failed(what, path_, EIO);
    if (!writable_ && (kind & (kWrite | kTruncate | kAllocate)) != 0)
      return failed(what, path_, EBADF);
    return files_.step(kind, what, path_);
  }

  MemoryFileSystem& files_;
  const NodePtr node_;
  const std::string path_;
  const std::uint64_t generation_;
  const bool writable_;
};

class MemoryFileSystem::HeldLock final : public FileLock {
 public:
  HeldLock(MemoryFileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  ~HeldLock() override {
    const std::lock_guard hold(files_.mutex_);
    files_.locks_.erase(path_);
  }

 private:
  MemoryFileSystem& files_;
  const std::string path_;
};

MemoryFileSystem::MemoryFileSystem() : root_(std::make_shared<Node>()), counts_(32) {
  root_->is_directory = true;
}
MemoryFileSystem::~MemoryFileSystem() = default;

void MemoryFileSystem::fail(const Fault& fault) {
  const std::lock_guard hold(mutex_);
  fault_ = fault;
  fault_seen_ = 0;
  fault_fired_ = false;
}

void MemoryFileSystem::clear_faults() {
  const std::lock_guard hold(mutex_);
  fault_.reset();
}

bool MemoryFileSystem::fault_fired() const {
  const std::lock_guard hold(mutex_);
  return fault_fired_;
}

std::uint64_t MemoryFileSystem::take_count(std::uint32_t kinds) {
  const std::lock_guard hold(mutex_);
  std::uint64_t sum = 0;
  for (std::size_t bit = 0; bit < counts_.size(); ++bit) {
    if ((kinds >> bit & 1) != 0) sum += std::exchange(counts_[bit], 0);
  }
  return sum;
}

void MemoryFileSystem::set_capacity(std::optional<std::uint64_t> bytes) {
  const std::lock_guard hold(mutex_);
  capacity_ = bytes;
}

Result<void> MemoryFileSystem::step(Operation kind, const char* what, const std::string& path) {
  ++counts_[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(kind)))];
  half_write_ = false;
  if (!fault_ || (fault_->kinds & kind) == 0) return {};
  const std::uint64_t seen = fault_seen_++;
  if (seen < fault_->at || (seen > fault_->at && !fault_->sticky)) return {};
  fault_fired_ = true;
  half_write_ = fault_->half_write;
  return failed(what, path, fault_->error);
}

void MemoryFileSystem::cut(Node& node, const std::string& path, const PowerCut& survives) {
  if (node.is_directory) {
    std::size_t keep = 0;
    if (survives.keep_names && !node.renamed.empty()) {
      keep = std::min(survives.keep_names(path, node.renamed.size()), node.renamed.size());
    }
    for (std::size_t i = 0; i < keep; ++i) {
      for (const auto& [name, child] : node.renamed[i])
        Node::set_entry(node.durable_children, name, child);
    }
    node.renamed.clear();
    node.children = node.durable_children;
    for (auto& [name, child] : node.children) cut(*child, path + "/" + name, survives);
    return;
  }
  std::size_t keep = 0;
  if (survives.keep_writes && !node.unsynced.empty()) {
    keep = std::min(survives.keep_writes(path, node.unsynced.size()), node.unsynced.size());
  }
  for (std::size_t i = 0; i < keep; ++i) {
    const Node::Change& change = node.unsynced[i];
    std::size_t bytes = change.bytes.size();
    if (i + 1 == keep && survives.keep_bytes && !change.is_truncate) {
      bytes = std::min(survives.keep_bytes(bytes), bytes);
    }
    Node::apply(node.durable, change, bytes);
  }
  node.data = node.durable;
  node.unsynced.clear();
}

void MemoryFileSystem::power_cut(const PowerCut& what_survives) {
  const std::lock_guard hold(mutex_);
  ++generation_;
  locks_.clear();
  cut(*root_, "", what_survives);
}

void MemoryFileSystem::drop_caches() {
  const std::lock_guard hold(mutex_);
  const auto drop = [](const auto& self, Node& node) -> void {
    node.cold = true;
    node.warm.clear();
    for (auto& [name, child] : node.children) self(self, *child);
  };
  drop(drop, *root_);
}

std::optional<Buffer> MemoryFileSystem::content(const std::string& path) const {
  const std::lock_guard hold(mutex_);
  const NodePtr node = find(path);
  if (node == nullptr || node->is_directory) return std::nullopt;
  return node->data;
}

void MemoryFileSystem::set_content(const std::string& path, Bytes bytes) {
  const std::lock_guard hold(mutex_);
  const NodePtr directory = make_directories(directory_of(path));
  NodePtr& node = directory->children[name_of(path)];
  if (node == nullptr) node = std::make_shared<Node>();
  node->data.assign(bytes.begin(), bytes.end());
  node->durable = node->data;
  node->unsynced.clear();
  directory->durable_children[name_of(path)] = node;
}

void MemoryFileSystem::erase(const std::string& path) {
  const std::lock_guard hold(mutex_);
  const NodePtr directory = parent_of(path);
  if (directory == nullptr) return;
  directory->children.erase(name_of(path));
  directory->durable_children.erase(name_of(path));
}

std::vector<std::string> MemoryFileSystem::files() const {
  const std::lock_guard hold(mutex_);
  std::vector<std::string> paths;
  list_files(*root_, "", paths);
  return paths;
}

void MemoryFileSystem::list_files(const Node& node, const std::string& path,
                                  std::vector<std::string>& out) {
  for (const auto& [name, child] : node.children) {
    const std::string below = path + "/" + name;
    if (child->is_directory) {
      list_files(*child, below, out);
    } else {
      out.push_back(below);
    }
  }
}

std::uint64_t MemoryFileSystem::bytes() const {
  const std::lock_guard hold(mutex_);
  return used(*root_);
}

std::uint64_t MemoryFileSystem::used(const Node& node) const {
  std::uint64_t sum = node.data.size();
  for (const auto& [name, child] : node.children) sum += used(*child);
  return sum;
}

MemoryFileSystem::NodePtr MemoryFileSystem::find(const std::string& path) const {
  NodePtr node = root_;
  for (std::size_t at = 0; at < path.size() && node != nullptr;) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    if (slash > at) {
      const auto child = node->children.find(path.substr(at, slash - at));
      node = child == node->children.end() ? nullptr : child->second;
    }
    at = slash + 1;
  }
  return node;
}

MemoryFileSystem::NodePtr MemoryFileSystem::parent_of(const std::string& path) const {
  const NodePtr node = find(directory_of(path));
  return node != nullptr && node->is_directory ? node : nullptr;
}

MemoryFileSystem::NodePtr MemoryFileSystem::make_directories(const std::string& path) {
  NodePtr node = root_;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    if (slash > at) {
      const std::string name = path.substr(at, slash - at);
      if (!node->children.contains(name)) {
        const auto child = std::make_shared<Node>();
        child->is_directory = true;
        node->change_entries({{name, child}});
      }
      node = node->children[name];
    }
    at = slash + 1;
  }
  return node;
}

Result<std::unique_ptr<File>> MemoryFileSystem::open(const std::string& path, OpenMode mode) {
  const std::lock_guard hold(mutex_);
  if (auto ready = step(kOpen, "open", path); !ready) return std::unexpected(ready.error());
  NodePtr node = find(path);
  if (node != nullptr && node->is_directory) return failed("open", path, EISDIR);
  if (node == nullptr) {
    const NodePtr directory = parent_of(path);
    if (mode != OpenMode::kCreate || directory == nullptr) return failed("open", path, ENOENT);
    node = std::make_shared<Node>();
    directory->change_entries({{name_of(path), node}});
  }
  return std::make_unique<OpenFile>(*this, node, path, mode != OpenMode::kRead);
}

Result<std::vector<DirectoryEntry>> MemoryFileSystem::list(const std::string& directory) {
  const std::lock_guard hold(mutex_);
  if (auto ready = step(kLook, "list", directory); !ready) return std::unexpected(ready.error());
  const NodePtr node = find(directory);
  if (node == nullptr || !node->is_directory) return failed("list", directory, ENOENT);
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, child] : node->children) entries.push_back({name, child->is_directory});
  return entries;
}

Result<bool> MemoryFileSystem::exists(const std::string& path) {
  const std::lock_guard hold(mutex_);
  if (auto ready = step(kLook, "stat", path); !ready) return std::unexpected(ready.error());
  return find(path) != nullptr;
}

Result<void> MemoryFileSystem::create_directories(const std::string& path) {
  const std::lock_guard hold(mutex_);
  if (auto ready = step(kMakeDirectory, "create the directory", path); !ready) return ready;
  make_directories(path);
  return {};
}

Result<void> MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  const std::lock_guard hold(mutex_);
  if (auto ready = step(kRename, "rename", from); !ready) return ready;
  const NodePtr node = find(from);
  const NodePtr target = parent_of(to);
  if (node == nullptr || target == nullptr) return failed("rename", from, ENOENT);
  const NodePtr source = parent_of(from);
  if (source == target) {
    target->change_entries({{name_of(from), nullptr}, {name_of(to), node}});
  } else {
    source->change_entries({{name_of(from), nullptr}});
    target->change_entries({{name_of(to), node}});
  }
  return {};
}

Result<void> MemoryFileSystem::remove(const std::string& path) {
  const std::lock_guard hold(mutex_);
  if (auto ready = step(kRemove, "remove", path); !ready) return ready;
  const NodePtr directory = parent_of(path);
  if (directory != nullptr && directory->children.contains(name_of(path))) {
    directory->change_entries({{name_of(path), nullptr}});
  }
  return {};
}

Result<void> MemoryFileSystem::remove_all(const std::string& path) {
  return remove(path);
}

Result<void> MemoryFileSystem::sync_directory(const std::string& path) {
  const std::lock_guard hold(mutex_);
  if (auto ready = step(kSyncDirectory, "sync the directory", path); !ready) return ready;
  const NodePtr node = find(path);
  if (node == nullptr || !node->is_directory) return failed("open the directory", path, ENOENT);
  node->durable_children = node->children;
  node->renamed.clear();
  return {};
}

Result<void> MemoryFileSystem::sync_all(const std::string& path) {
  const std::lock_guard hold(mutex_);
  if (auto ready = step(kSync, "sync the file system of", path); !ready) return ready;
  sync(*root_);
  return {};
}

void MemoryFileSystem::sync(Node& node) {
  node.sync();
  node.durable_children = node.children;
  node.renamed.clear();
  for (auto& [name, child] : node.children) sync(*child);
}

Result<DiskSpace> MemoryFileSystem::space(const std::string& path) {
  const std::lock_guard hold(mutex_);
  if (auto ready = step(kLook, "ask for the space of", path); !ready)
    return std::unexpected(ready.error());
  const std::uint64_t total = capacity_.value_or(std::uint64_t{1} << 40);
  return DiskSpace{total, total - std::min(total, used(*root_))};
}

Result<std::unique_ptr<FileLock>> MemoryFileSystem::lock(const std::string& path) {
  const std::lock_guard hold(mutex_);
  if (!locks_.insert(path).second) return failed("take the lock", path, EWOULDBLOCK);
  return std::make_unique<HeldLock>(*this, path);
}

}  // namespace kanal::test
