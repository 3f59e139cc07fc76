import { closeSync, readdirSync, readFileSync } from "node:fs";

/**
 * Closes every descriptor above 2 that a child process would inherit. Node opens its own with close-on-exec, so the others come from the
 * program that started this process; through a folder among them (`200</`) a sandbox could reach the host's files. A program calls this
 * before it loads anything else: once something imports `node:tls`, a thread of Node reads certificates, which it opens without
 * close-on-exec, and fails or ends what another part has opened meanwhile if its descriptor is closed.
 */
export function closeInheritedDescriptors(): void {
  for (const fd of readdirSync("/proc/self/fd").map(Number)) if (fd > 2 && survivesExec(fd)) closeSync(fd);
}

/** proc(5), "fdinfo": the flags of open(2), in octal. */
function survivesExec(fd: number): boolean {
  try {
    const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    // This was readdir's own descriptor, closed by now.
    return false;
  }
}

const closeOnExec = 0o2000000;
