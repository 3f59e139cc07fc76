import { Link, useNavigate } from "@tanstack/react-router";
import { ArrowRight, Trash2 } from "lucide-react";
import { lazy, Suspense, useEffect, useRef, useMemo } from "react";
import { useCall, useProject, type Project } from "../../data/api.ts";
import { firstLine, isNamedBySlug, shortCommit } from "../../data/format.ts";
import { loadPart } from "../../data/load-part.ts";
import { seenIn, troublesOf, type OverviewProject } from "../../frame/stand.ts";
import { OutsideLink } from "../../ui/outside-link.tsx";
import { Page, Empty, View, Section, Skeleton } from "../../ui/page.tsx";
import { State, Ago, Fact, Mono, Plain } from "../../ui/text.tsx";
import { FailureBox } from "../builds/failure-box.tsx";
import { LastDrill } from "../backups/moments.tsx";
import { CompareLink } from "../deployments/compare-link.tsx";
import { Findings } from "../diagnosis/findings.tsx";
import { Latest } from "../timeline/latest.tsx";
import { axisOf, chartsOf, type Metrics } from "../metrics/charts-of.ts";

const NoneServes = lazy(async () => ({ default: (await loadPart(() => import("./none-serves.tsx"))).NoneServes }));

export function ProjectPage() {
  const project = useProject();
  return (
    <View of={project}>
      {(data) => (
        <Page title={data.name} namedAbove={isNamedBySlug(data)}>
          {data.state === "deleted" ? <Deleted slug={data.slug} /> : <Active key={data.id} project={data} />}
        </Page>
      )}
    </View>
  );
}

function Deleted({ slug }: { readonly slug: string }) {
  return (
    <Empty icon={<Trash2 size={24} />} title="This project is deleted">
      It serves nothing, and everything in it is kept.{" "}
      <Link to="/projects/$slug/settings" params={{ slug }} className="text-accent underline underline-offset-2">
        Undelete it, or delete it for good
      </Link>
    </Empty>
  );
}

function Active({ project }: { readonly project: Project }) {
  const { slug, active_deployment: active } = project;
  const builds = useCall("builds.list", { params: { slug } });
  const overview = useCall("overview.get", {});
  // What runs or failed is at the top, so the rest waits for it instead of being pushed down later.
  const deployments = useCall("deployments.list", { params: { slug } });
  const seen = seenIn(overview.data, project.id);
  const needsLook = seen !== undefined && troublesOf(seen).length > 0;
  useShowFirst(project, builds.data?.builds[0]?.id, builds.isPending);
  const diagnosis = useCall("diagnosis.get", { params: { slug } }, { enabled: active !== null && needsLook });
  if ([builds, deployments, overview].some(({ isPending }) => isPending) || diagnosis.isLoading) return busy;
  return (
    <>
      <Running slug={slug} />
      <LastFailure project={project} />
      {active !== null && <Findings project={project} of={diagnosis.data?.findings ?? []} />}
      {active === null ? (
        <Suspense fallback={busy}>
          <NoneServes project={project} hasBuilds={builds.data?.builds.length !== 0} />
        </Suspense>
      ) : (
        <>
          <LastHour slug={slug} />
          <Facts project={project} />
          <Latest slug={slug} />
        </>
      )}
    </>
  );
}

const busy = <div aria-busy="true" />;

/** Opens the newest build if it came while the page was open and nothing is live yet, so that the user sees the first push without a click. */
function useShowFirst(
  { slug, active_deployment: active }: Project,
  newest: string | undefined,
  isPending: boolean,
): void {
  const navigate = useNavigate();
  const known = useRef<string | undefined | null>(null);
  useEffect(() => {
    if (isPending) return;
    const isNew = known.current !== null && known.current !== newest;
    known.current = newest;
    // A dialog, which may show a secret once, stays.
    if (isNew && newest !== undefined && active === null && document.querySelector("dialog[open]") === null)
      void navigate({ to: "/projects/$slug/builds/$id", params: { slug, id: newest } });
  }, [newest, isPending]);
}

function Facts({ project }: { readonly project: Project }) {
  const { slug, active_deployment: active } = project;
  const { data } = useCall("overview.get", {});
  const seen = seenIn(data, project.id);
  return (
    <dl className="grid grid-cols-2 gap-x-6 gap-y-5 rounded-md border border-line p-5 lg:grid-cols-4">
      <Fact label="Serves" wide>
        {active !== null && <Serving slug={slug} active={active} />}
      </Fact>
      <Fact label="Address">
        <OutsideLink url={project.url} title={project.url} className="block truncate text-accent hover:underline" />
      </Fact>
      <Fact label="Serves since">
        {active?.activated_at === null || active === null ? "–" : <Ago at={active.activated_at} />}
      </Fact>
      <Fact label="Replicas">
        <Link to="/projects/$slug/processes" params={{ slug }} className="hover:text-accent">
          {seen === undefined ? project.replicas : `${seen.replicas.ready} of ${seen.replicas.wanted} ready`}
        </Link>
      </Fact>
      <Fact label="Database">
        {(seen?.database ?? null) === null ? (
          <span className="text-faint">none</span>
        ) : (
          <State of={seen?.database ?? ""} />
        )}
      </Fact>
      {seen?.database === "ready" && <DataPast slug={slug} backup={seen.last_backup} />}
    </dl>
  );
}

interface ServingProps {
  readonly slug: string;
  readonly active: NonNullable<Project["active_deployment"]>;
}

