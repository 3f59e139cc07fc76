/**
 * Switches this process, if root, to the user `uid` with the group of the same id and no others, which also drops all capabilities.
 * Whatever needs root must be open before. Returns false when the machine does not allow it, as in a container without CAP_SETUID.
 */
export function dropPrivileges(uid: number | null): boolean {
  if (uid === null || process.getuid?.() !== 0) return true;
  try {
    process.setgroups?.([]);
    process.setgid?.(uid);
    process.setuid?.(uid);
  } catch {
    return false;
  }
  return true;
}
