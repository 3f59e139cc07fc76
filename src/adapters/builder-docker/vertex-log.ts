import { stripVTControlCharacters } from "node:util";
import type { BuildLog } from "../../building/build-log.ts";
import type { Step } from "../../detection/plan.ts";
import type { LineSplitter } from "../../kit/log-lines.ts";
import type { Progress, Vertex } from "./read-progress.ts";
import { stepIn } from "./generate-dockerfile.ts";

export interface FailedVertex {
  /** Without its stage and position: `RUN npm ci`. */
  readonly instruction: string;
  readonly error: string;
  /** The plan's step, if the Dockerfile was generated from a plan. */
  readonly step: Step | undefined;
  /** The end of its output. */
  readonly text: string;
}

const keptBytes = 256 * 1024;

/** Writes BuildKit's progress to the log: each step once, with its output. `steps` are the plan's; null: the Dockerfile's lines are. */
export function createVertexLog(log: BuildLog, steps: readonly Step[] | null) {
  const known = new Map<string, Known>();
  const printed = new Set<string>();
  const runningNow = () => [...known.values()].filter(({ vertex }) => vertex.started && !vertex.completed);
  const take = (vertex: Vertex) => {
    const before = known.get(vertex.digest);
    const now = before ?? { vertex, splitter: log.output(), newest: Buffer.alloc(0), step: undefined };
    now.vertex = { ...vertex, error: vertex.error || now.vertex.error };
    now.step = steps?.[stepIn(vertex.name) ?? -1];
    known.set(vertex.digest, now);
    if (!vertex.started || printed.has(vertex.digest)) return;
    const title = now.step?.title ?? (steps === null ? titleOf(vertex.name) : null);
    if (title === null) return;
    printed.add(vertex.digest);
    log.step(title);
    if (vertex.cached) log.detail("nothing changed: taken from an earlier build");
  };
  return {
    take({ vertexes, output }: Progress) {
      for (const vertex of vertexes) take(vertex);
      for (const { vertex, bytes } of output) {
        const from = known.get(vertex);
        if (from === undefined) continue;
        from.newest = Buffer.concat([from.newest, bytes]).subarray(-keptBytes);
        if (!from.step?.quiet) from.splitter.push(bytes);
      }
      for (const { digest, completed } of vertexes) if (completed) known.get(digest)?.splitter.end();
    },
    failed() {
      const found = [...known.values()].find(({ vertex }) => vertex.error !== "" && !isConsequence(vertex.error));
      if (found === undefined) return undefined;
      const text = stripVTControlCharacters(found.newest.toString("utf8"));
      if (found.step?.quiet) for (const line of text.trim().split("\n").slice(-30)) log.detail(line);
      return { instruction: instructionOf(found), error: found.vertex.error, step: found.step, text };
    },
    running: () => {
      const [found] = runningNow();
      return found && instructionOf(found);
    },
    /** Whether the engine itself is at work: it pulls, copies or downloads instead of running a command. */
    isServed: () => runningNow().some(({ vertex }) => !/^(?:\[[^\]]*\]\s*)?(?:ONBUILD\s+)?RUN\s/i.test(vertex.name)),
  };
}

interface Known {
  vertex: Vertex;
  readonly splitter: LineSplitter;
  newest: Buffer;
  step: Step | undefined;
}

const isConsequence = (error: string): boolean => /context canceled/.test(error);

function instructionOf({ step, vertex }: Known): string {
  return step === undefined ? vertex.name.replace(/^\[[^\]]*\]\s*/, "").slice(0, 200) : step.args.join(" ");
}

/** Returns the title of a step; null for BuildKit's internal ones. */
function titleOf(name: string): string | null {
  return /^\[(?!internal\])[^\]]+\] /.test(name) ? name.slice(0, 200) : null;
}
