import { useSyncExternalStore, type ReactNode } from "react";
import { clockTime, exact, moment, relative, visible } from "../data/format.ts";

/** Shows ids, hashes, hostnames and values in the fixed-width font, with invisible characters made visible. */
export function Mono({ children, className = "" }: { readonly children: string; readonly className?: string }) {
  return <span className={`font-mono text-[0.925em] ${className}`}>{visible(children)}</span>;
}

/** Shows names and messages that tenants wrote. */
export function Plain({ children }: { readonly children: string }) {
  return <bdi>{visible(children)}</bdi>;
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
export function Ago({ at }: { readonly at: string }) {
  const now = useNow();
  return (
    <time dateTime={at} title={exact(at)} className="whitespace-nowrap">
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
