import { closeSync, readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";

/**
 * Closes every descriptor above 2 that a child process would inherit. Node opens its own with close-on-exec, so the others come from the
 * program that started this process; through a folder among them (`200</`) a sandbox could reach the host's files.
 */
export function closeInheritedDescriptors(): void {
  const certificates = extraCertificates();
  for (const fd of readdirSync("/proc/self/fd").map(Number))
    if (fd > 2 && survivesExec(fd) && targetOf(fd) !== certificates) closeSync(fd);
}

/**
 * The one file that Node opens without close-on-exec: once something imports `node:tls`, a thread reads it, and fails or ends what another
 * part has opened meanwhile if its descriptor is closed.
 */
function extraCertificates(): string | undefined {
  const file = process.env["NODE_EXTRA_CA_CERTS"];
  try {
    return file === undefined || file === "" ? undefined : realpathSync(file);
  } catch {
    return undefined;
  }
}

function targetOf(fd: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return undefined;
  }
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
