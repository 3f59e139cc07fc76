/**
 * Makes this process, when it is root's, one of the user `uid`, with that group and no other, and thereby without capabilities.
 * What it needs of root must be open before. False when the machine does not allow it, as in a container without CAP_SETUID.
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
