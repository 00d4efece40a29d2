#include "core/files/output_file.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/process/terminal.h"

namespace olmo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBuffer = 1 << 20;
constexpr std::size_t kLongestName = 255;
constexpr mode_t kPermissionBits = 0777;

[[noreturn]] void fail_writing(const fs::path& path, const char* what) {
  throw Error(ErrorKind::kFailure, path.string() + ": " + what + ": " + std::strerror(errno));
}

/// Where the system's word is about the place, another place would do, and the user chose it.
ErrorKind kind_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EEXIST:
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENAMETOOLONG:
      return ErrorKind::kUsage;
    default:
      return ErrorKind::kFailure;
  }
}

/// `NAME.tmp-` and 16 digits beside `target`, another one with every call.
fs::path name_beside(const fs::path& target) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    throw Error(ErrorKind::kFailure,
                std::string("no random bytes for a temporary name: ") + std::strerror(errno));
  char digits[16] = {};
  for (char& digit : digits) {
    digit = "0123456789abcdef"[number & 0xFU];
    number >>= 4U;
  }
  const std::string tail = ".tmp-" + std::string(digits, sizeof digits);
  return target.parent_path() /
         (target.filename().string().substr(0, kLongestName - tail.size()) + tail);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// The descriptor that a name of /dev or /proc stands for.
std::optional<int> descriptor_named(const fs::path& path) {
  const std::string text = path.lexically_normal().string();
  if (text == "/dev/stdout") return STDOUT_FILENO;
  if (text == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    int number = -1;
    const char* end = text.data() + text.size();
    if (text.starts_with(folder) &&
        std::from_chars(text.data() + folder.size(), end, number).ptr == end)
      return number;
  }
  return std::nullopt;
}

/// Where the links of `path` end; the file there need not exist.
fs::path without_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i) {
    const fs::path to = fs::read_symlink(path, error);
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  return path;
}

/// Opens a device or a pipe. A named pipe that nobody reads is waited for, and that is said.
int open_special(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd >= 0) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
  }
  struct stat status {};
  if (errno != ENXIO || ::stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) return -1;
  log_line(path.string() + ": is a named pipe; waiting for a program that reads it");
  return ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
}

/// fsync of an open file, which a signal does not cut short.
bool sync(int fd) {
  int result = -1;
  do {
    result = ::fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace

OutputFile::OutputFile(const fs::path& path) : path_(path) {
  buffer_.reserve(kBuffer);
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && (S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode))) {
    throw Error(ErrorKind::kUsage, path.string() + ": is a " +
                                       (S_ISDIR(status.st_mode) ? "folder" : "disk") +
                                       ", expected the name of a file to write");
  }
  if (const auto descriptor = descriptor_named(path)) {
    fd_ = ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0);
  } else if (exists && !S_ISREG(status.st_mode)) {
    fd_ = open_special(path);
  } else {
    open_beside(without_links(path),
                exists ? std::optional<unsigned>(status.st_mode & kPermissionBits) : std::nullopt);
  }
  if (fd_ < 0) fail_writing(path_, "cannot be opened for writing");
}

void OutputFile::open_beside(const fs::path& target, std::optional<unsigned> mode) {
  target_ = target;
  unfinished_.emplace(path_.string());
  fs::path name = name_beside(target);
  fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
               mode ? 0600 : 0666);
  if (fd_ < 0) {
    const int error = errno;
    const std::string why = error == ENOENT ? "there is no such folder" : std::strerror(error);
    throw Error(kind_of(error), path_.string() + ": cannot be created in " +
                                    folder_of(target).string() + ": " + why);
  }
  temporary_ = std::move(name);
  if (mode && ::fchmod(fd_, *mode) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    ::close(std::exchange(fd_, -1));
    errno = error;
    fail_writing(path_, "cannot be given the permissions of the file that it replaces");
  }
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  end_if_asked();
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;  // a file takes something, or says why not
    if (written <= 0) fail_writing(path_, "cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputFile::flush() {
  write(buffer_);
  buffer_.clear();
}

void OutputFile::append(std::string_view bytes) {
  OLMO_CHECK(fd_ >= 0);
  if (buffer_.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() >= kBuffer) return write(bytes);
  buffer_.append(bytes);
}

