import { useEffect, useState, type ReactNode } from "react";
import { visible } from "../data/format.ts";
import { Command, Button } from "./button.tsx";
import { Link } from "@tanstack/react-router";
import { CircleAlert } from "lucide-react";
import { ApiError, ConnectionError, type Answer } from "../../contract/client.ts";
import { useCall } from "../data/api.ts";
import { Status, Prose, type Tone } from "./text.tsx";

interface PageProps {
  readonly title: string;
  /** What the page is for, if its title does not say it. */
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** The frame above shows this title already, so only a screen reader hears it. */
  readonly namedAbove?: boolean;
  /** Fills the height of the window; its content scrolls inside. */
  readonly full?: boolean;
  /** Uses the width of the window, for charts, logs and tables of any number of columns. */
  readonly wide?: boolean;
}

/** The layout of a page: its only h1, with the actions at the right. */
export function Page({ title, lead, actions, children, namedAbove, full = false, wide = false }: PageProps) {
  useEffect(() => {
    document.title = `${visible(title)} · Berth`;
  }, [title]);
  return (
    <div
      className={`flex w-full min-w-0 flex-col gap-5 px-4 py-6 sm:px-8 ${wide ? "" : "max-w-[1664px]"} ${full ? "h-full min-h-0" : ""}`}
    >
      <header
        className={namedAbove === true ? "sr-only" : "flex flex-wrap items-start justify-between gap-x-6 gap-y-3"}
      >
        <div className="min-w-0">
          <h1 className="text-xl font-semibold tracking-[-0.01em]">{visible(title)}</h1>
          {lead && <p className="mt-1 max-w-[80ch] text-sm text-pretty text-muted">{lead}</p>}
        </div>
        {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

interface SectionProps {
  readonly title: string;
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Section({ title, lead, actions, children }: SectionProps) {
  return (
    <section className="mt-2 flex min-w-0 flex-col gap-3">
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
        <div>
          <h2 className="text-base font-semibold">{title}</h2>
          {lead !== undefined && <p className="mt-0.5 max-w-[80ch] text-sm text-pretty text-muted">{lead}</p>}
        </div>
        {actions}
      </div>
      {children}
    </section>
  );
}

export interface ViewProps<T> {
  readonly of: {
    readonly data: T | undefined;
    readonly error: Error | null;
    readonly isFetching: boolean;
    readonly refetch: () => unknown;
  };
  /** The shape of the content that is loading. */
  readonly skeleton?: ReactNode;
  readonly children: (data: T) => ReactNode;
}

/** Shows a skeleton after 150 ms of loading, an error with a retry, or the content, which stays visible while it is refreshed. */
export function View<T>({ of, skeleton = <Skeleton />, children }: ViewProps<T>) {
  const [error, setError] = useState<Error | null>(null);
  // A new attempt forgets the error of the one before.
  const next = of.data === undefined ? (of.error ?? error) : null;
  if (next !== error) setError(next);
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (error !== null) return <Problem error={error} retry={() => void of.refetch()} isRetrying={of.isFetching} />;
  return <Loading>{skeleton}</Loading>;
}

/** Stands where content will be, so that what loads later moves nothing. It is visible after 150 ms. */
export function Loading({ children = <Skeleton /> }: { readonly children?: ReactNode }) {
  return (
    <div ref={markSection} aria-busy="true" className="late">
      <span className="sr-only">Loading</span>
      {children}
    </div>
  );
}

/** A page whose title comes with its content. Until that has loaded, or if it can't be, the page has this title instead. */
export function PageView<T>({ of, title, children }: Omit<ViewProps<T>, "skeleton"> & { readonly title: string }) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  return (
    <Page title={title}>
      <View of={of}>{() => null}</View>
    </Page>
  );
}

/** Marks the section as busy while its content loads, which hides what is below it. */
function markSection(element: HTMLElement | null) {
  const section = element?.closest("main section");
  section?.setAttribute("aria-busy", "true");
  return () => section?.removeAttribute("aria-busy");
}

export function Skeleton({ rows = 6, height = 36 }: { readonly rows?: number; readonly height?: number }) {
  return (
    <div aria-hidden className="divide-y divide-line rounded-md border border-line">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} style={{ height }} className="flex items-center gap-4 px-3">
          <span className="h-2.5 rounded-sm bg-selected" style={{ width: `${18 + ((row * 37) % 22)}%` }} />
          <span className="h-2.5 rounded-sm bg-hover" style={{ width: `${12 + ((row * 53) % 18)}%` }} />
        </div>
      ))}
    </div>
  );
}

