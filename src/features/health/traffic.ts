import { latencyBucketsMs } from "../../ports/edge.ts";
import { quantile } from "../metrics/metrics.ts";

/** Requests that the edge counted from `at` on, for at most 15 seconds. A sample ends when a deployment goes live. */
export interface TrafficSample {
  readonly at: string;
  readonly requests: number;
  readonly errors: number;
  /** Requests by latency: one count for each bound, and one for what is above the last. */
  readonly latencies: readonly number[];
}

/** What is wrong with the requests that the active deployment got in the last five minutes. */
export interface TrafficTrouble {
  readonly kind: "errors" | "slow";
  readonly active: number;
  /** The number of the deployment with which it began; null if it began long after a deployment, or before the samples. */
  readonly deployment: number | null;
  readonly since: string;
  /** The end of the last bad sample. */
  readonly last_at: string;
  readonly requests: number;
  readonly bad: number;
  /** The same in the hour before it began. */
  readonly before: Count;
  /** For `slow`. */
  readonly over_ms: number | null;
}

// A type, not an interface, because it is part of a JSON value.
type Count = { readonly requests: number; readonly bad: number };

export interface Live {
  readonly number: number;
  readonly activated_at: string;
}

export const sampleMs = 15_000;
const windowMs = 5 * 60_000;
const shortMs = 75_000;
const leastBad = 10;
// A total failure of a rare path is a small share of all requests, so a share that rises fivefold counts too.
const clearShare = 0.05;
const risenShare = 0.01;
const leastBefore = 50;
const slowMs = { least: 200, most: 2000 };
/** Samples later than this after a deployment went live do not begin with it. */
const beginsMs = 10 * 60_000;

/** Finds trouble in an hour of samples, oldest first. `live` are the deployments that went live, oldest first; the last one is active. */
export function troubleOf(samples: readonly TrafficSample[], live: readonly Live[], now: Date): TrafficTrouble | null {
  const active = live.at(-1);
  if (active === undefined) return null;
  const fromMs = Math.max(now.getTime() - windowMs, Date.parse(active.activated_at));
  const isIn = (ms: number) => (sample: TrafficSample) => Date.parse(sample.at) >= ms;
  const window = samples.filter(isIn(fromMs));
  const before = samples.filter((sample) => !isIn(fromMs)(sample));
  const recent = window.filter(isIn(now.getTime() - shortMs));
  for (const { kind, over_ms, badOf } of measures(before)) {
    const was = count(before, badOf);
    const share = [recent, window].map((part) => count(part, badOf)).find((part) => isTrouble(part, was));
    if (share === undefined) continue;
    const last = window.findLast((sample) => badOf(sample) > 0) as TrafficSample;
    const began = beginning(samples.slice(0, samples.indexOf(last) + 1), badOf, share.bad / share.requests);
    const since = samples[began] as TrafficSample;
    return {
      ...{ kind, over_ms, active: active.number, deployment: guilty(samples, began, live) },
      ...{ since: since.at, last_at: new Date(Date.parse(last.at) + sampleMs).toISOString() },
      ...count(samples.slice(began), badOf),
      before: count(samples.slice(0, began), badOf),
    };
  }
  return null;
}

interface Measure {
  readonly kind: TrafficTrouble["kind"];
  readonly over_ms: number | null;
  readonly badOf: (sample: TrafficSample) => number;
}

/** Slow is what takes four times as long as nearly all requests before, and at least 200 ms; always what takes two seconds. */
function measures(before: readonly TrafficSample[]): readonly Measure[] {
  const latencies = [...latencyBucketsMs, 0].map((_, index) => sum(before, (sample) => sample.latencies[index] ?? 0));
  const hadEnough = sum(before, ({ requests }) => requests) >= leastBefore;
  const usual = hadEnough ? (quantile(latencies, 0.95) ?? slowMs.most) : slowMs.most;
  const limit = Math.min(slowMs.most, Math.max(slowMs.least, 4 * usual));
  const bound = latencyBucketsMs.findIndex((ms) => ms >= limit);
  const slower = ({ latencies: all }: TrafficSample) => all.slice(bound + 1).reduce((total, each) => total + each, 0);
  return [
    { kind: "errors", over_ms: null, badOf: ({ errors }) => errors },
    { kind: "slow", over_ms: latencyBucketsMs[bound] as number, badOf: slower },
  ];
}

function isTrouble({ requests, bad }: Count, was: Count): boolean {
  if (bad < leastBad) return false;
  const share = bad / requests;
  if (was.requests < leastBefore) return share >= clearShare;
  return share >= Math.max(risenShare, Math.min(clearShare, (5 * was.bad) / was.requests));
}

/** Goes back from the last bad sample to the first one: until as many good requests in a row as rule the same share out. */
function beginning(samples: readonly TrafficSample[], badOf: Measure["badOf"], inWindow: number): number {
  const newest = samples.at(-1) as TrafficSample;
  const share = Math.max(inWindow, badOf(newest) / newest.requests);
  const enough = Math.max(5, 3 / share);
  let first = samples.length - 1;
  let good = 0;
  for (let index = samples.length - 1; index >= 0 && good < enough; index -= 1) {
    const sample = samples[index] as TrafficSample;
    if (badOf(sample) > sample.requests * (share / 10)) [first, good] = [index, 0];
    else good += sample.requests;
  }
  return first;
}

/** The deployment that went live last before the end of the first bad sample, if that was soon before. */
function guilty(samples: readonly TrafficSample[], began: number, live: readonly Live[]): number | null {
  const startMs = Date.parse((samples[began] as TrafficSample).at);
  const endMs = Math.min(startMs + sampleMs, Date.parse(samples[began + 1]?.at ?? "9999-01-01"));
  const last = live.findLast(({ activated_at }) => Date.parse(activated_at) < endMs);
  return last !== undefined && startMs - Date.parse(last.activated_at) < beginsMs ? last.number : null;
}

function count(samples: readonly TrafficSample[], badOf: Measure["badOf"]): Count {
  return { requests: sum(samples, ({ requests }) => requests), bad: sum(samples, badOf) };
}

function sum(samples: readonly TrafficSample[], pick: (sample: TrafficSample) => number): number {
  return samples.reduce((total, sample) => total + pick(sample), 0);
}
