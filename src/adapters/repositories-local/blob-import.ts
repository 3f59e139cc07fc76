import { once } from "node:events";
import { createInterface } from "node:readline";
import { signalTo, start, type Command, type ExecOptions } from "../../kit/exec.ts";

/** Stores files as git blobs in one pass, without temporary copies on disk. */
export interface BlobImport {
  /** Adds a blob; resolves with its index in the result of `finish`. */
  add(sizeBytes: number, content: AsyncIterable<Uint8Array>): Promise<number>;
  /** Resolves with the ids of all blobs once they are stored. */
  finish(): Promise<readonly string[]>;
  /** Kills git and discards what was added. */
  abort(): void;
}

/** Starts `git fast-import`, which writes the blobs to the object folder of `place`. */
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
    // Kill the whole process group: a sandbox killed during its setup leaves its inner process behind, which holds our pipes open.
    abort: () => signalTo(child, "SIGKILL", place),
  };
}

function failed(why: string): Error {
  return new Error(`git fast-import failed: ${why.trim()}`);
}
