import { Link, type LinkProps } from "@tanstack/react-router";
import { ArrowRight, Plus } from "lucide-react";
import { Suspense, lazy, type ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { compareNames, count, isNamedBySlug, plural, shortCommit, visible } from "../../data/format.ts";
import { loadPart } from "../../data/load-part.ts";
import { standOf, troublesOf, type OverviewProject } from "../../frame/stand.ts";
import { CopyButton, DialogButton } from "../../ui/button.tsx";
import { FilterBox, useFilter, useHasFilter } from "../../ui/filter-box.tsx";
import { OutsideLink } from "../../ui/outside-link.tsx";
import { Page, View } from "../../ui/page.tsx";
import { Status, Ago, Dated, Mono, Plain, type Tone } from "../../ui/text.tsx";
import { Table, coversItem, type Column } from "../../ui/table.tsx";

// Forms are loaded when the first one is needed.
const CreateProject = lazy(async () => ({
  default: (await loadPart(() => import("../projects/create-project.tsx"))).CreateProject,
}));
const FirstProject = lazy(async () => ({
  default: (await loadPart(() => import("./first-project.tsx"))).FirstProject,
}));

export function OverviewPage() {
  const overview = useCall("overview.get", {});
  const create = (
    <DialogButton look="primary" icon={<Plus size={15} />} row="projects.create" dialog={<CreateProject />}>
      New project
    </DialogButton>
  );
  return (
    <Page title="Overview" actions={create}>
      <View of={overview}>{(data) => <Projects data={data} />}</View>
    </Page>
  );
}

function Projects({ data }: { readonly data: Answer<"overview.get"> }) {
  const text = useFilter();
  const { totals, projects } = data;
  const hasFilter = useHasFilter(projects.length);
  if (projects.length === 0)
    return (
      <Suspense>
        <FirstProject />
      </Suspense>
    );
  const shown = projects
    .filter(({ slug, name }) => `${slug} ${name}`.toLowerCase().includes(text.toLowerCase()))
    .toSorted((a, b) => urgencyOf(a) - urgencyOf(b) || compareNames(a.slug, b.slug));
  return (
    <>
      <Needs data={data} />
      <div className="flex flex-wrap items-center justify-between gap-3">
        <p className="text-sm text-muted">
          {plural(totals.projects, "project")}, {count(totals.serving)} serving ·{" "}
          {plural(totals.requests_last_hour, "request")} in the last hour
          {totals.errors_last_hour > 0 && (
            <span className="text-bad"> · {plural(totals.errors_last_hour, "error")}</span>
          )}
        </p>
        {hasFilter && (
          <div className="w-56 max-sm:w-full">
            <FilterBox label="Filter projects" />
          </div>
        )}
      </div>
      <Table
        caption="Projects"
        rows={shown}
        columns={columns}
        keyOf={(project) => project.id}
        phone={(project) => <Item project={project} />}
      />
    </>
  );
}

/** What is down comes first, then what needs attention. */
const urgencyOf = (project: OverviewProject) => ({ bad: 0, warn: 1, busy: 2, ok: 2, off: 2 })[standOf(project).tone];

const columns: readonly Column<OverviewProject>[] = [
  { head: "State", cell: (project) => <Status tone={standOf(project).tone}>{standOf(project).word}</Status> },
  {
    head: "Project",
    grow: true,
    cell: (project) => (
      <Link to="/projects/$slug" params={{ slug: project.slug }} className="group flex min-w-0 flex-col leading-4.5">
        <span className="truncate font-medium group-hover:text-accent">{project.slug}</span>
        <span className="truncate text-xs text-faint">
          <Trouble of={project} instead={<Plain>{project.name}</Plain>} />
        </span>
      </Link>
    ),
  },
  { head: "Address", wide: true, cell: (project) => <Address url={project.url} /> },
  { head: "Last deployment", wide: true, cell: (project) => <Last of={project} /> },
  { head: "Last hour", wide: true, cell: (project) => <Sparkline project={project} /> },
  {
    head: "Replicas",
    wide: true,
    end: true,
    cell: ({ replicas: { ready, wanted } }) =>
      wanted === 0 ? <span className="text-faint">–</span> : `${ready} / ${wanted}`,
  },
];

function Item({ project }: { readonly project: OverviewProject }) {
  const { slug, name, url, last_deployment: last, last_hour: hour } = project;
  return (
    <>
      <p className="flex items-center justify-between gap-3">
        <Link to="/projects/$slug" params={{ slug }} className={`min-w-0 truncate font-medium ${coversItem}`}>
          {slug}
          {!isNamedBySlug(project) && <Plain className="ml-2 font-normal text-faint">{name}</Plain>}
        </Link>
        <Status tone={standOf(project).tone}>{standOf(project).word}</Status>
      </p>
      {project.active_deployment !== null && (
        <p className="flex items-center justify-between gap-3">
          <OutsideLink url={url} className="relative min-w-0 truncate text-muted" />
          {hour.errors > 0 && <span className="shrink-0 text-bad">{plural(hour.errors, "error")} in 1 h</span>}
        </p>
      )}
      <p className="truncate text-faint">
        {last === null ? (
          "Nothing deployed yet"
        ) : (
          <>
            #{last.number} · <Ago at={last.at} /> · <Plain>{last.message}</Plain>
          </>
        )}
      </p>
      <p className="empty:hidden">
        <Trouble of={project} />
      </p>
    </>
  );
}

function Trouble({ of, instead = null }: { readonly of: OverviewProject; readonly instead?: ReactNode }) {
  const [first] = troublesOf(of);
  if (first === undefined) return instead;
  return (
    <span className={standOf(of).tone === "bad" ? "text-bad" : "text-warn"} title={first}>
      <Dated>{first}</Dated>
    </span>
  );
}

function Address({ url }: { readonly url: string }) {
  return (
    <span className="group/address inline-flex items-center">
      <OutsideLink url={url} title={url} className="max-w-56 truncate text-muted hover:text-accent hover:underline" />
      <span className="opacity-0 transition-opacity group-hover/address:opacity-100 focus-within:opacity-100 pointer-coarse:opacity-100">
        <CopyButton text={url} label="Copy the address" />
      </span>
    </span>
  );
}

function Last({ of }: { readonly of: OverviewProject }) {
  const last = of.last_deployment;
  if (last === null) return <span className="text-faint">none yet</span>;
  return (
    <span className="flex max-w-64 min-w-0 flex-col leading-4.5 text-muted">
      <span>
        <span className={last.status === "failed" ? "font-medium text-bad" : ""}>
          #{last.number}
          {last.status === "failed" && " failed"}
        </span>{" "}
        · <Ago at={last.at} /> · <Mono>{shortCommit(last.commit)}</Mono>
      </span>
      <span className="truncate text-xs text-faint" title={visible(last.message)}>
        <Plain>{last.message}</Plain>
      </span>
    </span>
  );
}

const width = 96;
const height = 20;
const gap = 0.8;

/** Shows the requests of the last hour as a small chart, errors in red, with their number for readers who can't see it. */
function Sparkline({ project }: { readonly project: OverviewProject }) {
  const { requests, errors, parts } = project.last_hour;
  if (requests === 0) return <span className="text-faint">no requests</span>;
  const most = Math.max(...parts.map((part) => part.requests));
  const step = width / parts.length;
  const label = `${plural(requests, "request")}, ${plural(errors, "error")} in the last hour`;
  const bar = (value: number, index: number, fill: string) => (
    <rect
      key={`${fill} ${index}`}
      x={index * step}
      width={step - gap}
      y={height - (value / most) * height}
      height={(value / most) * height}
      className={fill}
    />
  );
  return (
    <span className="flex items-center gap-2.5" title={label}>
      <svg width={width} height={height} role="img" aria-label={label} className="shrink-0">
        <line x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} className="stroke-line" />
        {parts.map((part, index) => bar(part.requests, index, "fill-accent"))}
        {parts.map((part, index) => bar(part.errors, index, "fill-bad"))}
      </svg>
      <span className="w-12 text-right text-muted">{count(requests)}</span>
    </span>
  );
}

