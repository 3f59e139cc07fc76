const blockBytes = 512;
const text = new TextEncoder();

export interface TarMember {
  readonly path: string;
  readonly content: Blob;
  readonly executable: boolean;
}

/** Creates a tar archive (POSIX.1-2001). The files' content is read only when the archive is. */
export function tarOf(members: readonly TarMember[]): Blob {
  const parts = members.flatMap(({ path, content, executable }) => [
    ...(text.encode(path).length > 100 ? paxHeader(path) : []),
    header({ path, sizeBytes: content.size, mode: executable ? 0o755 : 0o644, type: "0" }),
    content,
    padding(content.size),
  ]);
  return new Blob([...parts, new Uint8Array(2 * blockBytes)]);
}

// Returns an extra entry that holds a name too long for the file's own header.
function paxHeader(path: string): Uint8Array<ArrayBuffer>[] {
  const rest = text.encode(` path=${path}\n`).length;
  const length = [1, 2, 3, 4, 5].map((digits) => rest + digits).find((sum) => rest + `${sum}`.length === sum) ?? 0;
  const record = text.encode(`${length} path=${path}\n`);
  const head = { path: "PaxHeader", sizeBytes: record.length, mode: 0o644, type: "x" };
  return [header(head), record, padding(record.length)];
}

function padding(sizeBytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array((blockBytes - (sizeBytes % blockBytes)) % blockBytes);
}

interface Head {
  readonly path: string;
  readonly sizeBytes: number;
  readonly mode: number;
  readonly type: string;
}

function header({ path, sizeBytes, mode, type }: Head): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(blockBytes);
  const put = (at: number, value: string, most: number) => block.set(text.encode(value).subarray(0, most), at);
  const octal = (at: number, value: number, digits: number) => put(at, value.toString(8).padStart(digits, "0"), digits);
  put(0, path, 100);
  octal(100, mode, 7);
  octal(108, 0, 7);
  octal(116, 0, 7);
  octal(124, sizeBytes, 11);
  octal(136, 0, 11);
  put(148, " ".repeat(8), 8);
  put(156, type, 1);
  put(257, "ustar\u000000", 8);
  octal(
    148,
    block.reduce((sum, byte) => sum + byte, 0),
    6,
  );
  block[154] = 0;
  return block;
}
