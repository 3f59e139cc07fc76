import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { start, systemPath } from "../../src/kit/exec.ts";
import { load } from "./nginx.ts";
import { secondsOfTree } from "./processor-time.ts";
import { costRow, inTurns, medians, rateRow, type BenchRow } from "./row.ts";

const rounds = 3;
const seconds = 4;
const goal = 0.75;
const subject = fileURLToPath(new URL("api-subject.ts", import.meta.url));

/** Loads the real API with authenticated GETs, and bare Fastify with the same queries, in turn. */
export async function measureApi(): Promise<BenchRow[]> {
  return [
    ...(await compare("one", "API, GET of a project with a token", goal)),
    ...(await compare("list", "API, list of 1,000 projects with a token", null)),
  ];
}

async function compare(asked: "one" | "list", name: string, wanted: number | null): Promise<BenchRow[]> {
  using ours = await open("ours", asked);
  using bare = await open("bare", asked);
  const measure = (subject: Subject) => async () => {
    const before = secondsOfTree(subject.pid);
    const { perSecond, requests } = await load(subject.url, seconds, "-H", `authorization: Bearer ${subject.token}`);
    return { perSecond, secondsEach: (secondsOfTree(subject.pid) - before) / requests };
  };
  // The first round is not counted: the first requests run before the code is compiled.
  const measured = await inTurns(rounds, { ours: measure(ours), theirs: measure(bare) }, 1);
  const both = { ...medians(measured, (each) => each.perSecond), goal: wanted };
  const costs = medians(measured, (each) => each.secondsEach);
  const against = "bare Fastify with the same query";
  const cost = `${name}, processor time of the server's process a request`;
  return [rateRow(name, against, both), costRow(cost, against, costs)];
}

interface Subject extends Disposable {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
}

async function open(which: "ours" | "bare", asked: "one" | "list"): Promise<Subject> {
  const env = { PATH: process.env["PATH"] ?? systemPath };
  const child = start({ file: process.execPath, args: [subject, which, asked] }, { env });
  child.stderr.pipe(process.stderr);
  const lines = createInterface(child.stdout);
  const [line] = (await once(lines, "line", { signal: AbortSignal.timeout(60_000) })) as [string];
  const reached = JSON.parse(line) as { url: string; token: string };
  return { ...reached, pid: child.pid ?? 0, [Symbol.dispose]: () => void child.stdin.end() };
}