void OutputFile::close() {
  // A network file system may say only now that a write failed. After EINTR it is closed, too.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR)
    fail_writing(path_, "cannot be closed");
}

void OutputFile::finish() {
  if (fd_ < 0) return;
  flush();
  if (!target_.empty() && !sync(fd_)) fail_writing(path_, "cannot be synced to disk");
  close();
}

void OutputFile::rename_into_place() {
  if (temporary_.empty()) return;
  end_if_asked();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail_writing(path_, "cannot be renamed into place");
  temporary_.clear();
}

void OutputFile::publish() {
  finish();
  rename_into_place();
  if (!target_.empty()) fsync_path(folder_of(target_));
}

void OutputFile::publish_unsynced() {
  OLMO_CHECK(fd_ >= 0);
  flush();
  close();
  rename_into_place();
}

OutputFolder::OutputFolder(const fs::path& target, Existing existing)
    : unfinished_(target.string()),
      target_(fs::absolute(target).lexically_normal()),
      existing_(existing) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // a slash at the end
  if (existing_ == Existing::kRefused && fs::exists(fs::symlink_status(target_))) {
    throw Error(
        ErrorKind::kUsage,
        target_.string() + ": exists already, and nothing is overwritten: give a new folder");
  }
  above_.emplace(target_.parent_path());
  temporary_ = name_beside(target_);
  if (::mkdir(temporary_.c_str(), 0777) != 0) {
    const int error = errno;
    throw Error(kind_of(error), target_.string() + ": cannot be made: " + std::strerror(error));
  }
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;  // a destructor has nobody to tell
  if (!published_) fs::remove_all(temporary_, ignored);
}

void OutputFolder::publish() {
  unfinished_.take_names();
  const char* from = temporary_.c_str();
  std::error_code error;  // what stays shows in the renaming
  if (existing_ == Existing::kReplaced) fs::remove_all(target_, error);
  bool renamed = ::renameat2(AT_FDCWD, from, AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) == 0;
  if (!renamed && (errno == EINVAL || errno == ENOSYS))  // not on this file system
    renamed = ::rename(from, target_.c_str()) == 0;
  if (!renamed) {
    throw Error(ErrorKind::kFailure, temporary_.string() + ": cannot be renamed to " +
                                         target_.string() + ": " + std::strerror(errno));
  }
  published_ = true;
  fsync_path(target_.parent_path());
}

void require_absent(const fs::path& path) {
  if (fs::exists(fs::symlink_status(path)))
    throw Error(ErrorKind::kUsage,
                path.string() + ": exists already; choose another output, or give --overwrite");
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  OutputFile file(path);
  file.append(bytes);
  file.publish();
}

void fsync_path(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_writing(path, "cannot be opened to sync it");
  const bool synced = sync(fd);
  const int error = errno;  // of fsync
  ::close(fd);
  errno = error;
  if (!synced) fail_writing(path, "cannot be synced to disk");
}

namespace {

/// As make_folders. The levels that were missing, from the outermost on.
std::vector<fs::path> make_levels(const fs::path& path) {
  fs::path level;
  std::vector<fs::path> made;
  for (const auto& part : path) {
    if (part.empty()) continue;  // `a/b/` means `a/b`
    const fs::path above = level.empty() ? fs::path(".") : level;
    level /= part;
    std::error_code ignored;
    if (fs::is_directory(level, ignored)) continue;
    if (::mkdir(level.c_str(), 0777) == 0) {
      fsync_path(above);
      made.push_back(level);
      continue;
    }
    const int why = errno;
    if (fs::is_directory(level, ignored)) continue;  // another process was faster
    throw Error(kind_of(why),
                level.string() + ": the folder cannot be made: " +
                    (why == EEXIST ? "a file of that name is in the way" : std::strerror(why)));
  }
  return made;
}

}  // namespace

bool make_folders(const fs::path& path) {
  const auto made = make_levels(path);
  return !made.empty() && made.back() == (path / "").parent_path();  // without a slash at its end
}

NewFolders::NewFolders(const fs::path& path) : made_(make_levels(path)) {}

NewFolders::~NewFolders() {
  // What another process has put there stays, and what cannot be removed has nobody to be told.
  for (; !made_.empty(); made_.pop_back()) ::rmdir(made_.back().c_str());
}

}  // namespace olmo
