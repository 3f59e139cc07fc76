import type { ReactNode } from "react";

export type Tone = "ok" | "busy" | "warn" | "bad" | "off";

const texts: Record<Tone, string> = {
  ok: "text-ok",
  busy: "text-busy",
  warn: "text-warn",
  bad: "text-bad",
  off: "text-faint",
};
const dots: Record<Tone, string> = {
  ok: "bg-ok",
  busy: "bg-busy dot-busy",
  warn: "bg-warn",
  bad: "bg-bad",
  off: "border-[1.5px] border-faint",
};

const tones: Record<string, readonly [Tone, string]> = {
  active: ["ok", "Live"],
  pending: ["busy", "Pending"],
  starting: ["busy", "Starting"],
  retired: ["off", "Retired"],
  failed: ["bad", "Failed"],
  superseded: ["off", "Superseded"],
  rehearsed: ["off", "Rehearsed"],
  queued: ["busy", "Queued"],
  running: ["busy", "Running"],
  succeeded: ["ok", "Succeeded"],
  cancelled: ["off", "Cancelled"],
  healthy: ["ok", "Healthy"],
  passed: ["ok", "Passed"],
  behind: ["warn", "Behind"],
  unavailable: ["off", "Unavailable"],
  timed_out: ["bad", "Timed out"],
  interrupted: ["warn", "Interrupted"],
  completed: ["ok", "Completed"],
  verified: ["ok", "Verified"],
  mismatch: ["bad", "Mismatch"],
  provisioning: ["busy", "Provisioning"],
  copying: ["busy", "Copying"],
  deleting: ["busy", "Deleting"],
  ready: ["ok", "Ready"],
  off: ["off", "Off"],
  ok: ["ok", "OK"],
  warn: ["warn", "Warning"],
  fail: ["bad", "Failing"],
  unknown: ["warn", "Unknown"],
  timeout: ["bad", "Timed out"],
  skipped: ["off", "Skipped"],
  missed: ["warn", "Missed"],
  approved: ["ok", "Approved"],
  denied: ["bad", "Denied"],
  consumed: ["off", "Used"],
  expired: ["off", "Expired"],
  issuing: ["busy", "Issuing"],
  suspended: ["warn", "Suspended"],
  deleted: ["off", "Deleted"],
  warning: ["warn", "Warning"],
  live: ["ok", "Live"],
  waiting: ["off", "Waiting"],
  building: ["busy", "Building"],
  removing: ["busy", "Removing"],
  critical: ["bad", "Critical"],
};

const toneOf = (state: string) => tones[state] ?? (["off", state] as const);

/** A state as a coloured dot with a word, so that the colour is never the only sign. */
export function Status({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  return (
    <span className={`inline-flex items-center gap-1.5 font-medium whitespace-nowrap ${texts[tone]}`}>
      <Dot tone={tone} />
      {children}
    </span>
  );
}

/** Shows one of the contract's states as dot and word; `word` replaces the usual word. */
export function State({ of, word }: { readonly of: string; readonly word?: string }) {
  const [tone, text] = toneOf(of);
  return <Status tone={tone}>{word ?? text}</Status>;
}

/** Shows a sequence of states as dots, with words for how many there are of each. */
export function States({ of }: { readonly of: readonly string[] }) {
  const counts = new Map<string, number>();
  for (const [, word] of of.map(toneOf)) counts.set(word, (counts.get(word) ?? 0) + 1);
  const words = [...counts].map(([word, count]) => `${count} ${word.toLowerCase()}`).join(", ");
  return (
    <span className="flex min-h-5 flex-wrap items-center gap-x-3">
      <span className="flex gap-1">
        {of.map((state, index) => (
          <Dot key={index} tone={toneOf(state)[0]} />
        ))}
      </span>
      <span className="text-xs text-muted">{words}</span>
    </span>
  );
}

export function Dot({ tone }: { readonly tone: Tone }) {
  return <span aria-hidden className={`inline-block size-2 shrink-0 rounded-full ${dots[tone]}`} />;
}

/** A small word in a frame: a role, a kind. */
export function Tag({ children }: { readonly children: ReactNode }) {
  return (
    <span className="inline-flex items-center rounded-sm border border-line bg-panel px-1.5 text-xs leading-5 font-medium whitespace-nowrap text-muted">
      {children}
    </span>
  );
}