interface EmptyProps {
  readonly icon?: ReactNode;
  readonly title: string;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
  /** The same next step on the command line. */
  readonly command?: string;
}

/** Shown for an empty list: what the list is for, and the next step. */
export function Empty({ icon, title, children, action, command }: EmptyProps) {
  return (
    <div className="flex flex-col items-center gap-2 rounded-md border border-dashed border-line px-6 py-12 text-center in-[section]:py-7">
      {icon !== undefined && <span className="mb-1 text-faint">{icon}</span>}
      <h2 className="text-base font-semibold">{title}</h2>
      {children !== undefined && <div className="max-w-[60ch] text-sm text-balance text-muted">{children}</div>}
      {action !== undefined && <div className="mt-3">{action}</div>}
      {command !== undefined && (
        <div className="mt-3 max-w-full text-left">
          <Command>{command}</Command>
        </div>
      )}
    </div>
  );
}

interface ProblemProps {
  readonly error: Error;
  readonly retry?: () => void;
  readonly isRetrying?: boolean;
}

/** Shows what went wrong, what helps, and the id by which the operator finds the request. */
export function Problem({ error, retry, isRetrying = false }: ProblemProps) {
  const hint = error instanceof ApiError || error instanceof ConnectionError ? error.hint : undefined;
  const details = error instanceof ApiError ? error.details : [];
  const approval =
    error instanceof ApiError ? (error.body["approval"] as { readonly id: string } | undefined) : undefined;
  return (
    <div role="alert" className="flex gap-3 rounded-md border border-bad/35 bg-bad/7 px-3 py-2.5 text-sm">
      <CircleAlert aria-hidden size={16} className="mt-px shrink-0 text-bad" />
      <div className="min-w-0 flex-1">
        <p className="font-medium break-words">
          <Prose>{error.message}</Prose>
        </p>
        {hint !== undefined && (
          <p className="mt-1 text-muted">
            <Prose>{hint}</Prose>
          </p>
        )}
        {details.length > 1 && (
          <ul className="mt-1 list-disc pl-4 text-muted">
            {details.map(({ path, message }) => (
              <li key={`${path} ${message}`}>{visible(`${path}: ${message}`)}</li>
            ))}
          </ul>
        )}
        {approval !== undefined && <AwaitedApproval id={approval.id} />}
        {error instanceof ApiError && error.requestId !== null && error.status >= 500 && (
          <p className="mt-1 font-mono text-xs text-faint">Request {error.requestId}</p>
        )}
      </div>
      {retry !== undefined && (
        <Button busy={isRetrying} onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

type Approval = Answer<"approvals.get">;

const states: Record<Approval["status"], readonly [Tone, string, string]> = {
  pending: ["busy", "Waiting", "A person decides. Leave this open, or come back and repeat the step."],
  approved: ["ok", "Approved", "Repeat the same step now: it goes through this once."],
  denied: ["bad", "Denied", "Nothing was changed."],
  expired: ["off", "Expired", "Nobody decided in time. Repeat the step to ask again."],
  consumed: ["ok", "Done", "The approved step was carried out."],
};
const pollMs = 3000;

/** Shows the decision that a step waits for, as soon as it is made. */
function AwaitedApproval({ id }: { readonly id: string }) {
  // A token without `activity:read` gets no changes.
  const poll = (found: Approval | undefined) => (found === undefined || found.status === "pending" ? pollMs : false);
  const { data } = useCall("approvals.get", { params: { id } }, { pollMs: poll });
  const [tone, word, text] = states[data?.status ?? "pending"];
  return (
    <div className="mt-2 flex flex-col gap-1.5">
      <p role="status" className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Status tone={tone}>{word}</Status>
        <span className="text-muted">{text}</span>
      </p>
      <p className="text-muted">
        It stands in{" "}
        <Link to="/approvals" className="text-accent underline underline-offset-2">
          Approvals
        </Link>
        , and here:
      </p>
      <Command>{`berth approvals ${id}`}</Command>
    </div>
  );
}
