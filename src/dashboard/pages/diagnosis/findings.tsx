import { Link } from "@tanstack/react-router";
import type { Answer } from "../../../contract/client.ts";
import { Status, type Tone } from "../../ui/status.tsx";
import { Prose } from "../../ui/text.tsx";

type Finding = Answer<"diagnosis.get">["findings"][number];

const words: Record<Finding["severity"], readonly [Tone, string]> = {
  down: ["bad", "Down"],
  broken: ["warn", "Broken"],
  notice: ["off", "Notice"],
};

/** Lists what is wrong with a project. Failed builds and deployments are missing, because they have a box of their own. */
export function Findings({ slug, of }: { readonly slug: string; readonly of: readonly Finding[] }) {
  const findings = of.filter(({ failure }) => failure === null);
  if (findings.length === 0) return null;
  return (
    <ul aria-label="What needs attention" className="flex flex-col gap-2 text-sm">
      {findings.map((finding, index) => (
        <li key={index} className="flex flex-wrap items-baseline gap-x-3 gap-y-0.5">
          <Status tone={words[finding.severity][0]}>{words[finding.severity][1]}</Status>
          <span className="max-w-[80ch] text-muted">
            <Prose>{finding.advice}</Prose>
          </span>
          <More slug={slug} finding={finding} />
        </li>
      ))}
    </ul>
  );
}

const pages = {
  logs: ["/projects/$slug/logs", "Open the logs"],
  metrics: ["/projects/$slug/metrics", "Open the metrics"],
  domains: ["/projects/$slug/domains", "Open the domains"],
  cron: ["/projects/$slug/cron", "Open the cron jobs"],
  database: ["/projects/$slug/database", "Open the database"],
  backups: ["/projects/$slug/backups", "Open the backups"],
  builds: ["/projects/$slug/deployments", "Open the deployments"],
} as const;

function More({ slug, finding: { next } }: { readonly slug: string; readonly finding: Finding }) {
  const page = pages[next?.route.split(".")[0] as keyof typeof pages];
  if (page === undefined) return null;
  return (
    <Link to={page[0]} params={{ slug }} className="text-accent underline underline-offset-2">
      {page[1]}
    </Link>
  );
}
