import { duration, exact, visible } from "../../data/format.ts";
import { Ago, useNow } from "../../ui/text.tsx";
import type { Domain } from "./domain.ts";

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** Lists the steps of the current or last attempt to get the certificate, with their times, and when the next attempt is. */
export function CertificateSteps({ domain }: { readonly domain: Domain }) {
  const { ssl_steps: steps, ssl_next_attempt_at: next, ssl_status: status } = domain;
  return (
    <>
      {(steps.length > 1 || status === "issuing") && (
        <ol className="mt-2 flex flex-col gap-1 border-l border-line pl-3">
          {steps.map(({ at, detail, status: of }, index) => (
            <li key={at} className="flex gap-3 max-sm:flex-col max-sm:gap-0">
              <time dateTime={at} title={exact(at)} className="shrink-0 font-mono text-xs leading-4.5 text-faint">
                {clock.format(new Date(at))}
              </time>
              <span className={`min-w-0 flex-1 break-words ${of === "failed" ? "text-bad" : "text-muted"}`}>
                {visible(detail)}
              </span>
              <span className="shrink-0 text-xs leading-4.5 text-faint">
                <Took from={at} to={steps[index + 1]?.at} isUnderWay={of === "issuing"} />
              </span>
            </li>
          ))}
        </ol>
      )}
      {next !== null && (
        <p className="mt-1.5 text-xs text-faint">
          {status === "active" ? "Renewed" : "Next attempt"} <Ago at={next} />
          {status === "active" ? "" : "; Berth makes it by itself."}
        </p>
      )}
    </>
  );
}

interface TookProps {
  readonly from: string;
  readonly to: string | undefined;
  readonly isUnderWay: boolean;
}

/** Shows how long a step took, or how long it has been running. */
function Took({ from, to, isUnderWay }: TookProps) {
  const now = useNow();
  if (to !== undefined) return duration(Date.parse(to) - Date.parse(from));
  return isUnderWay ? `${duration(Math.max(0, now - Date.parse(from)))} so far` : null;
}
