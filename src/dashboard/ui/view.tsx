import { useState, type ReactNode } from "react";
import { Command } from "./copy.tsx";
import { Page } from "./page.tsx";
import { Problem } from "./problem.tsx";

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
