import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { Ban, ExternalLink, Rocket, RotateCcw } from "lucide-react";
import { useMemo } from "react";
import type { Answer } from "../../../contract/client.ts";
import { shownStatus } from "../../../contract/states.ts";
import { useCall, useProject, useSlug } from "../../data/api.ts";
import { duration, firstLine, shortCommit, bytes } from "../../data/format.ts";
import { useBuildLog } from "../../data/use-output.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { buttonLook, DialogButton } from "../../ui/button.tsx";
import type { LogLine } from "../../ui/log-row.tsx";
import { linesOf, LogView } from "../../ui/log-view.tsx";
import { OutsideLink } from "../../ui/outside-link.tsx";
import { Page, PageView, Problem } from "../../ui/page.tsx";
import { State, Ago, Mono, Plain, useNow } from "../../ui/text.tsx";
import { CompareLink } from "../deployments/compare-link.tsx";
import { RollbackDialog } from "../deployments/rollback-dialog.tsx";
import { FailureBox } from "./failure-box.tsx";
import { Stages } from "./stages.tsx";
import { rehearsalLines } from "../../../contract/rehearsal.ts";
import { cancelBuild } from "./cancel-build.ts";

type Build = Answer<"builds.get">;

const route = getRouteApi("/projects/$slug/builds/$id");
const running = ["queued", "running", "pending", "starting"];

export function BuildPage() {
  const { id } = route.useParams();
  const build = useCall("builds.get", { params: { id } });
  // The page shows facts of the project, too, which would move it if they came later.
  const { isPending } = useProject();
  return (
    <PageView title="Deployment" of={isPending ? { ...build, data: undefined } : build}>
      {(data) => <Build build={data} />}
    </PageView>
  );
}

function Build({ build }: { readonly build: Build }) {
  const log = useBuildLog(build.id);
  const lines = useMemo(() => linesOf(log.text, log.times), [log.text, log.times]);
  const slug = useSlug();
  const failure = build.failure ?? build.deployment?.failure ?? null;
  const status = stateOf(build);
  const isLogMissing = log.text === "" && (log.complete || log.error !== null);
  return (
    <Page
      title={build.deployment === null ? `Build ${build.number}` : `Deployment #${build.deployment.number}`}
      actions={<Actions build={build} status={status} />}
      lead={
        <>
          <span className="inline-flex flex-wrap items-center gap-x-3">
            <span role="status">
              <State of={status} />
            </span>
            <Mono>{`${build.branch}@${shortCommit(build.commit)}`}</Mono>
            <Plain>{firstLine(build.message)}</Plain>
          </span>
          <span className="mt-1 block text-faint">
            <Ago at={build.created_at} />
            {build.requested_by !== null && (
              <>
                {" "}
                by <Plain>{build.requested_by}</Plain>
              </>
            )}
            <Author build={build} /> · <Took build={build} isRunning={running.includes(status)} />
          </span>
        </>
      }
    >
      <Stages build={build} log={log.text} lines={lines} />
      {failure !== null && (
        // The log below ends with the same lines, if it can be read.
        <FailureBox failure={isLogMissing ? failure : { ...failure, log_tail: [] }}>
          <StillServing slug={slug} build={build} />
        </FailureBox>
      )}
      {log.error !== null && <Problem error={log.error} />}
      <LogView
        lines={lines}
        startsAt={failure !== null && log.complete ? failingLine(lines) : undefined}
        label={`Log of build ${build.number}`}
        fileName={`${slug}-build-${build.number}.log`}
        height="clamp(20rem, calc(100dvh - 14rem - var(--header)), 60rem)"
        empty={log.complete ? "This build printed nothing." : "Waiting for the first line …"}
      />
      {build.deployment !== null && !running.includes(status) && <Rehearsal number={build.deployment.number} />}
    </Page>
  );
}

function failingLine(lines: readonly LogLine[]): number | undefined {
  const isProblem = ({ text }: LogLine) => text.startsWith(" !     ");
  const last = lines.findLastIndex(isProblem);
  const before = lines.findLastIndex((line, index) => index < last && !isProblem(line));
  return last < 0 ? undefined : before + 1;
}

/** Shows the commit's author, unless the token that sent it has the same name. */
function Author({ build: { author, requested_by: by } }: { readonly build: Build }) {
  if (author === null || author === by) return null;
  return (
    <>
      , written by <Plain>{author}</Plain>
    </>
  );
}

