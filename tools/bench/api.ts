import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { runOk, start, systemPath } from "../../src/kit/exec.ts";

const rounds = 3;
const seconds = 4;
const connections = 64;
const subject = fileURLToPath(new URL("api-subject.ts", import.meta.url));

/** One line of the bench: requests a second of both (medians of interleaved rounds) and their ratio, higher is better. */
export interface ApiRow {
  readonly name: string;
  readonly against: string;
  readonly oursPerS: number;
  readonly theirsPerS: number;
  readonly ratio: number;
}

/** What the machine lacks for `measureApi`, as a sentence; undefined when nothing. */
export function apiBenchLacks(): string | undefined {
  const found = systemPath.split(":").some((folder) => existsSync(`${folder}/wrk`));
  return found ? undefined : "The API is not measured: wrk is not installed.";
}

/** Loads one authenticated GET of the real API and the same query behind bare Fastify in turn. Throws when `apiBenchLacks` something. */
export async function measureApi(): Promise<ApiRow> {
  const ours = await open("ours");
  const bare = await open("bare");
  try {
    const rates = { ours: [] as number[], bare: [] as number[] };
    // Once each unmeasured: the first requests run before the compiler has looked at them.
    for (const each of [bare, ours]) await load(each, 2);
    for (let round = 0; round < rounds; round += 1) {
      rates.bare.push(await load(bare, seconds));
      rates.ours.push(await load(ours, seconds));
    }
    const [oursPerS, theirsPerS] = [median(rates.ours), median(rates.bare)];
    return {
      name: "GET /v1/projects/:slug, authenticated",
      against: "bare Fastify with the same query",
      oursPerS,
      theirsPerS,
      ratio: oursPerS / theirsPerS,
    };
  } finally {
    for (const each of [ours, bare]) each.stop();
  }
}

interface Subject {
  readonly url: string;
  readonly token: string;
  readonly stop: () => void;
}

async function open(which: "ours" | "bare"): Promise<Subject> {
  const env = { PATH: process.env["PATH"] ?? systemPath };
  const child = start({ file: process.execPath, args: [subject, which] }, { env });
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

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] as number;
}
