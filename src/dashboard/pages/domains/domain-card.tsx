import { Check, Clock, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { visible, duration, exact } from "../../data/format.ts";
import { Copied } from "../../ui/button.tsx";
import { Status, Ago, Fact, Mono, useNow } from "../../ui/text.tsx";
import type { Domain } from "./domain.ts";

interface CardProps {
  readonly domain: Domain;
  /** The name to which this one redirects. */
  readonly target: Domain | undefined;
  readonly detach: ReactNode;
}

/** Shows a hostname's steps: DNS record, ownership, certificate, serving. */
export function DomainCard({ domain, target, detach }: CardProps) {
  const { instructions, dns_status: dns, ssl_status: ssl, redirect_to: other } = domain;
  const isFound = dns === "ok";
  return (
    <li className="rounded-md border border-line">
      <div className="flex items-center gap-3 border-b border-line bg-panel py-1.5 pr-2 pl-4">
        <Mono className="min-w-0 flex-1 font-medium wrap-anywhere">
          {other === null ? domain.hostname : `${domain.hostname} → ${other}`}
        </Mono>
        <span role="status" className="text-sm">
          {domain.serving ? (
            <Status tone="ok">Serving</Status>
          ) : (
            <Status tone={dns === "mismatch" ? "warn" : "busy"}>Not served yet</Status>
          )}
        </span>
        {detach}
      </div>
      <ol className="divide-y divide-line">
        <Step
          mark={isFound ? "done" : dns === "mismatch" ? "wrong" : "now"}
          title="DNS record"
          detail={domain.dns_detail}
        >
          {!isFound && <Records domain={domain} />}
          {domain.checked_at !== null && (
            <p className="mt-1.5 text-xs text-faint">
              Last checked <Ago at={domain.checked_at} />. Berth checks again by itself.
            </p>
          )}
        </Step>
        {instructions.txt !== null && (
          <Step
            mark={isFound ? "done" : "now"}
            title="Proof of ownership"
            detail="Another organization has or had this name, so the TXT record above proves that it is yours."
          />
        )}
        <Step mark={certificateMarks[ssl]} title="Certificate" detail={domain.ssl_detail}>
          <CertificateSteps domain={domain} />
        </Step>
        <Step
          mark={domain.serving ? (domain.serving_until === null ? "done" : "wrong") : "later"}
          title="Serving"
          detail={
            domain.serving
              ? domain.serving_until === null
                ? servingText(target)
                : "The record is gone; the name is served for a while longer."
              : "Begins once the record is found."
          }
        />
      </ol>
    </li>
  );
}

function servingText(target: Domain | undefined): string {
  if (target === undefined) return "Requests for this name reach the project.";
  if (!target.serving)
    return `Requests reach the project until ${target.hostname} is served; then they are redirected there.`;
  return `Requests are redirected to ${target.hostname}, with their path and query.`;
}

const certificateMarks = { active: "done", failed: "wrong", issuing: "now", pending: "later" } as const;

type Mark = "done" | "now" | "wrong" | "later";
const icons: Record<Mark, ReactNode> = {
  done: <Check size={15} className="text-ok" />,
  now: <Clock size={15} className="text-busy" />,
  wrong: <TriangleAlert size={15} className="text-warn" />,
  later: <span className="m-[3.5px] size-2 rounded-full border border-strong" />,
};
const spoken: Record<Mark, string> = { done: "done", now: "waiting", wrong: "needs a change", later: "later" };

function Step({
  mark,
  title,
  detail,
  children,
}: {
  readonly mark: Mark;
  readonly title: string;
  readonly detail: string;
  readonly children?: ReactNode;
}) {
  return (
    <li className="flex gap-3 px-4 py-2.5 text-sm">
      <span aria-hidden className="mt-0.5 flex shrink-0">
        {icons[mark]}
      </span>
      <div className="min-w-0 flex-1">
        <p className="font-medium">
          {title} <span className="sr-only">({spoken[mark]})</span>
        </p>
        <p className="max-w-[80ch] text-muted">{visible(detail)}</p>
        {children}
      </div>
    </li>
  );
}

function Records({ domain: { instructions } }: { readonly domain: Domain }) {
  return (
    <div className="mt-2 flex flex-col gap-2">
      <p className="max-w-[80ch] text-muted">{instructions.note}</p>
      {instructions.records.map((record) => (
        <Record key={`${record.type} ${record.value}`} {...record} />
      ))}
      {instructions.alias !== null && (
        <p className="text-xs text-faint">
          Instead of addresses a {instructions.alias.type} record to <Mono>{instructions.alias.value}</Mono> will do.
        </p>
      )}
    </div>
  );
}

type RecordProps = Domain["instructions"]["records"][number];

function Record({ type, name, value }: RecordProps) {
  return (
    <dl className="grid gap-x-6 gap-y-1.5 rounded-md border border-line px-3 py-2 sm:grid-cols-[4rem_1fr_1fr]">
      <Fact label="Type">
        <span className="inline-flex h-8 items-center max-sm:h-11">{type}</span>
      </Fact>
      <Fact label="Name">
        <Copied text={name} label={`Copy the name of the ${type} record`} />
      </Fact>
      <Fact label="Value">
        <Copied text={value} label={`Copy the value of the ${type} record`} />
      </Fact>
    </dl>
  );
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** Lists the steps of the current or last attempt to get the certificate, with their times, and when the next attempt is. */
function CertificateSteps({ domain }: { readonly domain: Domain }) {
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
