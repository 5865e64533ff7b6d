// Reads the key files that the configuration names.

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tools/switchd/config.h"

namespace slime::switchd {
namespace {

namespace fs = std::filesystem;

// The error names the key of the configuration. No path: no key.
Result<SecretKey> read_key(const char* name, const std::string& path) {
  if (path.empty()) return SecretKey();
  if (auto loaded = load_hmac(); !loaded) return fail(std::move(loaded.error()));
  auto key = SecretKey::read_file(path);
  if (!key) key.error().what = std::string(name) + ": " + key.error().what;
  return key;
}

Error wrong(const std::string& what) {
  return make_error(Status::kConfig, 0, "control.tenant_keys: %s", what.c_str());
}

// A user who can write to this directory can add tenants, and replace their keys.
Result<void> check_directory(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return fail(system_error(errno, "control.tenant_keys: %s", path.c_str()));
  }
  if (!S_ISDIR(status.st_mode)) return fail(wrong(path + " is no directory"));
  if (status.st_uid != 0 && status.st_uid != geteuid()) {
    return fail(wrong(path + " belongs to neither root nor this user: chown root " + path));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return fail(wrong(path + " can be written by others than its owner: chmod 755 " + path));
}

// One file of the directory: its name is the tenant, its content the key.
Result<void> add_tenant(const fs::path& file, net::KeyRing* keys) {
  const std::string tenant = file.filename();
  if (tenant.starts_with('.')) return {};  // what editors and version control leave
  if (!control::is_tenant_name(tenant)) {
    return fail(
        wrong(file.string() + " is not named as a tenant (letters, digits, '.', '_', '-')"));
  }
  auto key = read_key("control.tenant_keys", file);
  if (!key) return fail(std::move(key.error()));
  if (*key == keys->common) {
    return fail(wrong(file.string() + " holds the operators' key; make the tenant one of its own"));
  }
  keys->tenants->emplace(tenant, *key);
  return {};
}

}  // namespace

Result<net::KeyRing> load_keys(const Config& config) {
  net::KeyRing keys;
  auto common = read_key("control.key_file", config.key_file);
  if (!common) return fail(std::move(common.error()));
  keys.common = *common;
  if (config.tenant_keys.empty()) return keys;
  if (auto sound = check_directory(config.tenant_keys); !sound) return fail(sound.error());
  keys.tenants.emplace();
  std::error_code code;
  fs::directory_iterator files(config.tenant_keys, code);
  for (; !code && files != fs::directory_iterator(); files.increment(code)) {
    if (auto added = add_tenant(files->path(), &keys); !added) return fail(added.error());
  }
  if (code)
    return fail(system_error(code.value(), "control.tenant_keys: %s", config.tenant_keys.c_str()));
  return keys;
}

Result<SecretKey> load_parent_key(const Config& config) {
  return read_key("parent.key_file", config.parent_key_file);
}

}  // namespace slime::switchd