/** Returns the state of the whole push: the deployment's once the build has led to one. */
function stateOf({ status, deployment, rehearse_only }: Build): string {
  return status === "succeeded" && deployment !== null
    ? shownStatus({ status: deployment.status, rehearse_only })
    : status;
}

function Took({ build, isRunning }: { readonly build: Build; readonly isRunning: boolean }) {
  const now = useNow();
  const end = build.finished_at === null || isRunning ? now : Date.parse(build.finished_at);
  const ms = Math.max(0, end - Date.parse(build.created_at));
  if (isRunning) return <>for {duration(Math.max(1000, ms))}</>;
  return (
    <>
      {build.deployment === null ? "took" : "built in"} {duration(ms)}
      {(build.deployment?.image_bytes ?? null) !== null && ` · image of ${bytes(build.deployment?.image_bytes)}`}
    </>
  );
}

function StillServing({ slug, build }: { readonly slug: string; readonly build: Build }) {
  const { data } = useProject();
  const active = data?.active_deployment;
  if (active === null || active === undefined) return null;
  return (
    <p className="text-sm">
      Deployment #{active.number} still serves. <CompareLink slug={slug} serving={active.number} build={build} />
    </p>
  );
}

interface ActionsProps {
  readonly build: Build;
  readonly status: string;
}

/** The next step: cancel a running build, open a live deployment, go back to an earlier one, or repeat a failed one. */
function Actions({ build, status }: ActionsProps) {
  const { data: project } = useProject();
  if (running.includes(status)) return <ActionButton icon={<Ban size={14} />} {...cancelBuild(build)} />;
  if (unfinished.includes(status)) return <DeployAgain commit={build.commit} />;
  if (status === "retired") return <RollBack build={build} />;
  if (status !== "active" || project === undefined) return null;
  return (
    <OutsideLink url={project.url} className={buttonLook("plain")}>
      Visit <ExternalLink aria-hidden size={13} />
    </OutsideLink>
  );
}

function RollBack({ build: { deployment, commit, created_at } }: { readonly build: Build }) {
  const slug = useSlug();
  if (deployment === null) return null;
  const target = { number: deployment.number, commit, created_at, activated_at: null };
  return (
    <DialogButton
      icon={<RotateCcw size={14} />}
      row="deployments.rollback"
      dialog={<RollbackDialog slug={slug} target={target} />}
    >
      Roll back to #{deployment.number}
    </DialogButton>
  );
}

const unfinished = ["failed", "cancelled"];

function DeployAgain({ commit }: Pick<Build, "commit">) {
  const slug = useSlug();
  const navigate = useNavigate();
  return (
    <ActionButton
      icon={<Rocket size={14} />}
      row="deployments.create"
      label="Deploy this commit again"
      input={{ params: { slug }, body: { commit } }}
      onDone={({ build_id: id }) => void navigate({ to: "/projects/$slug/builds/$id", params: { slug, id } })}
    />
  );
}

/** What the release command did to a copy of the data before it ran on the data itself; nothing if there was no rehearsal. */
function Rehearsal({ number }: { readonly number: number }) {
  const slug = useSlug();
  const { data } = useCall("deployments.rehearsal", { params: { slug, number: String(number) } });
  const rehearsal = data?.rehearsal ?? null;
  if (rehearsal === null) return null;
  const { status, reason, report, copy_bytes, method } = rehearsal;
  return (
    <section aria-label="Rehearsal" className="space-y-2 rounded-md border border-line px-4 py-3.5 text-sm">
      <p className="flex flex-wrap items-center gap-x-3">
        <span className="font-semibold">Rehearsal</span>
        <State of={status} />
        {copy_bytes !== null && (
          <span className="text-muted">
            on {method === "clone" ? "a clone" : "a full copy"} of {bytes(copy_bytes)}
          </span>
        )}
        {report !== null && <span className="text-muted">{report.seconds.toFixed(1)} s</span>}
      </p>
      {reason !== null && (
        <p className="text-muted">
          <Plain>{reason}</Plain>
        </p>
      )}
      {report !== null && report.tables.length > 0 && (
        <ul className="space-y-1">
          {rehearsalLines(report).map((line, index) => (
            <li key={index}>
              <Plain>{line}</Plain>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
