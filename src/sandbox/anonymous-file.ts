import { closeSync, constants, openSync, unlinkSync, writeSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { join } from "node:path";

/**
 * Returns a descriptor, at offset 0, of an unnamed file that holds these bytes. No other process can open the file, and the kernel frees it
 * with its last descriptor, which the caller closes. The file is in memory if the machine has /dev/shm.
 */
export function anonymousFile(bytes: Uint8Array | string, fallbackDir: string): number {
  const content = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
  const fd = openNameless("/dev/shm") ?? openNameless(fallbackDir) ?? openUnlinked(fallbackDir);
  try {
    // Write by position, so that the descriptor's own offset stays at 0 for the reader.
    for (let done = 0; done < content.length;) done += writeSync(fd, content, done, content.length - done, done);
    return fd;
  } catch (cause) {
    closeSync(fd);
    throw cause;
  }
}

/** open(2): O_TMPFILE includes O_DIRECTORY, whose value differs between processors. */
const nameless = 0o20000000 | constants.O_DIRECTORY;

function openNameless(folder: string): number | undefined {
  try {
    return openSync(folder, constants.O_RDWR | nameless, 0o600);
  } catch {
    return undefined;
  }
}

function openUnlinked(folder: string): number {
  const path = join(folder, `.${randomUUID()}`);
  const fd = openSync(path, "wx+", 0o600);
  unlinkSync(path);
  return fd;
}
