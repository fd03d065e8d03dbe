#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/problem.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

std::string error_text(int code) { return std::strerror(code); }

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Opens an existing regular file for reading and gives its size.
int open_regular(const fs::path& path, uint64_t& size) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw InputError(path.string(), "no such file", "check the path");
    throw InputError(path.string(), "cannot be opened: " + error_text(errno));
  }
  struct stat st;
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    throw InputError(path.string(), "is not a regular file");
  }
  size = static_cast<uint64_t>(st.st_size);
  return fd;
}

void sync_folder(const fs::path& folder) {
  const Descriptor fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) ::fsync(fd.get());
}

}  // namespace

std::string read_file(const fs::path& path, uint64_t max_bytes) {
  uint64_t size = 0;
  const Descriptor fd(open_regular(path, size));
  if (size > max_bytes) {
    throw InputError(path.string(), "has " + std::to_string(size) + " bytes, more than the " +
                                        std::to_string(max_bytes) + " allowed here");
  }
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(fd.get(), bytes.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw EnvironmentError(path.string(), "reading failed: " + error_text(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

FileWriter::FileWriter(const fs::path& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0)
    throw EnvironmentError(path.string(), "cannot be written: " + error_text(errno), "check the folder's permissions");
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void FileWriter::write(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw EnvironmentError(path_.string(), "writing failed: " + error_text(errno),
                             errno == ENOSPC ? "free some space" : "");
    p += n;
    bytes -= static_cast<size_t>(n);
  }
}

void FileWriter::close() {
  const int fd = fd_;
  fd_ = -1;
  const bool synced = ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS;  // pipes and /dev/stdout cannot be synced
  const int code = errno;
  if (::close(fd) != 0 || !synced)
    throw EnvironmentError(path_.string(), "could not be stored: " + error_text(synced ? errno : code));
}

void write_file_atomic(const fs::path& path, std::string_view bytes) {
  fs::path aside = path;
  aside += ".partial";
  try {
    FileWriter out(aside);
    out.write(bytes);
    out.close();
  } catch (...) {
    ::unlink(aside.c_str());
    throw;
  }
  if (::rename(aside.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(aside.c_str());
    throw EnvironmentError(path.string(), "could not be put in place: " + error_text(code));
  }
  sync_folder(path.parent_path());
}

void replace_folder_atomic(const fs::path& staged, const fs::path& target, const fs::path& previous) {
  const auto fail = [&](const fs::path& p) {
    throw EnvironmentError(p.string(), "could not be put in place: " + error_text(errno));
  };
  const auto remove = [](const fs::path& p) {
    std::error_code code;
    fs::remove_all(p, code);
    if (code) throw EnvironmentError(p.string(), "could not be removed: " + code.message());
  };
  sync_folder(staged);
  struct stat st;
  if (::lstat(target.c_str(), &st) != 0) {
    if (::rename(staged.c_str(), target.c_str()) != 0) fail(target);
  } else if (::renameat2(AT_FDCWD, staged.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    // The two names were exchanged in one step, so `target` is whole at every instant; the former content now moves to
    // `previous`.
    remove(previous);
    if (::rename(staged.c_str(), previous.c_str()) != 0) fail(previous);
  } else if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
    // A file system without the exchange: `previous` stands while `target` is absent.
    remove(previous);
    if (::rename(target.c_str(), previous.c_str()) != 0) fail(target);
    if (::rename(staged.c_str(), target.c_str()) != 0) fail(target);
  } else {
    fail(target);
  }
  sync_folder(target.parent_path());
}

void make_writable_folder(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code)
    throw EnvironmentError(path.string(), "cannot be created: " + code.message(), "choose a folder you may write to");
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    throw EnvironmentError(path.string(), "cannot be written to: " + error_text(errno),
                           "choose a folder you may write to");
  }
}

MappedFile::MappedFile(const fs::path& path) {
  uint64_t size = 0;
  const Descriptor fd(open_regular(path, size));
  size_ = size;
  if (size == 0) return;
  void* map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (map == MAP_FAILED) throw EnvironmentError(path.string(), "cannot be mapped: " + error_text(errno));
  data_ = static_cast<const std::byte*>(map);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace transept
