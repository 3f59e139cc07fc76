import { open, type FileHandle } from "node:fs/promises";

const lineFeed = 0x0a;
const blockBytes = 64 * 1024;

/**
 * Appends bytes to a file, all or nothing: removes a half-written line that an earlier crash left, and undoes a failed write (a full disk).
 * `choose` receives the file's size and returns what to write. Resolves with the offset of the appended bytes.
 */
export async function appendFile(
  path: string,
  choose: (size: number, file: FileHandle) => Promise<Buffer> | Buffer,
): Promise<number> {
  const file = await open(path, "a+", 0o600);
  try {
    const size = await dropHalfLine(file);
    await writeAll(file, size, await choose(size, file));
    return size;
  } finally {
    await file.close();
  }
}

/** Reads the bytes from `from` to `to`, or fewer at the end of the file. */
export async function readRange(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.alloc(Math.max(0, to - from));
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/** Returns the offset at which the file's last complete line ends; a writer may be in the middle of the next line. */
export async function endOfLines(file: FileHandle): Promise<number> {
  let end = (await file.stat()).size;
  while (end > 0) {
    const start = Math.max(0, end - blockBytes);
    const at = (await readRange(file, start, end)).lastIndexOf(lineFeed);
    if (at >= 0) return start + at + 1;
    end = start;
  }
  return 0;
}

async function dropHalfLine(file: FileHandle): Promise<number> {
  const end = await endOfLines(file);
  if (end < (await file.stat()).size) await file.truncate(end);
  return end;
}

async function writeAll(file: FileHandle, size: number, bytes: Buffer): Promise<void> {
  try {
    let written = 0;
    while (written < bytes.length) written += (await file.write(bytes, written)).bytesWritten;
  } catch (error) {
    await file.truncate(size).catch(() => {});
    throw error;
  }
}
