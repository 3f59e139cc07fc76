import { flagOf, messagesOf, readFields, textOf } from "./protobuf.ts";

export interface Vertex {
  readonly digest: string;
  /** Such as `[build 2/5] RUN npm ci`. */
  readonly name: string;
  readonly cached: boolean;
  readonly started: boolean;
  readonly completed: boolean;
  readonly error: string;
}

export type Progress = ReturnType<typeof readProgress>;

/** Decodes the base64 payload of a `moby.buildkit.trace` line: BuildKit's `StatusResponse`. */
export function readProgress(aux: string) {
  const fields = readFields(Buffer.from(aux, "base64"));
  return {
    vertexes: messagesOf(fields, 1).map((vertex) => ({
      ...{ digest: textOf(vertex, 1), name: textOf(vertex, 3), error: textOf(vertex, 7) },
      ...{ cached: flagOf(vertex, 4), started: vertex.has(5), completed: vertex.has(6) },
    })),
    output: messagesOf(fields, 3).map((line) => {
      const bytes = line.get(4)?.at(-1);
      return { vertex: textOf(line, 1), bytes: Buffer.isBuffer(bytes) ? bytes : Buffer.alloc(0) };
    }),
  };
}