function Serving({ slug, active: { number, commit } }: ServingProps) {
  const { data } = useCall("builds.list", { params: { slug } });
  const message = data?.builds.find((build) => build.commit === commit)?.message;
  return (
    <Link to="/projects/$slug/deployments" params={{ slug }} className="block truncate hover:text-accent">
      #{number} · <Mono>{shortCommit(commit)}</Mono>
      {message !== undefined && (
        <>
          {" "}
          · <Plain>{firstLine(message)}</Plain>
        </>
      )}
    </Link>
  );
}

/** Which of the database's past can be restored, and when that was last tried. */
function DataPast({ slug, backup }: { readonly slug: string; readonly backup: OverviewProject["last_backup"] }) {
  const { data, isPending } = useCall("backups.archive", { params: { slug } });
  const from = data?.windows[0]?.from;
  return (
    <>
      <Fact label={isPending ? "\u00a0" : from === undefined ? "Last backup" : "Restorable"}>
        <Link to="/projects/$slug/backups" params={{ slug }} className="hover:text-accent">
          {isPending ? null : from !== undefined ? (
            <>
              any moment since <Ago at={from} />
            </>
          ) : backup === null ? (
            <span className="text-faint">none</span>
          ) : (
            <>
              <State of={backup.status} /> <Ago at={backup.at} />
            </>
          )}
        </Link>
      </Fact>
      <Fact label="Last drill">
        <LastDrill slug={slug} />
      </Fact>
    </>
  );
}

/** Shows the push that is being built, with a link to watch it. */
function Running({ slug }: { readonly slug: string }) {
  const { data } = useCall("builds.list", { params: { slug } });
  const build = data?.builds.find(({ status }) => status === "queued" || status === "running");
  return (
    <div role="status" className="empty:hidden">
      {build !== undefined && (
        <Link
          to="/projects/$slug/builds/$id"
          params={{ slug, id: build.id }}
          className="flex items-center gap-3 rounded-md border border-busy/40 bg-busy/7 px-4 py-3 text-sm hover:bg-busy/12"
        >
          <State of={build.status} word={build.status === "queued" ? "Queued" : "Building"} />
          <Mono>{`${build.branch}@${shortCommit(build.commit)}`}</Mono>
          <Plain className="min-w-0 flex-1 truncate">{firstLine(build.message)}</Plain>
          <span className="inline-flex items-center gap-1 font-medium text-busy">
            Watch <ArrowRight aria-hidden size={14} />
          </span>
        </Link>
      )}
    </div>
  );
}

/** Shows why the newest push or deployment failed; nothing if it did not. */
function LastFailure({ project }: { readonly project: Project }) {
  const { slug, active_deployment: active } = project;
  const builds = useCall("builds.list", { params: { slug } });
  const deployments = useCall("deployments.list", { params: { slug } });
  const build = builds.data?.builds[0];
  const deployment = deployments.data?.deployments[0];
  if (build === undefined || deployments.data === undefined) return null;
  const isNewer = deployment === undefined || build.created_at > deployment.created_at;
  const failure = isNewer ? build.failure : deployment.failure;
  if (failure === null) return null;
  const id = isNewer ? build.id : deployment.build_id;
  const message = builds.data?.builds.find((each) => each.id === id)?.message;
  return (
    <FailureBox failure={{ ...failure, log_tail: [] }}>
      <p className="text-sm">
        {isNewer ? `Build ${build.number}` : `Deployment #${deployment.number}`}
        {message !== undefined && (
          <>
            {" "}
            “<Plain>{firstLine(message)}</Plain>”
          </>
        )}
        {active === null ? ". " : `; #${active.number} still serves. `}
        <Link
          to="/projects/$slug/builds/$id"
          params={{ slug, id }}
          className="font-medium text-accent underline underline-offset-2"
        >
          Log and details
        </Link>
        {active !== null && (
          <>
            {" · "}
            <CompareLink
              slug={slug}
              serving={active.number}
              build={{ number: build.number, deployment: isNewer ? null : deployment }}
            />
          </>
        )}
      </p>
    </FailureBox>
  );
}

// Loads at the same time as the numbers.
const chartPart = loadPart(() => import("../../ui/chart.tsx"));
const SmallChart = lazy(async () => ({ default: (await chartPart).SmallChart }));

const shown: Readonly<Record<string, string>> = {
  Requests: "Requests; failed ones in red",
  Latency: "Latency: p50, p95 and p99",
  Memory: "Memory of all replicas; its limit in red",
};

function LastHour({ slug }: { readonly slug: string }) {
  const { data } = useCall("metrics.get", { params: { slug }, query: { range: "1h" } }, { pollMs: 20_000, keep: true });
  return (
    <Section
      title="Last hour"
      actions={
        <Link
          to="/projects/$slug/metrics"
          params={{ slug }}
          className="text-sm text-accent underline underline-offset-2"
        >
          All metrics
        </Link>
      }
    >
      {/* As high as the charts, one below the other on narrow screens, so that what follows stays where it is. */}
      <div className="min-h-[476px] lg:min-h-[148px]">{data === undefined ? waiting : <Charts data={data} />}</div>
    </Section>
  );
}

const waiting = <Skeleton rows={1} height={146} />;

function Charts({ data }: { readonly data: Metrics }) {
  const [axis, charts] = useMemo(() => [axisOf(data), chartsOf(data)], [data]);
  return (
    <Suspense fallback={waiting}>
      <div className="grid gap-x-6 gap-y-4 lg:grid-cols-3">
        {charts.flatMap(({ title, ...chart }) => {
          const text = shown[title];
          const isZoomed = { zoom: undefined, onZoom: () => {} };
          return text === undefined ? [] : [<SmallChart key={title} title={text} {...chart} {...axis} {...isZoomed} />];
        })}
      </div>
    </Suspense>
  );
}
