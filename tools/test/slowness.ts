import { cpus, loadavg } from "node:os";

/** Returns how much slower than on an idle machine a test may run, by the number of ready processes for each processor. */
export function slowness(): number {
  return Math.max(1, (loadavg()[0] ?? 0) / (2 * cpus().length));
}