const mostShown = 5;

/** Lists what needs attention, each with its next step. */
function Needs({ data }: { readonly data: Answer<"overview.get"> }) {
  const { totals, projects } = data;
  const needy = projects
    .map((project) => ({ project, troubles: troublesOf(project) }))
    .filter(({ troubles }) => troubles.length > 0)
    .toSorted((a, b) => urgencyOf(a.project) - urgencyOf(b.project));
  const [pending, alerts] = [totals.approvals_pending, totals.alerts ?? 0];
  if (needy.length === 0 && pending === 0 && alerts === 0) return null;
  return (
    <section
      aria-label="Needs you"
      className="divide-y divide-line overflow-hidden rounded-md border border-warn/40 bg-warn/6"
    >
      {alerts > 0 && (
        <Need to="/operator/status" step="Look" of={["warn", "Alert"]}>
          {plural(alerts, "open alert")} of the platform
        </Need>
      )}
      {pending > 0 && (
        <Need to="/approvals" step="Decide" of={["warn", "Waiting"]}>
          {pending === 1 ? "1 request waits for a decision" : `${pending} requests wait for a decision`}
        </Need>
      )}
      {needy.slice(0, mostShown).map(({ project, troubles }) => (
        <Need
          key={project.id}
          to="/projects/$slug"
          params={{ slug: project.slug }}
          step="See why"
          of={severityOf(project)}
        >
          <b className="font-medium">{project.slug}</b>:{" "}
          <Dated>{troubles.map((each) => each.replace(/\.$/, "")).join(" · ")}</Dated>
        </Need>
      ))}
      {needy.length > mostShown && (
        <p className="px-3 py-2 text-sm text-muted">and {plural(needy.length - mostShown, "more project")}</p>
      )}
    </section>
  );
}

/** How bad it is: the health's word, or a notice while the project itself works. */
function severityOf(project: OverviewProject): readonly [Tone, string] {
  const { tone, word } = standOf(project);
  return tone === "bad" || tone === "warn" ? [tone, word] : ["warn", "Notice"];
}

interface NeedProps extends Pick<LinkProps, "to" | "params"> {
  readonly step: string;
  readonly of: readonly [Tone, string];
  readonly children: ReactNode;
}

function Need({ step, of: [tone, word], children, ...link }: NeedProps) {
  return (
    <Link
      {...link}
      className="group target flex min-h-9 items-center gap-2.5 px-3 py-1.5 text-sm hover:bg-warn/10 focus-visible:outline-offset-[-2px]"
    >
      <span className="flex min-w-0 flex-1 flex-wrap gap-x-3 sm:flex-nowrap">
        <span className="shrink-0 sm:w-24">
          <Status tone={tone}>{word}</Status>
        </span>
        <span className="min-w-0 sm:flex-1">{children}</span>
      </span>
      <span className="inline-flex shrink-0 items-center gap-1 text-muted group-hover:text-text">
        <span className="max-sm:sr-only">{step}</span>
        <ArrowRight aria-hidden size={15} className="transition-transform group-hover:translate-x-0.5" />
      </span>
    </Link>
  );
}
