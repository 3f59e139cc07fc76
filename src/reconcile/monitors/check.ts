import type { CheckStatus } from "../../contract/status.ts";
import type { CheckReport, Finding } from "../../features/status/status.ts";
import type { Log } from "../../kit/log.ts";

/** A monitored aspect. `look` throws if the check itself fails; a bad state is a finding, not an error. */
export interface Check {
  readonly name: string;
  /** `machine`: about this machine. `shared`: about what all machines share, so the result is the same on each. */
  readonly scope: "machine" | "shared";
  readonly patience: CheckReport["patience"];
  /** Minimum interval between checks, at most a minute; if absent, the check runs in every round. */
  readonly everyMs?: number;
  readonly timeoutMs?: number;
  /** The finding if the check times out; if absent, `unknown`. */
  readonly tooLong?: Finding;
  look(signal: AbortSignal): Promise<readonly Finding[]>;
}

const standardTimeoutMs = 10_000;

/** Runs a check once. If it throws or times out, the result is `unknown`, without findings about the check's subjects. */
export async function runCheck(check: Check, machine: string, log: Log): Promise<CheckReport> {
  const { name, patience, scope, timeoutMs = standardTimeoutMs } = check;
  const report = { name, patience, machine: scope === "machine" ? machine : "" };
  const ending = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LookTooLong()), timeoutMs);
  });
  try {
    return { ...report, findings: await Promise.race([check.look(ending.signal), tooLong]) };
  } catch (error) {
    if (error instanceof LookTooLong && check.tooLong !== undefined) return { ...report, findings: [check.tooLong] };
    log.warn({ err: error, check: name }, "a check failed");
    const detail =
      error instanceof LookTooLong
        ? "The check took too long."
        : "The check could not run; the control plane's log has the reason.";
    return { ...report, findings: [overall("unknown", detail)], partial: true };
  } finally {
    clearTimeout(timer);
    ending.abort();
  }
}

class LookTooLong extends Error {}

export function about(subject: string, status: CheckStatus, detail: string, hint: string | null): Finding {
  return { subject, status, detail, hint };
}

export const overall = (status: CheckStatus, detail: string, hint: string | null = null): Finding =>
  about("", status, detail, hint);

const mostListed = 20;
const order: readonly CheckStatus[] = ["fail", "unknown", "warn", "ok", "off"];

/** Returns the findings of a check with many subjects: the worst 20, and a summary without an alert. `texts.bad` names what is counted. */
export function listed(
  bad: readonly Finding[],
  texts: { readonly ok: string; readonly bad: string },
): readonly Finding[] {
  const sorted = [...bad].sort(
    (a, b) => order.indexOf(a.status) - order.indexOf(b.status) || (a.subject < b.subject ? -1 : 1),
  );
  const [worst] = sorted;
  if (worst === undefined) return [overall("ok", texts.ok)];
  const shown = sorted.slice(0, mostListed);
  const more = sorted.length > shown.length ? ` Only the first ${mostListed} are listed.` : "";
  return [{ ...overall(worst.status, `${texts.bad}: ${sorted.length}.${more}`), quiet: true }, ...shown];
}

/** Formats seconds for a sentence, such as `90 s` or `2 min`. */
export function spanText(seconds: number): string {
  const units = [
    { name: "d", seconds: 86_400 },
    { name: "h", seconds: 3600 },
    { name: "min", seconds: 60 },
  ];
  const unit = units.find((each) => seconds >= 2 * each.seconds);
  return unit === undefined ? `${Math.round(seconds)} s` : `${Math.floor(seconds / unit.seconds)} ${unit.name}`;
}
