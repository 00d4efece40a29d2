#include "support/disk_log.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/error.h"
#include "core/files/input_file.h"

namespace olmo::test {
namespace {

namespace fs = std::filesystem;

std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }

void write_into(std::string& content, std::int64_t offset, const std::string& data) {
  const auto begin = static_cast<std::size_t>(offset);
  if (content.size() < begin + data.size()) content.resize(begin + data.size());
  std::copy(data.begin(), data.end(), content.begin() + offset);
}

}  // namespace

DiskLog::DiskLog(const fs::path& log, fs::path root) : root_(std::move(root)) {
  nodes_.emplace_back(Node::Kind::kFolder);
  const std::string bytes = olmo::read_file(log);
  for (std::size_t at = 0; at < bytes.size();) {
    Change change;
    OLMO_CHECK(bytes.size() - at >= sizeof change.head);
    std::memcpy(&change.head, bytes.data() + at, sizeof change.head);
    at += sizeof change.head;
    change.path = bytes.substr(at, change.head.path_size);
    at += change.head.path_size;
    change.data = bytes.substr(at, change.head.data_size);
    at += change.head.data_size;
    changes_.push_back(std::move(change));
  }
}

bool DiskLog::next() {
  if (applied_ == changes_.size()) return false;
  apply(changes_[applied_++]);
  return true;
}

std::map<std::string, std::size_t>& DiskLog::folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder == root_ ? nodes_[0].entries : node_at(folder.string()).entries;
}

DiskLog::Node& DiskLog::node_at(const std::string& path) {
  if (fs::path(path) == root_) return nodes_[0];
  return nodes_[folder_of(path).at(name_of(path))];
}

std::size_t DiskLog::add(Node::Kind kind, std::uint64_t inode, const std::string& path) {
  nodes_.emplace_back(kind);
  by_inode_[inode] = nodes_.size() - 1;
  folder_of(path)[name_of(path)] = nodes_.size() - 1;
  return nodes_.size() - 1;
}

void DiskLog::apply(const Change& change) {
  const auto& [head, path, data] = change;
  switch (head.change) {
    case FaultChange::kCreate:
      add(Node::Kind::kFile, head.inode, path);
      break;
    case FaultChange::kMakeFolder:
      add(Node::Kind::kFolder, head.inode, path);
      break;
    case FaultChange::kLink:
      nodes_[add(Node::Kind::kLink, head.inode, path)].content = data;
      break;
    case FaultChange::kWrite: {
      Node& file = nodes_[by_inode_.at(head.inode)];
      write_into(file.content, head.offset, data);
      file.unsynced.emplace_back(head.offset, data);
      break;
    }
    case FaultChange::kTruncate: {
      Node& file = nodes_[by_inode_.at(head.inode)];
      file.content.resize(static_cast<std::size_t>(head.offset));
      file.unsynced.emplace_back(-1, std::to_string(head.offset));
      break;
    }
    case FaultChange::kSync: {
      Node& node = fs::path(path) == root_ ? nodes_[0] : nodes_[by_inode_.at(head.inode)];
      node.synced = node.content;
      node.synced_entries = node.entries;
      node.unsynced.clear();
      break;
    }
    case FaultChange::kRename: {
      auto& from = folder_of(path);
      const std::size_t node = from.at(name_of(path));
      from.erase(name_of(path));
      folder_of(data)[name_of(data)] = node;
      break;
    }
    case FaultChange::kExchange:
      std::swap(folder_of(path).at(name_of(path)), folder_of(data).at(name_of(data)));
      break;
    case FaultChange::kRemove:
      folder_of(path).erase(name_of(path));
      break;
  }
}

std::string DiskLog::content_of(const Node& file, PowerLoss loss, std::mt19937& random) {
  if (loss == PowerLoss::kNothing || loss == PowerLoss::kNames) return file.content;
  std::string content = file.synced;
  if (loss != PowerLoss::kRandom) return content;
  for (const auto& [offset, data] : file.unsynced) {
    if (random() % 2 == 0) continue;
    if (offset < 0) {
      content.resize(std::stoul(data));
    } else {  // torn at a sector
      const std::size_t whole = data.size() / 512 * 512;
      const bool torn = whole > 0 && random() % 4 == 0;
      write_into(content, offset, torn ? data.substr(0, random() % whole / 512 * 512) : data);
    }
  }
  return content;
}

void DiskLog::write_folder(const Node& folder, const fs::path& target, PowerLoss loss,
                           std::mt19937& random) const {
  fs::create_directories(target);
  const bool current = loss == PowerLoss::kNothing || loss == PowerLoss::kData ||
                       (loss == PowerLoss::kRandom && random() % 2 == 0);
  for (const auto& [name, index] : current ? folder.entries : folder.synced_entries) {
    const Node& node = nodes_[index];
    if (node.kind == Node::Kind::kFolder) {
      write_folder(node, target / name, loss, random);
    } else if (node.kind == Node::Kind::kLink) {
      fs::create_symlink(node.content, target / name);
    } else {
      std::ofstream(target / name, std::ios::binary) << content_of(node, loss, random);
    }
  }
}

void DiskLog::write(const fs::path& target, PowerLoss loss, std::mt19937& random) const {
  fs::remove_all(target);
  write_folder(nodes_[0], target, loss, random);
}

}  // namespace olmo::test
