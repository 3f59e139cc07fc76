import { useEffect, type ReactNode } from "react";
import { visible } from "../data/format.ts";

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
