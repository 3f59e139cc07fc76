import { PassThrough, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { start, type Command, type ExecOptions } from "../../kit/exec.ts";

/** Streams what a command of git writes. Its failure destroys the stream. */
export function streamOf(verb: string, command: Command, place: ExecOptions): Readable {
  const child = start(command, place);
  const out = new PassThrough();
  const errors: Buffer[] = [];
  child.stdin.end();
  child.stderr.on("data", (chunk: Buffer) => errors.length < 16 && errors.push(chunk));
  const ended = new Promise<number | null>((done, fail) => child.once("close", done).once("error", fail));
  const copied = pipeline(child.stdout, out, { end: false });
  out.once("close", () => child.kill("SIGTERM"));
  Promise.all([ended, copied]).then(
    ([code]) =>
      code === 0 ? out.end() : out.destroy(new Error(`git ${verb} failed: ${Buffer.concat(errors).toString().trim()}`)),
    (error: Error) => out.destroy(error),
  );
  return out;
}
