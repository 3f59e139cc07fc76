import type { Answer } from "../contract/client.ts";
import { columns } from "./render/table.ts";

type Domain = Pick<Answer<"domains.attach">, "serving" | "ssl_status" | "ssl_detail">;

/** Records when each step of making a hostname available was first seen. */
export interface StepClock {
  /** Records the hostname's current step. */
  note(domain: Domain): void;
  /** Returns a line for each step, with the seconds since the start. */
  text(): string;
}

/** `nowMs` is a monotonic clock. */
export function createStepClock(nowMs: () => number = () => performance.now()): StepClock {
  const startedAtMs = nowMs();
  const seen = new Map<string, number>();
  return {
    note(domain) {
      for (const step of stepsOf(domain)) if (!seen.has(step)) seen.set(step, nowMs() - startedAtMs);
    },
    text: () => columns(Array.from(seen, ([step, ms]) => [`  ${(ms / 1000).toFixed(1)} s`, step])),
  };
}

function stepsOf({ serving, ssl_status, ssl_detail }: Domain): readonly string[] {
  if (!serving) return [];
  const served = "The DNS records point here, and the name is served over HTTP.";
  if (ssl_status === "issuing") return [served, ssl_detail];
  return ssl_status === "active" ? [served, "The name is served over HTTPS."] : [served];
}
