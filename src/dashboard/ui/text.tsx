import { useSyncExternalStore, type ReactNode } from "react";
import { clockTime, exact, moment, relative, visible } from "../data/format.ts";

/** Shows ids, hashes, hostnames and values in the fixed-width font, with invisible characters made visible. */
export function Mono({ children, className = "" }: { readonly children: string; readonly className?: string }) {
  return <span className={`font-mono text-[0.925em] ${className}`}>{visible(children)}</span>;
}

/** Shows names and messages that tenants wrote. */
export function Plain({ children, className }: { readonly children: string; readonly className?: string }) {
  return <bdi className={className}>{visible(children)}</bdi>;
}

/** Shows a sentence of the platform, with what stands between backticks as code. */
export function Prose({ children }: { readonly children: string }) {
  const parts = visible(children).split("`");
  // A quoted line of output may hold a single one.
  if (parts.length % 2 === 0) return <>{visible(children)}</>;
  return (
    <>
      {parts.map((part, index) =>
        index % 2 === 0 ? (
          part
        ) : (
          <code key={index} className="wrap-anywhere">
            {part}
          </code>
        ),
      )}
    </>
  );
}

const minuteInUtc = /(\d{4}-\d\d-\d\d \d\d:\d\d UTC)/;

/** Shows a sentence of the platform about what tenants named, with its times in the reader's zone and the exact ones on hover. */
export function Dated({ children }: { readonly children: string }) {
  return (
    <bdi>
      {children
        .split(minuteInUtc)
        .map((part, index) => (index % 2 === 0 ? <Prose key={index}>{part}</Prose> : <Minute key={index} at={part} />))}
    </bdi>
  );
}

function Minute({ at }: { readonly at: string }) {
  const instant = at.replace(" ", "T").replace(" UTC", ":00.000Z");
  // A name may look like a time.
  if (Number.isNaN(Date.parse(instant))) return at;
  return (
    <time dateTime={instant} title={exact(instant)}>
      {moment(instant, Date.now())}
    </time>
  );
}

let nowMs = Date.now();
const listeners = new Set<() => void>();
setInterval(() => {
  nowMs = Date.now();
  for (const listener of listeners) listener();
}, 5000);
const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

/** Returns the current time in ms, updated every five seconds by one timer for the whole page. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => nowMs);
}

/** Shows a relative time, with the exact one on hover. */
export function Ago({ at, className = "" }: { readonly at: string; readonly className?: string }) {
  const now = useNow();
  return (
    <time dateTime={at} title={exact(at)} className={`whitespace-nowrap ${className}`}>
      {relative(at, Math.max(now, Date.now() - 5000))}
    </time>
  );
}

/** Shows the time of one of many entries, with the exact one on hover. */
export function Clock({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={exact(at)} className="whitespace-nowrap">
      {clockTime(at)}
    </time>
  );
}

interface FactProps {
  readonly label: string;
  /** Spans two columns of its grid. */
  readonly wide?: boolean;
  readonly children: ReactNode;
}

export function Fact({ label, wide = false, children }: FactProps) {
  return (
    <div className={`min-w-0 ${wide ? "col-span-2" : ""}`}>
      <dt className="text-xs text-faint">{label}</dt>
      <dd className="mt-0.5 min-w-0 text-sm break-words">{children}</dd>
    </div>
  );
}

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

const states: Record<Tone, string> = {
  ok: "active succeeded healthy passed completed verified ready ok approved live",
  busy: "pending starting queued running provisioning copying deleting issuing building removing",
  warn: "behind interrupted warn unknown missed suspended warning",
  bad: "failed timed_out mismatch fail timeout denied critical",
  off: "retired superseded rehearsed cancelled unavailable off skipped consumed expired deleted waiting",
};
const tones = new Map(
  Object.entries(states).flatMap(([tone, all]) => all.split(" ").map((state) => [state, tone as Tone])),
);
/** The states whose words are not their names. */
const words: Readonly<Record<string, string>> = {
  active: "Live",
  ok: "OK",
  warn: "Warning",
  fail: "Failing",
  timeout: "Timed out",
  consumed: "Used",
};

/** Returns a state's tone and word; an unknown one is shown as it is. */
function toneOf(state: string): readonly [Tone, string] {
  const tone = tones.get(state);
  if (tone === undefined) return ["off", state];
  return [tone, words[state] ?? `${state.slice(0, 1).toUpperCase()}${state.slice(1).replace("_", " ")}`];
}

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
