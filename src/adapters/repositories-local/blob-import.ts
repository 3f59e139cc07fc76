import { once } from "node:events";
import { createInterface } from "node:readline";
import { signalTo, start, type Command, type ExecOptions } from "../../kit/exec.ts";

/** Stores files as git's blobs in one pass, without a copy on the disk. */
export interface BlobImport {
  /** Adds a blob and returns its place in `finish`'s answer. */
  add(sizeBytes: number, content: AsyncIterable<Uint8Array>): Promise<number>;
  /** The ids of all blobs, once they are stored. */
  finish(): Promise<readonly string[]>;
  /** Ends git and forgets what was added. */
  abort(): void;
}

/** Starts `git fast-import`, which writes the blobs where `place` says. */
export function startBlobImport(command: Command, place: ExecOptions): BlobImport {
  const child = start(command, place);
  const ids: string[] = [];
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => void (errors = (errors + chunk.toString()).slice(-2000)));
  createInterface({ input: child.stdout }).on("line", (line) => void ids.push(line));
  const closed = once(child, "close") as Promise<[number | null]>;
  closed.catch(() => {});
  let broken: Error | undefined;
  child.stdin.on("error", (error) => void (broken ??= error));
  let count = 0;

  const write = async (chunk: string | Uint8Array) => {
    if (broken !== undefined) throw failed(errors || broken.message);
    if (!child.stdin.write(chunk)) await Promise.race([once(child.stdin, "drain").catch(() => {}), closed]);
  };
  return {
    async add(sizeBytes, content) {
      count += 1;
      await write(`blob\nmark :${count}\ndata ${sizeBytes}\n`);
      for await (const chunk of content) await write(chunk);
      await write(`\nget-mark :${count}\n`);
      return count - 1;
    },
    async finish() {
      child.stdin.end("done\n");
      const [code] = await closed;
      if (code !== 0 || ids.length !== count) throw failed(errors);
      return ids;
    },
    // The whole group: a sandbox killed while it is being set up leaves its inner process behind, and our pipes open with it.
    abort: () => signalTo(child, "SIGKILL", place),
  };
}

function failed(why: string): Error {
  return new Error(`git fast-import failed: ${why.trim()}`);
}
