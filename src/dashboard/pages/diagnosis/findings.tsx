import { Link } from "@tanstack/react-router";
import type { Answer } from "../../../contract/client.ts";
import { useCall, type Project } from "../../data/api.ts";
import { standOf } from "../../frame/stand.ts";
import { DialogButton } from "../../ui/button.tsx";
import { Status, Dated, Prose, type Tone } from "../../ui/text.tsx";
import { RollbackDialog } from "../deployments/rollback-dialog.tsx";

type Finding = Answer<"diagnosis.get">["findings"][number];

const words: Record<Finding["severity"], readonly [Tone, string]> = {
  down: ["bad", "Down"],
  broken: ["warn", "Broken"],
  notice: ["off", "Notice"],
};

/** Lists what is wrong with a project. Failed builds and deployments are missing, because they have a box of their own. */
export function Findings({ project, of }: { readonly project: Project; readonly of: readonly Finding[] }) {
  const { slug, health } = project;
  const findings = of.filter(({ failure }) => failure === null);
  if (findings.length === 0) return null;
  return (
    <ul aria-label="What needs attention" className="flex flex-col gap-3 text-sm">
      {findings.map((finding, index) => (
        <li
          key={index}
          className="grid items-baseline gap-x-3 gap-y-1 sm:grid-cols-[6.5rem_minmax(0,80ch)] lg:grid-cols-[6.5rem_minmax(0,80ch)_1fr]"
        >
          <Status tone={words[finding.severity][0]}>
            {finding.code === health?.code ? standOf({ health }).word : words[finding.severity][1]}
          </Status>
          <span className="min-w-0">
            <Dated>{finding.sentence}</Dated>{" "}
            <span className="text-muted">
              <Prose>{finding.advice}</Prose>
            </span>
          </span>
          <span className="flex flex-wrap items-center gap-x-3 gap-y-1 sm:max-lg:col-start-2">
            <More slug={slug} finding={finding} />
            {finding.code === health?.code && <WayBack slug={slug} finding={finding} rollback={health.rollback} />}
          </span>
        </li>
      ))}
    </ul>
  );
}

interface WayBackProps {
  readonly slug: string;
  readonly finding: Finding;
  readonly rollback: NonNullable<Project["health"]>["rollback"];
}

/** Offers the rollback and the comparison, if the trouble began after the deployment that a rollback leads to. */
function WayBack({ slug, finding: { seen }, rollback }: WayBackProps) {
  const { data } = useCall("deployments.list", { params: { slug } });
  const bad = seen["first_bad_deployment"];
  const target = data?.deployments.find(({ number }) => number === rollback?.to);
  if (target === undefined || typeof bad !== "number" || bad <= target.number) return null;
  return (
    <>
      {rollback?.after_release === false && (
        <DialogButton row="deployments.rollback" dialog={<RollbackDialog slug={slug} target={target} />}>
          Roll back to #{target.number}
        </DialogButton>
      )}
      <Link
        to="/projects/$slug/compare"
        params={{ slug }}
        search={{ from: target.number, to: bad }}
        className="text-accent underline underline-offset-2"
      >
        Compare #{target.number} → #{bad}
      </Link>
    </>
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
  if (next?.route === "requests.list")
    return (
      <Link
        to="/projects/$slug/requests"
        params={{ slug }}
        search={{ by: "path", sort: next.path.includes("slow_ms=") ? "slow" : "errors" }}
        className="text-accent underline underline-offset-2"
      >
        Open the requests
      </Link>
    );
  if (page === undefined) return null;
  return (
    <Link to={page[0]} params={{ slug }} className="text-accent underline underline-offset-2">
      {page[1]}
    </Link>
  );
}
