import { Link } from "@tanstack/react-router";
import { ArrowRight, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { plural } from "../../data/format.ts";
import { attentionTexts } from "../../frame/stand.ts";

const mostShown = 5;

/** Only what needs someone, each with its next step. */
export function Needs({ data }: { readonly data: Answer<"overview.get"> }) {
  const { totals, projects } = data;
  const troubled = projects.filter((project) => project.attention.length > 0);
  const pending = totals.approvals_pending;
  if (troubled.length === 0 && pending === 0 && (totals.alerts ?? 0) === 0) return null;
  return (
    <section
      aria-label="Needs you"
      className="divide-y divide-line overflow-hidden rounded-md border border-warn/40 bg-warn/6"
    >
      {troubled.slice(0, mostShown).map((project) => (
        <Link key={project.id} to="/projects/$slug" params={{ slug: project.slug }} className={line}>
          <Text>
            <b className="font-medium">{project.slug}</b>:{" "}
            {project.attention.map((each) => attentionTexts[each]).join(", ")}
          </Text>
        </Link>
      ))}
      {troubled.length > mostShown && (
        <p className="px-3 py-2 text-sm text-muted">and {plural(troubled.length - mostShown, "more project")}</p>
      )}
    </section>
  );
}

const line = "group target flex min-h-9 items-center gap-2.5 px-3 py-1.5 text-sm hover:bg-warn/10";

function Text({ children }: { readonly children: ReactNode }) {
  return (
    <>
      <TriangleAlert aria-hidden size={15} className="shrink-0 text-warn" />
      <span className="min-w-0 flex-1">{children}</span>
      <ArrowRight
        aria-hidden
        size={15}
        className="shrink-0 text-faint transition-transform group-hover:translate-x-0.5"
      />
    </>
  );
}
