import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { runOk, start, systemPath } from "../../src/kit/exec.ts";
import { median, rateRow, type BenchRow } from "./row.ts";

const rounds = 3;
const seconds = 4;
const connections = 64;
const goal = 0.75;
const subject = fileURLToPath(new URL("api-subject.ts", import.meta.url));

/** What the machine lacks for `measureApi`, as a sentence; undefined when nothing. */
export function apiBenchLacks(): string | undefined {
  const found = systemPath.split(":").some((folder) => existsSync(`${folder}/wrk`));
  return found ? undefined : "The API is not measured: wrk is not installed.";
}

/** Loads authenticated GETs of the real API and the same queries behind bare Fastify in turn. Throws when `apiBenchLacks` something. */
export async function measureApi(): Promise<BenchRow[]> {
  return [
    await compare("one", "API, GET of a project with a token", goal),
    await compare("list", "API, list of 1,000 projects with a token", null),
  ];
}

async function compare(asked: "one" | "list", name: string, wanted: number | null): Promise<BenchRow> {
  const ours = await open("ours", asked);
  const bare = await open("bare", asked);
  try {
    const rates = { ours: [] as number[], bare: [] as number[] };
    // Once each unmeasured: the first requests run before the compiler has looked at them.
    for (const each of [bare, ours]) await load(each, 2);
    for (let round = 0; round < rounds; round += 1) {
      rates.bare.push(await load(bare, seconds));
      rates.ours.push(await load(ours, seconds));
    }
    const both = { ours: median(rates.ours), theirs: median(rates.bare), goal: wanted };
    return rateRow(name, "bare Fastify with the same query", both);
  } finally {
    for (const each of [ours, bare]) each.stop();
  }
}

interface Subject {
  readonly url: string;
  readonly token: string;
  readonly stop: () => void;
}

async function open(which: "ours" | "bare", asked: "one" | "list"): Promise<Subject> {
  const env = { PATH: process.env["PATH"] ?? systemPath };
  const child = start({ file: process.execPath, args: [subject, which, asked] }, { env });
  child.stderr.pipe(process.stderr);
  const [line] = (await once(createInterface(child.stdout), "line", { signal: AbortSignal.timeout(60_000) })) as [
    string,
  ];
  return { ...(JSON.parse(line) as { url: string; token: string }), stop: () => child.stdin.end() };
}

async function load({ url, token }: Subject, forSeconds: number): Promise<number> {
  const args = ["-t1", `-c${connections}`, `-d${forSeconds}s`, "-H", `authorization: Bearer ${token}`, url];
  const { stdout } = await runOk({ file: "wrk", args }, { timeoutMs: (forSeconds + 20) * 1000 });
  if (/Non-2xx or 3xx responses/.test(stdout)) throw new Error(`${url} did not answer with 200`);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
}
