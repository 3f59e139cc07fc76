import type { Report } from "./event-reporter.ts";
import type { JobLimits } from "./plan-jobs.ts";

export interface Progress {
  /** Aborts when a test or the whole process has exceeded its limit. */
  readonly signal: AbortSignal;
  /** Returns a sentence that names the exceeded limit, else "". */
  readonly exceeded: () => string;
  readonly stop: () => void;
}

/** Watches the reports of a running process. Without any for the time that one test may take, the running test hangs. */
export function watchProgress(
  reports: () => readonly Report[],
  { testSeconds, fileSeconds }: JobLimits,
  slowness: () => number,
): Progress {
  const aborter = new AbortController();
  const startedAt = performance.now();
  let sentence = "";
  let count = 0;
  let reportedAt = startedAt;
  const look = () => {
    const now = performance.now();
    const all = reports();
    if (all.length !== count) [count, reportedAt] = [all.length, now];
    const factor = slowness();
    if (now - reportedAt > testSeconds * 1000 * factor)
      sentence = `Killed: ${runningTest(all)} took longer than ${(testSeconds * factor).toFixed(0)} s.`;
    else if (now - startedAt > fileSeconds * 1000 * factor)
      sentence = `Killed: the file took longer than ${(fileSeconds * factor).toFixed(0)} s in total; measured-files.json has its usual time.`;
    if (sentence !== "") aborter.abort();
  };
  const timer = setInterval(look, 1000);
  return { signal: aborter.signal, exceeded: () => sentence, stop: () => clearInterval(timer) };
}

/** Returns the test that began last and has not ended, in quotes, else where in the file the process is. */
function runningTest(reports: readonly Report[]): string {
  const ended = reports.flatMap((report) => (report.type === "passed" || report.type === "failed" ? report.name : []));
  const running = reports.findLast((report) => report.type === "began" && !ended.includes(report.name));
  if (running !== undefined) return `the test "${(running as { name: string }).name}"`;
  const last = ended.at(-1);
  return `a hook, or the end of the file, ${last === undefined ? "before the first test ended" : `after "${last}"`},`;
}
