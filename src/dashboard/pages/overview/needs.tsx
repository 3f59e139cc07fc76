import { Link, type LinkProps } from "@tanstack/react-router";
import { ArrowRight, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { plural } from "../../data/format.ts";
import { troublesOf } from "../../frame/stand.ts";
import { Dated } from "../../ui/text.tsx";

const mostShown = 5;

/** Lists what needs attention, each with its next step. */
export function Needs({ data }: { readonly data: Answer<"overview.get"> }) {
  const { totals, projects } = data;
  const all = projects.map(({ id, slug, ...project }) => ({
    id,
    slug,
    troubles: troublesOf({ id, slug, ...project }),
  }));
  const needy = all.filter(({ troubles }) => troubles.length > 0);
  const [pending, alerts] = [totals.approvals_pending, totals.alerts ?? 0];
  if (needy.length === 0 && pending === 0 && alerts === 0) return null;
  return (
    <section
      aria-label="Needs you"
      className="divide-y divide-line overflow-hidden rounded-md border border-warn/40 bg-warn/6"
    >
      {alerts > 0 && (
        <Need to="/operator/status" step="Look">
          {plural(alerts, "open alert")} of the platform
        </Need>
      )}
      {pending > 0 && (
        <Need to="/approvals" step="Look">
          {pending === 1 ? "1 request waits for a decision" : `${pending} requests wait for a decision`}
        </Need>
      )}
      {needy.slice(0, mostShown).map(({ id, slug, troubles }) => (
        <Need key={id} to="/projects/$slug" params={{ slug }} step="See why">
          <b className="font-medium">{slug}</b>: <Dated>{troubles.join(" · ")}</Dated>
        </Need>
      ))}
      {needy.length > mostShown && (
        <p className="px-3 py-2 text-sm text-muted">and {plural(needy.length - mostShown, "more project")}</p>
      )}
    </section>
  );
}

interface NeedProps extends Pick<LinkProps, "to" | "params"> {
  readonly step: string;
  readonly children: ReactNode;
}

function Need({ step, children, ...link }: NeedProps) {
  return (
    <Link
      {...link}
      className="group target flex min-h-9 items-center gap-2.5 px-3 py-1.5 text-sm hover:bg-warn/10 focus-visible:outline-offset-[-2px]"
    >
      <TriangleAlert aria-hidden size={15} className="shrink-0 text-warn" />
      <span className="min-w-0 flex-1">{children}</span>
      <span className="inline-flex shrink-0 items-center gap-1 text-muted group-hover:text-text">
        <span className="max-sm:sr-only">{step}</span>
        <ArrowRight aria-hidden size={15} className="transition-transform group-hover:translate-x-0.5" />
      </span>
    </Link>
  );
}
